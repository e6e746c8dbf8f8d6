"""Below the threshold: the exact decorrelator of largest mean fidelity that meets the floors."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import conic
import problems
from skcoral import decorrelate, threshold
from skcoral.certificates import check, prove
from skcoral.datasets import load_wine
from skcoral.exceptions import NotCertifiedWarning
from skcoral.solvers.exact import best_exact, exact_threshold
from skcoral.solvers.exact.largest_mean import mean_excess


def symmetric_root(R: np.ndarray) -> np.ndarray:
    values, vectors = np.linalg.eigh(R)
    return (vectors * np.sqrt(values)) @ vectors.T


def test_is_zca_cor_where_that_meets_the_floors(ugly: np.ndarray) -> None:
    floor = float(np.diag(symmetric_root(ugly)).min())
    answer = decorrelate(ugly, max(floor - 1e-9, 0))
    assert answer.status == "exact"
    # Compare in the metric of R: T itself is as large as R is nearly singular.
    assert np.abs(ugly @ answer.T - symmetric_root(ugly)).max() < 1e-7
    assert np.abs(answer.weights - 1).max() < 1e-6


@pytest.mark.parametrize("margin", [0.3, 1e-2, 1e-5, 1e-8])
def test_floors_are_met_and_the_mean_is_certified(ugly: np.ndarray, margin: float) -> None:
    floor = max(threshold(ugly).value - margin, 0.0)
    answer = decorrelate(ugly, floor)
    assert answer.status == "exact"
    assert np.abs(answer.T.T @ ugly @ answer.T - np.eye(len(ugly))).max() < 1e-8
    assert np.all(np.einsum("ij,ij->j", ugly, answer.T) >= floor - 1e-9)
    assert np.all(answer.prices == 0)
    verdict = check(answer, ugly)
    assert verdict.passed, verdict.problems


@pytest.mark.parametrize("seed", range(4))
def test_against_a_semidefinite_solver(seed: int) -> None:
    """The same maximum over the ball ‖W‖ ≤ 1, by an independent program."""
    cp = pytest.importorskip("cvxpy")
    rng = np.random.default_rng(seed)
    R = problems.factor(rng, int(rng.integers(3, 7)))
    p = len(R)
    floors = threshold(R).value * rng.uniform(0.7, 1.0, p)
    root = np.linalg.cholesky(R)
    W = cp.Variable((p, p))
    f = cp.diag(root @ W)
    problem = cp.Problem(cp.Maximize(cp.sum(f)), [cp.sigma_max(W) <= 1, f >= floors])
    conic.solve(problem)
    answer = decorrelate(R, floors)
    assert answer.status == "exact"
    assert answer.fidelity.sum() == pytest.approx(problem.value, abs=1e-6)


def test_a_whole_variable_beside_other_binding_floors() -> None:
    """The weight of a floor of one is infinite; the answer is that of the others, projected."""
    rng = np.random.default_rng(0)
    R = np.corrcoef((rng.normal(size=(200, 4)) @ rng.normal(size=(4, 4))).T)
    answer = decorrelate(R, [0.9, 0.8, 1.0, 0.0])
    assert answer.status == "exact"
    assert np.allclose(answer.T[:, 2], [0, 0, 1, 0], rtol=0, atol=1e-12)
    assert np.allclose(answer.T.T @ R @ answer.T, np.eye(4), rtol=0, atol=1e-10)
    assert np.allclose(answer.fidelity[:3], [0.9, 0.8, 1.0], rtol=0, atol=1e-10)
    assert check(answer, R).passed


def test_none_means_the_threshold() -> None:
    R = np.asarray(load_wine().correlation)
    answer, th = decorrelate(R), threshold(R)
    assert answer.status == "exact"
    assert np.array_equal(answer.T, th.T)
    assert np.allclose(answer.rho_min, th.value, rtol=0, atol=1e-12)
    assert check(answer, R).passed


@pytest.mark.parametrize("offset", [0.0, 1e-12, -1e-12, -1e-10])
def test_floors_on_the_edge(offset: float) -> None:
    R = np.asarray(load_wine().correlation)
    floor = threshold(R).value + offset
    answer = decorrelate(R, floor)
    assert answer.status == "exact"
    assert answer.min_fidelity >= floor - 1e-10


def test_any_positive_definite_matrix_will_do() -> None:
    """Residual covariances have no unit diagonal; the fidelities are then covariances."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 5)) * [1, 10, 0.1, 3, 0.5]
    C = np.cov(X.T)
    floors = 0.5 * np.sqrt(np.diag(C))
    best = best_exact(C, floors)
    assert best.feasible
    assert np.abs(best.T.T @ C @ best.T - np.eye(5)).max() < 1e-10
    assert mean_excess(C, floors, best.weights, best.S, best.T) < 1e-10


def test_an_unsettled_mean_is_not_called_exact() -> None:
    R = np.asarray(load_wine().correlation)
    with pytest.warns(NotCertifiedWarning, match="largest fidelities"):
        answer = decorrelate(R, threshold(R).value - 1e-6, max_iter=13)
    assert answer.status == "best_found"
    assert answer.min_fidelity >= threshold(R).value - 1e-6


@pytest.mark.parametrize(
    ("floor", "max_iter"),
    # One step does not reach a floor of 0.8 at all.
    [(None, 1), (None, 2), (None, 3), (0.75, 1), (0.75, 2), (0.75, 3), (0.8, 2), (0.8, 3)],
)
def test_a_limit_that_is_reached_is_reported(floor: float | None, max_iter: int) -> None:
    R = np.asarray(load_wine().correlation)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        answer = decorrelate(R, floor, max_iter=max_iter)
    best = decorrelate(R, floor)
    worst = {None: "min_fidelity"}.get(floor, "mean_fidelity")
    missed = getattr(best, worst) - getattr(answer, worst)
    assert answer.status == ("exact" if missed < 1e-8 else "best_found")
    assert [warning.category for warning in caught] == [NotCertifiedWarning] * (missed >= 1e-8)
    assert np.abs(answer.T.T @ R @ answer.T - np.eye(13)).max() < 1e-10
    assert check(answer, R).passed  # less is claimed, and it holds


@pytest.mark.parametrize("seed", range(6))
def test_edges_of_nearly_collinear_variables_pass_their_check(seed: int) -> None:
    """Weights of a million there; their rounding must not be sold as a proof of the mean."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(60, 6))
    X[:, -1] = X[:, 0] + 1e-3 * X[:, -1]
    R = np.corrcoef(X.T)
    answer = decorrelate(R, threshold(R).value)
    assert answer.status == "exact"
    verdict = check(answer, R)
    assert verdict.passed, verdict.problems
    assert prove(answer, R).passed


@pytest.mark.parametrize("margin", [0.0, 1e-9, 1e-5, 0.2])
def test_the_excess_of_the_mean_keeps_its_digits(margin: float) -> None:
    """Around T it is what the bound itself is in many more digits."""
    flint = pytest.importorskip("flint")
    rng = np.random.default_rng(3)
    X = rng.normal(size=(40, 5))
    X[:, -1] = X[:, 0] + 1e-4 * X[:, -1]
    R = np.corrcoef(X.T)
    R = (R + R.T) / 2
    floors = np.full(5, threshold(R).value - margin)
    best = best_exact(R, floors)
    S = (best.S + best.S.T) / 2
    before, flint.ctx.prec = flint.ctx.prec, 300
    try:
        d = flint.arb_mat(
            [[float(w) * (i == j) for j in range(5)] for i, w in enumerate(best.weights)]
        )
        C, root, T = (flint.arb_mat(A.tolist()) for A in (R, S, best.T))
        total = (root.solve(d * C * d).trace() + root.trace()) / 2
        for j, floor in enumerate(floors):
            total -= (d[j, j] - 1) * float(floor) + (C * T)[j, j]
        wanted = float((total / 5).mid())
    finally:
        flint.ctx.prec = before
    assert mean_excess(R, floors, best.weights, S, best.T) == pytest.approx(wanted, abs=1e-10)


@pytest.mark.parametrize("pinned", [0, 3, 6])
@pytest.mark.parametrize(("below", "phi"), [(0.0, 0.9999), (7e-9, 0.9999), (7e-9, 0.5)])
def test_a_floor_next_to_one_and_the_others_at_their_edge(
    pinned: int, below: float, phi: float
) -> None:
    """Neighbours in time are what the pinned one leaves of them: floors within floors."""
    R = phi ** np.abs(np.subtract.outer(np.arange(8), np.arange(8)))
    rest = np.delete(np.arange(8), pinned)
    left = R[np.ix_(rest, rest)] - np.outer(R[rest, pinned], R[pinned, rest])
    floors = np.full(8, 1.0 - below)
    floors[rest] = exact_threshold(left).lower * (1.0 - below / 7.0)
    answer = decorrelate(R, floors)
    assert answer.status == "exact"
    assert np.all(answer.fidelity >= floors - 1e-9)
    assert np.abs(answer.correlation - np.eye(8)).max() < 1e-10
    assert check(answer, R).passed
