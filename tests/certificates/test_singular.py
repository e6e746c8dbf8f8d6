"""Certificates of matrices of rank r < p: through R, and through a factor alone."""

from __future__ import annotations

import contextlib
import warnings
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skcoral import decorrelate, threshold
from skcoral.certificates import certificate_text, check, parse_certificate, prove
from skcoral.core.deficiency import Deficiency
from skcoral.core.lowrank import FactoredCorrelation
from skcoral.core.problem import Matrix
from skcoral.core.solution import Certificate
from skcoral.exceptions import CertificateError

from .conftest import refused, verdict, with_arrays

RNG = np.random.default_rng(3)
ROWS = RNG.normal(size=(6, 8))
R = np.corrcoef(ROWS.T)
Z = ROWS - ROWS.mean(axis=0)
Z /= np.linalg.norm(Z, axis=0)
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


def by_matrix(result: Any) -> Any:
    """The same proof with H as a matrix instead of its factor."""
    c = result.certificate
    V, kappa = c.arrays["V"], c.arrays["kappa"]
    r, p = V.shape
    lengths = np.sum(V * V, axis=0)
    arrays = {key: c.arrays[key] for key in ("factor", "multipliers")}
    arrays |= {"H": V.T @ V + np.diag(kappa), "diagonal": lengths + (p - lengths.sum()) / r}
    return replace(result, certificate=Certificate("rank", arrays, c.info))


FLOORS = [1.0, 0.9, 0.99, 0.5, 0.99, 0.9, 1.0, 0.95]
ASKED = {
    "welch": lambda: decorrelate(R, 0.3),
    "welch, worst": lambda: decorrelate(R, 0.3, criterion="worst"),
    "frame": lambda: decorrelate(R, 0.999),
    "rank": lambda: by_matrix(decorrelate(R, 0.995)),
    "rank, factor": lambda: decorrelate(R, 0.995),
    "open": lambda: decorrelate(R, 0.99),
    "open, mixed": lambda: decorrelate(R, FLOORS),
    "lifted": lambda: decorrelate(R, 0.99, criterion="worst"),
    "threshold": lambda: threshold(R),
}


class Solved(dict[str, Any]):
    """Results by name, solved when they are first used."""

    def __missing__(self, name: str) -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self[name] = ASKED[name]()
        return self[name]


HONEST = Solved()


@pytest.fixture(params=list(ASKED))
def name(request: pytest.FixtureRequest) -> str:
    return request.param


def test_a_rank_of_one() -> None:
    twins = np.array([[1.0, -1.0], [-1.0, 1.0]])
    for result in (decorrelate(twins, 0.9), threshold(twins)):
        assert result.rank == 1
        assert parse_certificate(certificate_text(result, twins)).verify(twins).passed


def test_the_rank(name: str) -> None:
    result = HONEST[name]
    for rank in (4, 6, 8, 0, None):
        c = result.certificate
        lie = Certificate(c.kind, c.arrays, {**c.info, "rank": rank})
        assert refused(replace(result, certificate=lie), R)


def test_a_factor_of_fewer_directions() -> None:
    """Outputs held in fewer dimensions than there are would have a larger least residual."""
    for name in ("welch", "frame"):
        result = HONEST[name]
        A = result.certificate.arrays["factor"][:-1]
        A = A / np.linalg.norm(A, axis=0)
        c = result.certificate
        arrays = {**c.arrays, "factor": A}
        arrays["N"] = arrays["N"][:-1, :-1]
        lie = Certificate(c.kind, arrays, {**c.info, "rank": 4})
        found = verdict(check, replace(result, certificate=lie), R)
        assert "factor" in found
        assert refused(replace(result, certificate=lie), R)


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10**6), spread=st.floats(-6, 1), claimed=st.floats(1.00001, 2))
def test_no_dual_point_proves_too_much(seed: int, spread: float, claimed: float) -> None:
    rng = np.random.default_rng(seed)
    result = HONEST["frame"]
    arrays = result.certificate.arrays
    noise = rng.normal(size=(5, 5)) * 10.0**spread
    lam = np.abs(arrays["multipliers"] * (1 + 10.0**spread * rng.normal(size=8)))
    kappa = np.abs(arrays["kappa"] + 10.0**spread * rng.normal(size=8))
    lie = with_arrays(result, N=arrays["N"] + noise + noise.T, multipliers=lam, kappa=kappa)
    lie = replace(lie, weights=lam, prices=2 * lam, status="best_found")
    passed = [not verdict(judge, lie, R) for judge in (check, prove)]
    assert passed[0] <= passed[1]
    assert refused(replace(lie, lower_bound=claimed * result.objective), R)
    with contextlib.suppress(CertificateError):
        assert check(lie, R).lower <= result.objective + 1e-7


@cache
def wide(p: int, n: int, floor: Any, **given: Any) -> tuple[Any, Any, np.ndarray]:
    rows = np.random.default_rng(1).normal(size=(n, p))
    rows -= rows.mean(axis=0)
    rows /= np.linalg.norm(rows, axis=0)
    _, size, right = np.linalg.svd(rows, full_matrices=False)
    A = (size[:, None] * right)[: n - 1]
    found = Deficiency(A / np.linalg.norm(A, axis=0), np.ones(A.shape[1]), [])
    names = tuple(f"v{j}" for j in range(p))
    matrix = Matrix(FactoredCorrelation(found.factor), names, found)
    return decorrelate(matrix, np.full(p, floor), **given), threshold(matrix), rows


@pytest.mark.parametrize("floor", [0.5, 0.995])
def test_wide_tables_are_checked_by_their_rows(floor: float) -> None:
    answer, edge, rows = wide(40, 9, floor)
    for judge in (check, prove):
        assert judge(answer, FactoredCorrelation(rows)).passed
        assert judge(edge, FactoredCorrelation(rows)).passed
    turned = np.linalg.qr(np.random.default_rng(2).normal(size=(9, 9)))[0] @ rows
    assert check(answer, FactoredCorrelation(turned)).passed
    for other in (rows[:, ::-1], rows[:-1], 1.001 * rows, rows + 1e-6):
        assert verdict(lambda r, a: check(r, FactoredCorrelation(a)), answer, other)
