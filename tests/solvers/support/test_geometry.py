"""The caps: unit variance, fidelity and derivatives, against definitions and finite differences."""

import numpy as np
import pytest

from skcoral.solvers.support.caps import feasible_set, fold, unfold
from skcoral.solvers.support.objectives import (
    absolute_loss,
    on_spheres,
    power_loss,
    residuals,
    squared_loss,
)
from skcoral.solvers.support.quasi_newton import descend

FLOORS = (0.0, 0.6, 0.95, "mixed", 1.0)


def floors_of(kind, p):
    return np.linspace(0, 0.99, p) if kind == "mixed" else np.full(p, kind)


def random_points(space, n, seed=0):
    X = np.where(space.valid, np.random.default_rng(seed).normal(size=(n, space.p, space.m)), 0.0)
    return X / np.linalg.norm(X, axis=2, keepdims=True)


@pytest.mark.parametrize("kind", FLOORS)
def test_every_point_is_feasible(sparse_cases, kind):
    for R, mask in sparse_cases:
        floors = floors_of(kind, len(R))
        space = feasible_set(R, mask, floors)
        U = space.onto_caps(fold(space, random_points(space, 20)))
        T = space.transform(U)
        for t in T:
            np.testing.assert_allclose(np.diag(t.T @ R @ t), 1, atol=1e-13)
            assert (np.diag(R @ t) >= floors - 1e-13).all()
            assert not t[~mask].any()
        np.testing.assert_allclose(space.points(T), U, atol=1e-12)
        G = np.einsum("sij,ik,skl->sjl", T, R, T)
        np.testing.assert_allclose(residuals(space, U), G - np.eye(len(R)), atol=1e-12)


@pytest.mark.parametrize("kind", [0.0, 0.6, "mixed"])
def test_unfold_undoes_fold(sparse_cases, kind):
    R, mask = sparse_cases[1]
    space = feasible_set(R, mask, floors_of(kind, len(R)))
    X = random_points(space, 10)
    X[..., 0] = np.where(space.floors > 0, np.abs(X[..., 0]), X[..., 0])
    U = fold(space, X)
    np.testing.assert_allclose(fold(space, unfold(space, U, 0.0)), U, atol=1e-12)


@pytest.mark.parametrize("loss", [squared_loss, power_loss(7.0), absolute_loss(0.05)])
@pytest.mark.parametrize("kind", [0.0, 0.6, "mixed"])
def test_gradients_agree_with_finite_differences(sparse_cases, loss, kind):
    R, mask = sparse_cases[2]
    space = feasible_set(R, mask, floors_of(kind, len(R)))
    function = on_spheres(space, loss)
    rows = np.arange(1)
    Z = 1.7 * random_points(space, 1).reshape(1, -1)
    gradient = function(Z, rows)[1][0]
    for direction in random_points(space, 5, seed=9).reshape(5, -1):
        h = 1e-6
        up, down = (function(Z + s * h * direction, rows)[0][0] for s in (1, -1))
        assert gradient @ direction == pytest.approx((up - down) / (2 * h), abs=2e-7)


def test_descent_minimises_quadratics_and_never_climbs():
    rng = np.random.default_rng(2)
    A = rng.normal(size=(6, 6))
    H, b = A @ A.T + 0.1 * np.eye(6), rng.normal(size=6)

    def function(Z, rows):
        return 0.5 * np.einsum("si,ij,sj->s", Z, H, Z) - Z @ b, Z @ H - b

    starts = rng.normal(size=(7, 6)) * 10
    ended = descend(function, starts, tol=1e-9, max_iter=200)
    np.testing.assert_allclose(ended.Z, np.tile(np.linalg.solve(H, b), (7, 1)), atol=1e-7)
    short = descend(function, starts, tol=1e-9, max_iter=3)
    assert (short.value <= function(starts, None)[0]).all()
