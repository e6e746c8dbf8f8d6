"""The bound of the rank in factor form: its formula, outputs that prove themselves, its memory."""

from __future__ import annotations

import sys
import tracemalloc
from dataclasses import replace

import numpy as np
import pytest

from skcoral import CORAL
from skcoral.certificates import certificate_text, check, parse_certificate, prove
from skcoral.core.solution import Certificate
from skcoral.exceptions import CertificateError
from skcoral.solvers.singular.caps import on_caps, squares
from skcoral.solvers.singular.problem import Answer, FrameProblem
from skcoral.solvers.singular.rank_bound import multipliers_of_outputs

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


def lowered(V, kappa, count):
    """Put the first entries of κ below zero, as far as H stays positive definite."""
    kappa[:count] = 0.0
    inverse = np.linalg.inv(V.T @ V + np.diag(kappa))[:count, :count]
    kappa[:count] -= 0.9 / np.linalg.norm(inverse, 2) if count else 0.0
    return kappa


def naive(A, floors, V, lam, kappa):
    """(★r) with S = νI + VᵀV as p × p matrices."""
    r, p = A.shape
    nu = max((p - np.sum(V * V)) / r, 0.0)
    S, H, C = nu * np.eye(p) + V.T @ V, V.T @ V + np.diag(kappa), A * lam
    value = 2 * floors @ lam - np.sum(kappa - nu) - p / 2 - np.sum(C @ np.linalg.inv(H) * C)
    return value - np.sort(np.linalg.eigvalsh(S) ** 2)[-r:].sum() / 2


@pytest.mark.parametrize("negative", [0, 1, 2])
@pytest.mark.parametrize("size", [0.3, 1.0])
@pytest.mark.parametrize(("n", "p"), [(4, 12), (6, 7)])
def test_the_bound_is_that_of_the_formula(tables, n, p, size, negative):
    A, rng = tables.factor_of(tables.noise(n, p)), np.random.default_rng(1)
    for _ in range(5):
        V, lam = size * rng.normal(size=A.shape), rng.exponential(size=p)
        kappa = lowered(V, rng.uniform(0.2, 1.0, p), negative)
        assert np.sum(kappa < 0) == negative
        floors = rng.uniform(0.0, 0.99, p)
        U = on_caps(A, A + rng.normal(size=A.shape) * rng.uniform(0, 2), floors)
        bound = naive(A, floors, V, lam, kappa)
        assert squares(U) >= bound
        arrays = {"V": V, "multipliers": lam, "kappa": kappa}
        assert tables.bound_of("rank", arrays, A, floors) == pytest.approx(bound, rel=1e-9)


def test_what_is_not_definite_proves_nothing(tables):
    A, rng = tables.factor_of(tables.noise(5, 12)), np.random.default_rng(0)
    V = rng.normal(size=A.shape)
    edge = np.r_[-0.01 * np.ones(5), np.ones(7)]  # more negative entries than dimensions
    beyond = rng.uniform(0.2, 1.0, 12)
    beyond[0] -= 1.1 / np.linalg.inv(V.T @ V + np.diag(beyond))[0, 0]
    for kappa in (edge, beyond):
        arrays = {"V": V, "multipliers": np.ones(12), "kappa": kappa}
        with pytest.raises(CertificateError, match="positive definite"):
            tables.bound_of("rank", arrays, A, np.zeros(12))


@pytest.mark.parametrize("pinned", [False, True])
def test_outputs_prove_themselves(tables, pinned):
    """(★★) leaves 4e-7 open for these forty rows of 200 columns; the outputs are optimal.

    Columns held at their sources have multipliers that are large, not infinite.
    """
    A, floors = tables.factor_of(tables.factors(40, 200, 1)), np.full(200, 0.85)
    floors[::40] = 1.0 if pinned else 0.85
    answer = FrameProblem(A).solve(floors)
    assert answer.certified
    assert answer.certificate.kind == "rank"
    assert pinned or answer.certificate.arrays["kappa"].min() < 0  # no dual point of (★★)
    fresh, elsewhere = Answer(FrameProblem(A), floors), answer.U + 0.05 * np.eye(39, 200)
    fresh.offer(elsewhere)  # not stationary: its multipliers prove nothing of it
    fresh.prove("rank", multipliers_of_outputs(A, fresh.U, floors))
    assert fresh.lower_bound <= answer.objective
    assert not fresh.certified


def test_outputs_that_span_less_prove_nothing_false(tables):
    """All outputs in a plane of four dimensions: their frame operator is singular."""
    A = tables.factor_of(tables.sums(50, 5, 1, 0))
    U = np.zeros_like(A)
    U[:2] = np.random.default_rng(0).normal(size=(2, 5))
    U /= np.linalg.norm(U, axis=0)
    floors = np.minimum(np.einsum("ij,ij->j", A, U), 1.0).clip(0.0)
    answer = FrameProblem(A).solve(floors)
    before = answer.lower_bound
    answer.prove("rank", multipliers_of_outputs(A, on_caps(A, U, floors), floors))
    assert before <= answer.lower_bound <= answer.objective


def loaded(n, p, seed):
    """Five strong factors."""
    rng = np.random.default_rng(seed)
    loadings = rng.normal(size=(5, p))
    return rng.normal(size=(n, 5)) @ loadings + rng.normal(size=(n, p)) * np.sqrt(
        0.3 + rng.uniform(size=p)
    )


@pytest.fixture(scope="module")
def wide():
    """Sixty rows of 400 columns whose frame bound leaves a gap, as a fitted transformer."""
    return CORAL(0.7).fit(loaded(60, 400, 0))


def most_allocated(function):
    """The most bytes that any one line of the library allocates while the function runs."""
    most = before = 0

    def look(frame, *_):
        nonlocal most, before
        if "skcoral" not in frame.f_code.co_filename:
            return None
        most = max(most, tracemalloc.get_traced_memory()[1] - before)
        tracemalloc.reset_peak()
        before = tracemalloc.get_traced_memory()[0]
        return look

    outer = sys.gettrace()
    tracemalloc.start()
    sys.settrace(look)
    try:
        function()
    finally:
        sys.settrace(outer)
        tracemalloc.stop()
    return most


def test_no_array_of_all_pairs_is_made(wide):
    """Neither where the gap of the frame bound is closed, nor where it is checked."""
    X, matrix = loaded(60, 400, 0), 8 * 400**2
    assert wide.result_.certificate.kind == "rank"
    assert most_allocated(lambda: CORAL(0.7).fit(X)) < matrix
    assert most_allocated(lambda: check(wide.result_, wide.correlation_)) < matrix
    shapes = {a.shape for a in wide.result_.certificate.arrays.values()}
    assert shapes == {(59, 400), (400,)}


def test_wide_certificates_are_proved_and_kept_in_files(wide):
    pytest.importorskip("flint")
    result, R = wide.result_, wide.correlation_
    assert result.status == "optimal"
    small = CORAL(0.7).fit(loaded(20, 100, 3))
    for fitted in (wide, small):
        verdict = check(fitted.result_, fitted.correlation_)
        assert verdict.passed, verdict.problems
    verdict = prove(small.result_, small.correlation_)
    assert verdict.passed, verdict.problems
    read = parse_certificate(certificate_text(result, R)).result
    assert sorted(read.certificate.arrays) == ["V", "factor", "kappa", "multipliers"]
    assert check(read, R).passed


def test_altered_certificates_are_refused(wide):
    result, certificate = wide.result_, wide.result_.certificate
    arrays = dict(certificate.arrays)
    for name, value in (
        ("V", 1.01 * arrays["V"]),
        ("V", np.roll(arrays["V"], 1, axis=1)),
        ("V", 0.0 * arrays["V"]),
        ("kappa", 1.01 * arrays["kappa"]),
        ("kappa", arrays["kappa"] - 0.05),
        ("kappa", -arrays["kappa"]),
        ("multipliers", 1.01 * arrays["multipliers"]),
        ("multipliers", -arrays["multipliers"]),
        ("factor", np.roll(arrays["factor"], 1, axis=1)),
        *((name, a) for name in arrays for a in (np.ones(1), np.zeros(0), np.ones((2, 2, 2)))),
    ):
        lie = Certificate(certificate.kind, {**arrays, name: value}, certificate.info)
        try:
            passed = check(replace(result, certificate=lie), wide.correlation_).passed
        except CertificateError:
            passed = False
        assert not passed, name
