"""The threshold: closed forms, an independent convex solver, and the definition on ugly data."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn import datasets as sk

import conic
import problems
from skcoral import decorrelate, threshold
from skcoral.certificates import check
from skcoral.certificates.certify import certify_threshold
from skcoral.core.problem import Settings
from skcoral.datasets import load_wine, make_system, wdi_correlation
from skcoral.exceptions import NotCertifiedWarning
from skcoral.solvers.exact import exact_threshold, solve_threshold


def naive_fidelity(R: np.ndarray, T: np.ndarray) -> np.ndarray:
    return np.array([R[j] @ T[:, j] for j in range(len(R))])


def assert_is_threshold(R: np.ndarray, *, gap: float = 1e-9) -> float:
    """Everything that the threshold promises, from the definition."""
    th = threshold(R)
    R = np.asarray(R, dtype=float)
    assert -1e-14 <= th.gap <= gap
    assert np.abs(th.T.T @ R @ th.T - np.eye(len(R))).max() < 1e-8
    f = naive_fidelity(R, th.T)
    assert np.all(f >= th.lower - 1e-12)
    assert np.abs(f - th.fidelity).max() < 1e-10
    assert np.all(th.weights >= 0)
    assert th.weights.sum() == pytest.approx(1)
    assert check(th, R).passed
    return th.value


@pytest.mark.parametrize(
    ("R", "printed"),
    [
        (make_system(6), 0.971817),
        (make_system(18), 0.958528),
        (make_system(50), 0.949077),
        (wdi_correlation().correlation, 0.750852),
        (load_wine().correlation, 0.826231),
    ],
    ids=["p6", "p18", "p50", "wdi", "wine"],
)
def test_the_papers_thresholds(R: np.ndarray, printed: float) -> None:
    """The lower ends of the intervals that the paper prints."""
    assert assert_is_threshold(R) == pytest.approx(printed, abs=5.1e-7)


@pytest.mark.parametrize("seed", range(4))
def test_against_a_semidefinite_solver(seed: int) -> None:
    cp = pytest.importorskip("cvxpy")
    rng = np.random.default_rng(seed)
    R = problems.factor(rng, int(rng.integers(3, 7)))
    p = len(R)
    root = np.linalg.cholesky(R).T
    weights = cp.Variable(p, nonneg=True)
    problem = cp.Problem(cp.Minimize(cp.normNuc(root @ cp.diag(weights))), [cp.sum(weights) == 1])
    conic.solve(problem)
    assert threshold(R).value == pytest.approx(problem.value, abs=2e-7)


def test_definition_on_difficult_matrices(ugly: np.ndarray) -> None:
    assert_is_threshold(ugly)


def test_resampled_tables_are_certified() -> None:
    """Bootstrap samples have all patterns of binding variables, some found in several rounds."""
    X = load_wine().data
    rng = np.random.default_rng(0)
    for _ in range(100):
        R = np.corrcoef(X[rng.integers(0, len(X), len(X))].T)
        assert_is_threshold(R)


@pytest.mark.parametrize("name", ["breast_cancer", "digits", "diabetes", "iris"])
def test_real_tables_are_certified(name: str) -> None:
    X = getattr(sk, f"load_{name}")().data
    X = X[:, X.std(axis=0) > 0]
    assert_is_threshold(np.corrcoef(X.T))


@pytest.mark.parametrize(
    ("p", "cond"), [(5, 1e4), (30, 1e6), (5, 1e8), (30, 1e8), (9, 1e10), (9, 1e11)]
)
@pytest.mark.filterwarnings("default::skcoral.exceptions.NotCertifiedWarning")
def test_certified_up_to_condition_1e8_and_honest_beyond(p: int, cond: float) -> None:
    Q, _ = np.linalg.qr(np.random.default_rng(p).normal(size=(p, p)))
    C = (Q * np.logspace(0, -np.log10(cond), p)) @ Q.T
    d = 1 / np.sqrt(np.diag(C))
    R = C * np.outer(d, d)
    R = (R + R.T) / 2
    if cond <= 1e8:
        assert_is_threshold(R)
    th = threshold(R)
    assert th.lower <= th.upper
    assert th.gap < 1e-6
    assert th.status == ("optimal" if th.gap <= 1e-9 else "best_found")


def test_too_few_steps_are_reported() -> None:
    R = load_wine().correlation
    with pytest.warns(NotCertifiedWarning, match="gap"):
        th = certify_threshold(solve_threshold(R, Settings(tuple(map(str, range(13))), max_iter=1)))
    assert th.status == "best_found"
    assert th.lower < threshold(R).lower < th.upper


def test_non_binding_variables_have_the_best_completion() -> None:
    """Turn the others within the orthogonal complement: no mean fidelity above the returned one."""
    R = np.asarray(wdi_correlation().correlation)
    th = threshold(R)
    free = np.flatnonzero(th.weights == 0)
    assert len(free) >= 2
    root = np.linalg.cholesky(R).T
    tried = 0
    W = root @ th.T
    rng = np.random.default_rng(0)
    for scale in (1e-4, 1e-2, 1.0):
        for _ in range(50):
            A = scale * rng.normal(size=(len(free), len(free)))
            Q = np.linalg.qr(np.eye(len(free)) + A - A.T)[0]
            Q *= np.sign(np.diag(Q))
            turned = W[:, free] @ Q
            f = np.sum(root[:, free] * turned, axis=0)
            if f.min() >= th.value:
                tried += 1
                assert f.mean() <= th.fidelity[free].mean() + 1e-10
    assert tried > 10


def test_callback_sees_the_gap_close() -> None:
    seen: list[tuple[int, float, float]] = []
    threshold(load_wine().correlation, callback=lambda *args: seen.append(args))
    assert all(lower <= upper + 1e-14 for _, upper, lower in seen)
    assert seen[-1][1] - seen[-1][2] < 1e-9


def test_relative_floors() -> None:
    """t such that f_j ≥ t·floor_j; a zero floor asks for nothing."""
    R = make_system(7, seed=2)
    floors = np.array([0.5, 0.9, 0.0, 0.7, 1.0, 0.0, 0.3])
    edge = exact_threshold(R, floors)
    assert edge.upper - edge.lower < 1e-9
    assert np.all(edge.fidelity >= edge.lower * floors - 1e-12)
    assert decorrelate(R, np.minimum(floors * edge.lower * (1 - 1e-7), 1)).status == "exact"


def test_weights_that_vanish_together_leave_together():
    """Two weights fall by the same factor; their ratio keeps one fidelity below the threshold."""
    R = np.array(
        [
            [1.0, 0.1364, -0.406, 0.0404],
            [0.1364, 1.0, -0.0582, 0.5109],
            [-0.406, -0.0582, 1.0, -0.0009],
            [0.0404, 0.5109, -0.0009, 1.0],
        ]
    )
    edge = exact_threshold(R)
    assert edge.gap < 1e-12
    pair = 0.5 * (np.sqrt(1.0 + R[1, 3]) + np.sqrt(1.0 - R[1, 3]))  # the threshold of two variables
    assert edge.lower == pytest.approx(pair, abs=1e-12)
    assert np.allclose(edge.weights, [0.0, 0.5, 0.0, 0.5])
