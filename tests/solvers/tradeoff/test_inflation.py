"""The highest common floor within a limit on the VIF, against definitions and closed forms."""

from __future__ import annotations

import json

import numpy as np
import pytest
from scipy.linalg import toeplitz

import conic
from certificates import verifier
from skcoral import maximize_fidelity, threshold
from skcoral.certificates import certificate_text, check, prove
from skcoral.core.linalg import correlation_of_covariance
from skcoral.core.tolerances import LIMIT_GAP
from skcoral.datasets import load_wine, make_system
from skcoral.solvers.tradeoff.inflation import highest_floor
from skcoral.solvers.tradeoff.inflation_equations import Equations, Point, off_diagonal
from systems import nearly_singular


def equicorrelation(p: int, r: float) -> np.ndarray:
    return (1 - r) * np.eye(p) + r


def family(name: str, p: int) -> np.ndarray:
    rng, k = np.random.default_rng(p), np.arange(1, p + 1.0)
    if name == "factors":
        loadings = rng.normal(0, 0.7, (p, 3))
        return correlation_of_covariance(
            loadings @ loadings.T + np.diag(0.05 + rng.uniform(size=p))
        )
    if name == "one factor":
        a = rng.uniform(0.5, 0.99, p)
        return correlation_of_covariance(np.outer(a, a) + np.diag(1 - a**2))
    if name == "brownian":
        return correlation_of_covariance(np.minimum(k[:, None], k))
    if name == "sample":
        return correlation_of_covariance(np.cov(rng.normal(size=(2 * p, p)).T))
    if name == "blocks":
        return correlation_of_covariance(
            np.kron(np.eye((p + 3) // 4), equicorrelation(4, 0.8))[:p, :p]
        )
    if name == "nearly a sum":
        rows = rng.normal(size=(200, p))
        rows[:, 0] = rows[:, 1:].sum(axis=1) + 1e-4 * rng.normal(size=200)
        return correlation_of_covariance(np.cov(rows.T))
    pair = np.eye(p)
    pair[0, 1] = pair[1, 0] = 1 - 1e-7
    return pair


NAMES = ["factors", "one factor", "brownian", "sample", "blocks", "nearly a sum", "pair"]


def vif_of(G: np.ndarray) -> np.ndarray:
    return np.diag(np.linalg.inv(G))


def certified(R: np.ndarray, limit: float, judges=(check,)):
    answer = maximize_fidelity(R, limit, criterion="vif")
    for judge in judges:
        assert judge(answer, R).problems == ()
    T = answer.T
    np.testing.assert_allclose(np.diag(T.T @ R @ T), 1, atol=1e-10)
    assert np.diag(R @ T).min() >= answer.rho_min[0] - 1e-10
    assert 0 <= answer.goal.rho_upper - answer.rho_min[0] <= 0.5 * LIMIT_GAP
    assert "rho_upper=" in repr(answer)
    assert "gap=" not in repr(answer)  # of the residual, which need not be the least
    return answer


@pytest.mark.parametrize(("name", "p"), [(n, (4, 12)[i % 2]) for i, n in enumerate(NAMES)])
def test_families_are_certified_at_every_limit(name: str, p: int) -> None:
    R = family(name, p)
    largest = vif_of(R).max()
    floors = []
    limits = [1 + 1e-12, 1 + 1e-9, 1 + 1e-6, 1.0001, 1.01, 1.3, 2.0, 5.0, 100.0, 1e6]
    limits = [limit for limit in limits if limit < largest]
    limits += [1 + 0.99 * (largest - 1), (1 - 1e-6) * largest]
    for limit in limits:
        answer = certified(R, limit)
        assert answer.goal.largest_vif <= limit * (1 + 1e-9)
        floors.append(answer.rho_min[0])
    assert floors[0] >= threshold(R).lower - 1e-7
    order = np.argsort(limits)
    assert np.all(np.diff(np.array(floors)[order]) >= -LIMIT_GAP)
    for limit in (1.001 * largest, 1e3 * largest):
        answer = certified(R, limit)
        assert answer.rho_min[0] == 1.0
        np.testing.assert_array_equal(answer.T, np.eye(p))


def test_a_limit_of_one_is_exact_decorrelation() -> None:
    for R in (load_wine().correlation, make_system(6)):
        answer = maximize_fidelity(R, 1.0, criterion="vif")
        assert answer.rho_min[0] == threshold(R).lower
        assert answer.status == "exact"
        next_to = certified(R, 1 + 1e-15)
        assert next_to.rho_min[0] == pytest.approx(threshold(R).value, abs=1e-7)


@pytest.mark.parametrize("name", ["factors", "one factor", "brownian", "sample", "blocks"])
@pytest.mark.parametrize("limit", [1.05, 1.5, 2.5])
def test_agrees_with_a_semidefinite_program(name: str, limit: float) -> None:
    R = family(name, 6)
    if vif_of(R).max() > limit:
        assert certified(R, limit).rho_min[0] == pytest.approx(
            conic.highest_floor(R, limit), abs=2e-6
        )


@pytest.mark.parametrize("limit", [1.0, 1 + 1e-9, 1.2, 3.0])
def test_every_judge_accepts_the_certificate(limit: float) -> None:
    for R in (load_wine().correlation, toeplitz(0.7 ** np.arange(9)), nearly_singular(7)):
        answer = certified(R, limit, judges=(check, prove))
        assert verifier.problems(json.loads(certificate_text(answer, R)), R) == []


def test_many_variables_are_certified() -> None:
    for name in ("factors", "sample"):
        answer = certified(family(name, 40), 1.5)
        assert answer.goal.largest_vif == pytest.approx(1.5, abs=1e-6)


def test_the_callback_sees_the_two_fidelities_meet() -> None:
    seen = []
    highest_floor(load_wine().correlation, 2.0, lambda *args: seen.append(args))
    steps, values, weakest = map(np.array, zip(*seen, strict=True))
    np.testing.assert_array_equal(steps, np.arange(len(seen)))
    assert abs(values[-1] - weakest[-1]) < 1e-7 < values[0] - weakest[0]


def a_point(seed: int, p: int = 6) -> Point:
    rng = np.random.default_rng(seed)
    R, G = (correlation_of_covariance(np.cov(rng.normal(size=(3 * p, p)).T)) for _ in range(2))
    lam = rng.dirichlet(np.ones(p))
    return Point(np.linalg.cholesky(R).T, 1.5, G, lam)


@pytest.mark.parametrize("seed", range(4))
def test_the_point_is_what_its_definitions_say(seed: int) -> None:
    at = a_point(seed)
    A, W, lam, G = at.A, at.outputs, at.lam, at.G
    np.testing.assert_allclose(W.T @ W, G, atol=1e-13)
    np.testing.assert_allclose(np.diag(A.T @ W), at.fidelity, atol=1e-13)
    N = (A * lam).T @ (A * lam)
    np.testing.assert_allclose(at.H @ G @ at.H, N, atol=1e-14)
    np.testing.assert_allclose(at.vif, vif_of(G), rtol=1e-12)
    np.testing.assert_allclose(at.slack, 1 / vif_of(G) - 1 / 2.5, atol=1e-13)
    # no other outputs with these correlations have more, and φ has the slopes that are claimed
    rng = np.random.default_rng(seed)
    for _ in range(20):
        Q = np.linalg.qr(rng.normal(size=G.shape))[0]
        assert lam @ np.diag(A.T @ Q @ W) <= at.value + 1e-13
    E, d = off_diagonal(rng.normal(size=G.shape)), 1e-6 * rng.normal(size=len(G))
    ahead, behind = (at.at(G + sign * 1e-6 * E, lam) for sign in (1, -1))
    assert ahead.value - behind.value == pytest.approx(1e-6 * np.sum(at.H * E), rel=1e-6)
    ahead, behind = (at.at(G, lam * (1 + sign * d)) for sign in (1, -1))
    assert ahead.value - behind.value == pytest.approx(2 * (lam * d) @ at.fidelity, rel=1e-6)


@pytest.mark.parametrize("seed", range(4))
def test_newtons_equations_are_the_derivatives_of_the_conditions(seed: int) -> None:
    """Against differences of ``½H + G⁻¹ Diag(κu²) G⁻¹`` and of ``λ_j f_j``, along the solution."""
    at, rng = a_point(seed), np.random.default_rng(seed)
    p = at.p
    kappa, t, z = rng.uniform(0.01, 0.1, (3, p))
    system = Equations(at, 2 * kappa / at.vif**2, t, z, allowed=1e-13)
    b, c = off_diagonal(rng.normal(size=(p, p))), rng.normal(size=p)
    E, d, beyond = system.solve(b, c)
    assert at.lam @ d == pytest.approx(0.0, abs=1e-12)
    step = 1e-6

    def conditions(sign: float) -> tuple[np.ndarray, np.ndarray]:
        G, lam = at.G + sign * step * E, at.lam * (1 + sign * step * d)
        moved = at.at(G, lam)
        prices = kappa - kappa / t * (moved.slack - at.slack) + sign * step * beyond
        M = 0.5 * moved.H + (moved.X * (prices / moved.vif**2)) @ moved.X
        return off_diagonal(M), moved.fidelity

    ends = [conditions(sign) for sign in (1.0, -1.0)]
    stationary, fidelity = ((x - y) / (2 * step) for x, y in zip(*ends, strict=True))
    np.testing.assert_allclose(stationary, -b, atol=1e-6 * np.abs(b).max() * 10)
    missing = c - at.lam * fidelity - at.lam * z * d  # a multiple of λ: the common floor
    np.testing.assert_allclose(missing / at.lam, (missing / at.lam).mean(), atol=1e-5)
