"""Smoothed criteria over pairs of outputs: gradients against differences, and limits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from skcoral.solvers.singular.caps import on_caps
from skcoral.solvers.singular.pairs import criterion_of, lowest, smoothed


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("criterion", ["squared", "worst", "absolute"])
def test_gradients(criterion: Any, weighted: bool) -> None:
    """Twice the upper triangle counts each pair once, from both of its outputs."""
    rng = np.random.default_rng(3)
    U, move = rng.normal(size=(2, 3, 6))
    U /= np.linalg.norm(U, axis=0)
    W = rng.uniform(0.5, 2, (6, 6))
    W = 0.5 * (W + W.T) * (1 - np.eye(6)) if weighted else None
    for width in (1.0, 0.1):
        step = 1e-6
        ends = U + step * move, U - step * move
        ahead, behind = (smoothed(end, None, criterion, W, width)[0] for end in ends)
        gradient = smoothed(U, None, criterion, W, width)[1]
        assert np.sum(gradient * move) == pytest.approx((ahead - behind) / (2 * step), rel=1e-6)


@pytest.mark.parametrize("criterion", ["squared", "worst", "absolute"])
def test_narrow_smoothing_is_the_criterion(criterion: Any) -> None:
    U = np.random.default_rng(4).normal(size=(3, 6))
    U /= np.linalg.norm(U, axis=0)
    wanted = criterion_of(U, criterion, None)
    assert smoothed(U, None, criterion, None, 1e-9)[0] == pytest.approx(wanted, abs=1e-7)


@pytest.mark.parametrize("criterion", ["squared", "worst", "absolute"])
def test_stacked_outputs_are_smoothed_one_by_one(criterion: Any) -> None:
    U = np.random.default_rng(5).normal(size=(4, 3, 7))
    U /= np.linalg.norm(U, axis=1, keepdims=True)
    stacked = smoothed(U, None, criterion, None, 0.1)
    for k, u in enumerate(U):
        for part, wanted in zip(stacked, smoothed(u, None, criterion, None, 0.1), strict=True):
            np.testing.assert_allclose(part[k], wanted, rtol=1e-12, atol=1e-14)
        assert stacked[2][k] == pytest.approx(criterion_of(u, criterion))


def test_descent_from_several_starts_keeps_to_the_caps_and_loses_nothing() -> None:
    rng = np.random.default_rng(6)
    A = rng.normal(size=(3, 6))
    A /= np.linalg.norm(A, axis=0)
    floors = np.array([0.0, 0.5, 0.8, 0.9, 0.99, 1.0])
    starts = on_caps(A, A + 0.3 * rng.normal(size=(5, 3, 6)), floors)
    before = [criterion_of(U, "worst") for U in starts]
    how: dict[str, Any] = {"bound": 0.0, "goal": 1e-8, "max_iter": 100}
    U, _ = lowest(A, starts, floors, "worst", None, **how)
    assert criterion_of(U, "worst") < min(before)
    np.testing.assert_allclose((U * U).sum(axis=0), 1.0, atol=1e-14)
    assert ((A * U).sum(axis=0) >= floors - 1e-14).all()
    np.testing.assert_array_equal(U[:, 5], A[:, 5])
    met = lowest(A, starts, floors, "worst", None, **how | {"bound": min(before)})
    assert met[1] == 0  # the bound is met from the beginning
