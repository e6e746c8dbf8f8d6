"""Arguments at the ends of floating point, and columns of odd types: an answer or a message."""

import warnings

import numpy as np
import polars as pl
import pytest

from skcoral import CORAL, decorrelate, frontier, maximize_fidelity, threshold
from skcoral.data.moments import Moments
from skcoral.exceptions import CoralError, InvalidArgumentError

R = 0.5 * np.eye(3) + 0.5
X = np.random.default_rng(0).normal(size=(20, 3))


def test_oversized_parts_are_refused_with_a_message():
    giant = 10**400
    for work in (
        lambda: Moments.from_rows([[1.0, giant]]),
        lambda: threshold([[1, giant], [giant, 1]]),
        lambda: decorrelate(R, giant),
        lambda: decorrelate(R, {"x0": -giant}),
        lambda: decorrelate(R, 0.9, tol=giant),
        lambda: maximize_fidelity(R, giant),
        lambda: maximize_fidelity(R, 10**5000),
        lambda: decorrelate(R, 0.9, support=-giant),
        lambda: decorrelate(R, 0.9, max_iter=-(10**5000)),
        lambda: threshold(R, tol=10**5000),
        lambda: CORAL(tol=giant).fit(X),
        lambda: CORAL().fit(X, sample_weight=[giant] * 20),
    ):
        with pytest.raises(CoralError):
            work()


def test_wide_whole_numbers_of_polars():
    squares = pl.Series("i", [k * k % 7 for k in range(20)], dtype=pl.Int128)
    frame = pl.DataFrame({"a": X[:, 0], "b": X[:, 1]}).with_columns(squares)
    plain = frame.with_columns(pl.col("i").cast(pl.Float64))
    np.testing.assert_allclose(CORAL().fit(frame).T_, CORAL().fit(plain).T_)


@pytest.mark.parametrize("floor", [1 + 1e-12, 1 + 3e-16, -1e-300, -5e-324])
def test_floors_just_outside_are_quoted_with_all_digits(floor):
    for asked in (floor, [floor, 0.5, 0.5], {"x0": floor}):
        with pytest.raises(InvalidArgumentError, match=repr(float(floor)).replace(".", r"\.")):
            decorrelate(R, asked)


@pytest.mark.parametrize("tiny", [5e-324, 1e-310, 1e-200, 1e-155, 1e-17])
def test_negligible_correlations(tiny):
    near = np.eye(3)
    near[0, 1] = near[1, 0] = tiny
    near[1, 2] = near[2, 1] = -tiny
    mask = np.array([[1, 1, 1], [1, 1, 0], [0, 0, 1]])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert threshold(near).value == pytest.approx(1)
        for criterion in ("squared", "worst", "absolute"):
            for floor in (0.5, 0.99, 1.0):
                assert decorrelate(near, floor, criterion=criterion).objective <= 4e-17
            assert decorrelate(near, 0.99, criterion=criterion, support=mask).objective <= 4e-17
        assert maximize_fidelity(near, 0.1).min_fidelity == pytest.approx(1)
        assert maximize_fidelity(near, 0.0).min_fidelity == pytest.approx(1)
        frontier(near)
