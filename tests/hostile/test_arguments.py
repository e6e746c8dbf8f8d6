"""Arguments at the ends of floating point, and columns of odd types: an answer or a message."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest

from skcoral import CORAL, decorrelate, frontier, maximize_fidelity, threshold
from skcoral.data.moments import Moments
from skcoral.exceptions import CoralError, InvalidArgumentError, InvalidTableError

R = 0.5 * np.eye(3) + 0.5
X = np.random.default_rng(0).normal(size=(20, 3))


def with_a_giant():
    table = X.astype(object)
    table[3, 1] = 10**400
    return table


@pytest.mark.parametrize("make", [np.asarray, pd.DataFrame, np.ndarray.tolist])
def test_whole_numbers_beyond_floating_point(make):
    with pytest.raises(InvalidTableError, match=r"Numbers are needed.*`(x1|1)`"):
        CORAL().fit(make(with_a_giant()))


def test_oversized_parts_are_refused_with_a_message():
    giant = 10**400
    for work in (
        lambda: Moments.from_rows(with_a_giant()),
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


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([{"x": 1.0}] * 20, None),
        ([[1.0, 2.0]] * 20, pl.Array(pl.Float64, 2)),
        ([[1.0]] * 20, pl.List(pl.Float64)),
        ([b"x"] * 20, pl.Binary),
        ([object()] * 20, pl.Object),
    ],
)
def test_columns_that_hold_no_numbers(values, kind):
    frame = pl.DataFrame({"a": X[:, 0], "b": X[:, 1]}).with_columns(pl.Series("odd", values, kind))
    with pytest.raises(InvalidTableError, match="`odd`"):
        CORAL().fit(frame)


def test_wide_whole_numbers_of_polars():
    squares = pl.Series("i", [k * k % 7 for k in range(20)], dtype=pl.Int128)
    frame = pl.DataFrame({"a": X[:, 0], "b": X[:, 1]}).with_columns(squares)
    plain = frame.with_columns(pl.col("i").cast(pl.Float64))
    np.testing.assert_allclose(CORAL().fit(frame).T_, CORAL().fit(plain).T_)


@pytest.mark.parametrize("size", [1e-320, 1e-200, 1e300])
def test_weights_at_the_ends_of_floating_point(size):
    with pytest.raises(InvalidTableError, match=r"between 1e-100 and 1e\+100"):
        CORAL().fit(X, sample_weight=np.full(20, size))


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
