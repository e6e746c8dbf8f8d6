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
from skcoral.certificates.certify import rechecked_by_factor
from skcoral.core.solution import Budget

ROWS = np.random.default_rng(3).normal(size=(3, 4))
R = np.corrcoef(ROWS.T)
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


@cache
def made(criterion: str) -> Any:
    """The highest floor for the residual that a floor leaves, one that costs something."""
    if criterion == "solved":
        return maximize_fidelity(R, decorrelate(R, np.full(4, 0.95)).objective)
    floor = 0.999 if criterion == "squared" else 0.95
    answer = decorrelate(R, np.full(4, floor), criterion=criterion)
    values, vectors = np.linalg.eigh(R)
    A = (vectors * np.sqrt(np.maximum(values, 0.0))).T[-2:]
    return rechecked_by_factor(replace(answer, goal=Budget(answer.objective, 1.0)), A)


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


def test_prices_within_a_budget_are_those_of_the_proof() -> None:
    """Whatever a solver said; at floors of one they are its own, infinite or zero."""
    result = made("squared")
    A = result.certificate.arrays["factor"]
    said = replace(result, prices=np.full(4, 7.0), weights=np.full(4, 3.0), lower_bound=0.0)
    found = rechecked_by_factor(said, A)
    np.testing.assert_allclose(found.weights, result.weights, atol=1e-12)
    np.testing.assert_allclose(found.prices, 2 * found.weights, atol=1e-12)
    assert found.prices.max() > 0.05
    assert found.lower_bound == pytest.approx(result.lower_bound, abs=1e-10)
    whole = rechecked_by_factor(replace(said, rho_min=np.ones(4)), A)
    np.testing.assert_array_equal(whole.prices, np.full(4, 7.0))
