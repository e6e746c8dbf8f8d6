"""Certificates of the kind "support" with a bound by moments: every judge, and forgeries."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest

from skcoral import decorrelate
from skcoral.bounds.support import proved_bound
from skcoral.certificates import certificate_text, check, prove
from skcoral.core.arrays import Array
from skcoral.core.results import Decorrelation
from skcoral.core.solution import Certificate
from skcoral.exceptions import CertificateError
from skcoral.solvers.support import moment_admm
from skcoral.solvers.support.caps import feasible_set
from skcoral.solvers.support.lower_bounds import moment_arrays, to_squares

from .conftest import with_arrays
from .verifier import problems

KINDS = [
    ("squared", 0.0),
    ("worst", 0.0),
    ("absolute", 0.0),
    ("squared", "mixed"),
]


@cache
def answer(criterion: str, floor: Any) -> tuple[Decorrelation, Array]:
    """A certified answer on five variables; its first column has no freedom where floors differ."""
    R = np.corrcoef(np.random.default_rng(4).normal(size=(9, 5)).T)
    mask = np.abs(np.subtract.outer(range(5), range(5))) <= 1
    floors = np.array([1.0, 0.9, 0.0, 0.7, 0.0]) if floor == "mixed" else floor
    with patch.object(moment_admm, "TIME_LIMIT", 1.0):
        found = decorrelate(
            R, floors, support=mask, criterion=criterion, proof="moments", n_starts=30
        )
    return found, R


def with_bound(kind: tuple[str, Any]) -> tuple[Decorrelation, Array]:
    """An answer whose certificate is by moments, also where another bound is larger."""
    found, R = answer(*kind)
    proof = found.certificate
    if proof.info["bound"] != "moments":
        caps = feasible_set(R, proof.arrays["support"] > 0, found.rho_min)
        goal = to_squares(found.criterion, found.objective)
        steps = iter(range(1000))
        arrays = moment_arrays(caps, found.criterion, goal, lambda _: next(steps) > 20)
        arrays |= {name: proof.arrays[name] for name in ("slope", "support")}
        info = {"bound": "moments", "criterion": found.criterion}
        certificate = Certificate("support", arrays, info)
        lower = proved_bound(R, found.rho_min, certificate)
        found = replace(found, certificate=certificate, lower_bound=lower, status="best_found")
    assert found.certificate.info["bound"] == "moments"
    assert found.lower_bound > 0
    return found, R


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_every_judge_accepts_it(kind: tuple[str, Any]) -> None:
    found, R = with_bound(kind)
    assert check(found, R).passed
    assert prove(found, R).passed
    assert not problems(json.loads(certificate_text(found, R)), R)


def test_weights_of_pairs_that_are_none() -> None:
    found, R = with_bound(("squared", 0.8))
    weights = found.certificate.arrays["weights"].copy()
    weights[0, 1] = weights[1, 0] = 3.0
    with pytest.raises(CertificateError, match="weights"):
        check(with_arrays(found, weights=weights), R)
