"""Newton's method for the outputs, and products with the second derivative of the dual."""

from __future__ import annotations

import numpy as np
import pytest

from skcoral.solvers.singular.caps import on_caps
from skcoral.solvers.singular.descent import squares
from skcoral.solvers.singular.dual import maximise_bound
from skcoral.solvers.singular.point import Curvature, frame_point
from skcoral.solvers.singular.primal import newton_outputs


@pytest.mark.parametrize("pinned", [0, 3])
def test_outputs_that_the_dual_leaves_open_reach_its_bound(tables, pinned):
    A = tables.factor_of(tables.factors(30, 400, k=1))
    floors = np.full(400, 0.9)
    floors[:pinned] = 1.0
    dual = maximise_bound(A, floors, allowed=lambda _: 1e-10, max_iter=200)
    assert dual.point.n[0] < 1e-6 * dual.point.n[-1]  # N is singular
    start = on_caps(A, A, floors)
    assert squares(start) > 1.01 * dual.bound
    U, value, steps = newton_outputs(start, floors, dual, goal=1e-8)
    assert value == pytest.approx(squares(U), rel=1e-14)
    assert value <= (1.0 + 1e-8) * dual.bound
    assert steps <= 20
    np.testing.assert_allclose((U * U).sum(axis=0), 1.0, atol=1e-14)
    assert ((A * U).sum(axis=0) >= floors - 1e-14).all()
    np.testing.assert_allclose(U[:, :pinned], A[:, :pinned], atol=1e-14)


@pytest.mark.parametrize("p", [300, 4000])
def test_products_with_the_second_derivative_are_differences_of_gradients(tables, p):
    """Many columns are multiplied in float32."""
    A = tables.factor_of(tables.factors(30, p))
    floors, r, rng = np.full(p, 0.8), len(A), np.random.default_rng(0)
    n, V = rng.uniform(0.5, 2.0, size=r), rng.normal(size=(r, r))
    V, barrier, h = V + V.T, 1e-2, 1e-4

    def gradient(step):
        values, Q = np.linalg.eigh(np.diag(n) + step * V)
        return Q @ frame_point(values, Q.T @ A, floors, barrier=barrier).gradient @ Q.T

    product = Curvature(frame_point(n, A, floors, barrier=barrier), tau=0.0).apply(V)
    expected = (gradient(-h) - gradient(h)) / (2.0 * h)
    np.testing.assert_allclose(product, expected, atol=1e-5 * np.abs(expected).max())
