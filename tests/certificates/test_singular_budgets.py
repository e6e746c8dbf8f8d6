"""Budgets at rank below p: the floor that is claimed to be the highest, and the budget itself."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest

from skcoral import decorrelate, maximize_fidelity
from skcoral.bounds.arithmetic import Floats
from skcoral.bounds.rank import factor_bound

ROWS = np.random.default_rng(3).normal(size=(3, 4))
R = np.corrcoef(ROWS.T)
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


@cache
def made() -> Any:
    """The highest floor for the residual that a floor leaves, one that costs something."""
    return maximize_fidelity(R, decorrelate(R, np.full(4, 0.999)).objective)


def test_a_bound_on_the_worst_pair_is_not_linear_in_the_floors() -> None:
    """It is a root of one that is: its tangent would exclude floors that are possible."""
    rows = np.random.default_rng(0).normal(size=(3, 5))
    S = np.corrcoef(rows.T)
    frame = decorrelate(S, 0.999)
    assert frame.certificate.kind == "frame"
    certificate = replace(frame.certificate, info={**frame.certificate.info, "criterion": "worst"})
    given = certificate, "worst", None, frame.rho_min
    proof = factor_bound(*given, certificate.arrays["factor"], Floats(3))
    top = proof.highest_floor(0.99, "worst", 0.999)
    pairs, lam = 10, certificate.arrays["multipliers"]
    squares = pairs * float(proof.bound.lower) ** 2
    assert top == pytest.approx(0.999 + (pairs * 0.99**2 - squares) / (2 * lam.sum()), rel=1e-9)
    tangent = 0.999 + (0.99 - float(proof.bound.lower)) / proof.slopes.sum()
    assert tangent < top - 1e-6
