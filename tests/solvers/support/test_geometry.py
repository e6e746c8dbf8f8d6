"""The caps: unit variance, fidelity and derivatives, against definitions and finite differences."""

import numpy as np
import pytest

from skcoral.solvers.caps import smooth_criterion
from skcoral.solvers.support.caps import feasible_set
from skcoral.solvers.support.objectives import SQUARES, descended, residuals

LOSSES = (SQUARES, ("worst", 1 / 7), ("absolute", 0.05))
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
        U = space.upright(space.spread_out(random_points(space, 20)))
        T = space.transform(U)
        for t in T:
            np.testing.assert_allclose(np.diag(t.T @ R @ t), 1, atol=1e-13)
            assert (np.diag(R @ t) >= floors - 1e-13).all()
            assert not t[~mask].any()
        np.testing.assert_allclose(space.points(T), U, atol=1e-12)
        G = np.einsum("sij,ik,skl->sjl", T, R, T)
        np.testing.assert_allclose(residuals(space, U), G - np.eye(len(R)), atol=1e-12)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("kind", [0.0, 0.6, "mixed"])
def test_descents_end_where_no_small_move_helps(sparse_cases, loss, kind):
    R, mask = sparse_cases[2]
    space = feasible_set(R, mask, floors_of(kind, len(R)))
    starts = space.onto_caps(space.spread_out(random_points(space, 3)))
    before = smooth_criterion(residuals(space, starts), *loss)[0]
    points, values = descended(space, loss, starts, tol=1e-13, max_iter=3000)
    np.testing.assert_allclose(
        smooth_criterion(residuals(space, points), *loss)[0], values, rtol=1e-12
    )
    assert (values <= before).all()
    moves = 1e-3 * random_points(space, 200, seed=9)
    for U, value in zip(points, values, strict=True):
        near = space.onto_caps(U[None] + moves)
        assert smooth_criterion(residuals(space, near), *loss)[0].min() >= value - 1e-9
        np.testing.assert_allclose(space.onto_caps(U[None])[0], U, atol=1e-12)


def test_a_penalty_pulls_to_where_it_is_least(sparse_cases):
    R, mask = sparse_cases[2]
    space = feasible_set(R, mask, np.zeros(len(R)))
    near, far = (space.upright(random_points(space, n, seed)) for n, seed in ((1, 0), (4, 1)))
    points, _ = descended(
        space,
        SQUARES,
        far,
        tol=1e-12,
        max_iter=500,
        penalty=lambda U: (1e5 * np.sum((U - near) ** 2, axis=(1, 2)), 2e5 * (U - near)),
    )
    np.testing.assert_allclose(points, np.repeat(near, 4, axis=0), atol=1e-3)


@pytest.mark.parametrize("loss", LOSSES)
def test_slopes_of_the_losses(loss):
    """``dvalue = Σ_ij C_ij dG_ij``, by a central difference; nothing has no value and no slope."""
    rng = np.random.default_rng(3)
    E, change = (np.triu(rng.normal(size=(2, 4, 4)), 1) for _ in range(2))
    E, change = E + E.swapaxes(1, 2), change + change.swapaxes(1, 2)
    omega = np.abs(rng.normal(size=(4, 4)))
    omega = omega + omega.T
    slope = smooth_criterion(E, *loss, omega)[1]
    rise = (
        smooth_criterion(E + 1e-6 * change, *loss, omega)[0]
        - smooth_criterion(E - 1e-6 * change, *loss, omega)[0]
    )
    np.testing.assert_allclose(np.einsum("sij,sij->s", slope, change), rise / 2e-6, rtol=1e-7)
    for nothing in smooth_criterion(0.0 * E, *loss):
        assert not nothing.any()
