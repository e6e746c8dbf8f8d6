"""Certificates of the kind "support" with a bound by moments: every judge, and forgeries."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest

from skcoral import decorrelate
from skcoral.bounds.support import proved_bound
from skcoral.certificates import certificate_text, check, prove
from skcoral.core.arrays import Array
from skcoral.core.results import Decorrelation
from skcoral.core.solution import Certificate
from skcoral.exceptions import CertificateError
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
def with_bound(kind: tuple[str, Any]) -> tuple[Decorrelation, Array]:
    """An answer on five variables, certified by moments whatever other bounds prove.

    Its first column has no freedom where floors differ.
    """
    criterion, floor = kind
    R = np.corrcoef(np.random.default_rng(4).normal(size=(9, 5)).T)
    mask = np.abs(np.subtract.outer(range(5), range(5))) <= 1
    floors = np.array([1.0, 0.9, 0.0, 0.7, 0.0]) if floor == "mixed" else floor
    found = decorrelate(R, floors, support=mask, criterion=criterion, n_starts=30)
    caps = feasible_set(R, mask, found.rho_min)
    steps = iter(range(1000))
    arrays = moment_arrays(
        caps, criterion, to_squares(criterion, found.objective), lambda _: next(steps) > 20
    )
    arrays |= {name: found.certificate.arrays[name] for name in ("slope", "support")}
    proof = Certificate("support", arrays, {"bound": "moments", "criterion": criterion})
    lower = proved_bound(R, found.rho_min, proof)
    assert lower > 0
    status: Any = "optimal" if found.objective - lower < 0.7e-7 else "best_found"
    return replace(found, certificate=proof, lower_bound=lower, status=status), R


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
