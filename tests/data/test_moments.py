"""Moments against exact rational arithmetic, whatever the batches, the weights and the offsets."""

from fractions import Fraction
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skcoral.data.moments import Moments, merge_all
from skcoral.exceptions import InvalidArgumentError, InvalidTableError


def exact_moments(X, weights=None):
    """Mean and co-moment in rational arithmetic: no rounding at all."""
    n, p = X.shape
    w = [Fraction(1)] * n if weights is None else [Fraction(float(v)) for v in weights]
    rows = [[Fraction(float(v)) for v in row] for row in X]
    total = sum(w)
    mean = [sum(w[k] * rows[k][j] for k in range(n)) / total for j in range(p)]
    comoment = np.empty((p, p))
    for a in range(p):
        for b in range(p):
            comoment[a, b] = float(
                sum(w[k] * (rows[k][a] - mean[a]) * (rows[k][b] - mean[b]) for k in range(n))
            )
    return np.array([float(m) for m in mean]), comoment


def correlated_table(n, p, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, p)) @ rng.normal(size=(p, p))


def relative_error(moments, X, weights=None):
    """Largest error of the co-moment, in units of the columns' own spread."""
    _, exact = exact_moments(X, weights)
    size = np.sqrt(np.diag(exact))
    return np.abs((moments.comoment - exact) / np.outer(size, size)).max()


def tables_that_lose_digits():
    X = correlated_table(300, 4)
    for mean_in_sd in (0.0, 1e4, 1e8):
        yield X + mean_in_sd * X.std(axis=0) * np.array([1.0, -1.0, 0.5, 0.0])
    yield np.vstack([[1e9, -1e9, 1e9, 1.0], X + 5.0])  # a first row that is an outlier
    yield np.sort(X, axis=0) * 1e6  # later batches lie far from the first rows
    yield (X + 100).astype(np.float32)  # summed in double precision


@pytest.mark.parametrize("batch", [1, 7, 64, 301])
@pytest.mark.parametrize("X", [*tables_that_lose_digits()])
def test_no_table_loses_digits(X, batch):
    moments = Moments(list("abcd"))
    for start in range(0, len(X), batch):
        moments.update(X[start : start + batch])
    mean, _ = exact_moments(X)
    assert relative_error(moments, X) < 1e-12
    assert np.all(abs(moments.mean - mean) <= 4e-16 * abs(mean) + 1e-14 * X.std(axis=0))
    assert moments.n_rows == moments.weight == len(X)


@given(
    cuts=st.lists(st.integers(0, 40), max_size=5),
    order=st.randoms(use_true_random=False),
    seed=st.integers(0, 5),
)
@settings(max_examples=40, deadline=None)
def test_any_partition_merged_in_any_order(cuts, order, seed):
    X = correlated_table(40, 3, seed) * [1e-8, 1.0, 1e8] + [1.0, 0.0, 1e9]
    edges = [0, *sorted(cuts), 40]
    parts = [Moments.from_rows(X[a:b]) for a, b in pairwise(edges)]  # empty parts included
    order.shuffle(parts)
    merged = merge_all(parts)
    assert merged.n_rows == 40
    assert relative_error(merged, X) < 1e-12
    mean, _ = exact_moments(X)
    # A mean that is nearly zero by chance is known no better than the numbers it is the mean of.
    assert np.all(abs(merged.mean - mean) <= 1e-14 * np.maximum(abs(mean), X.std(axis=0)))


def test_merging_changes_neither_side():
    X = correlated_table(20, 3)
    left, right = Moments.from_rows(X[:8]), Moments.from_rows(X[8:])
    before = left.comoment.copy(), right.comoment.copy()
    left.merge(right)
    np.testing.assert_array_equal(left.comoment, before[0])
    np.testing.assert_array_equal(right.comoment, before[1])


def test_sums_with_weights_are_those_of_repeated_rows():
    X = correlated_table(30, 3)
    counts = np.random.default_rng(1).integers(0, 4, size=30)
    repeated = Moments.from_rows(np.repeat(X, counts, axis=0))
    weighted = Moments.from_rows(X, sample_weight=counts)
    np.testing.assert_allclose(weighted.mean, repeated.mean, rtol=1e-13)
    np.testing.assert_allclose(weighted.comoment, repeated.comoment, rtol=1e-12)
    assert weighted.n_rows == (counts > 0).sum()
    assert weighted.weight == counts.sum()


def test_fractional_weights_against_exact_arithmetic():
    X = correlated_table(50, 3) + 1e7
    weights = np.random.default_rng(2).gamma(0.5, size=50)
    split = Moments.from_rows(X[:20], sample_weight=weights[:20]).merge(
        Moments.from_rows(X[20:], sample_weight=weights[20:])
    )
    assert relative_error(split, X, weights) < 1e-12


def test_rows_of_weight_zero_are_not_seen():
    X = correlated_table(20, 2)
    spoiled = np.vstack([[[np.inf, np.nan]], X])
    weights = np.r_[0.0, np.ones(20)]
    moments = Moments.from_rows(spoiled, sample_weight=weights)
    assert relative_error(moments, X) < 1e-14
    assert moments.n_rows == 20


@pytest.mark.parametrize("value", [0.0, 0.1, -1e30, 1 / 3])
def test_constant_columns_are_found_whatever_the_batches(value):
    X = correlated_table(50, 2)
    X[:, 1] = value
    moments = Moments(["varies", "flat"])
    for start in range(0, 50, 7):
        moments.update(X[start : start + 7])
    assert moments.constant_columns() == ("flat",)
    full = merge_all(Moments.from_rows(part, names=["varies", "flat"]) for part in (X[:3], X[3:]))
    assert full.constant_columns() == ("flat",)


def test_a_computed_constant_is_constant_and_a_small_spread_is_not():
    X = correlated_table(60, 2)
    X[:, 0] = np.where(np.arange(60) % 2, 0.1 + 0.2, 0.3)
    X[:, 1] = 1e8 + 1e-3 * X[:, 1]
    assert Moments.from_rows(X).constant_columns() == ("x0",)
    assert Moments.from_rows(X * [1.0, 1e-120]).constant_columns() == ("x0",)


def test_state_round_trip_is_exact():
    X = correlated_table(30, 3) * 1e5 + 1e9
    moments = Moments(["a", "b", "c"])
    for row in X:
        moments.update(row[None], sample_weight=[0.3])
    again = Moments.from_state(moments.state())
    assert again.names == moments.names
    assert (again.n_rows, again.weight) == (moments.n_rows, moments.weight)
    more = correlated_table(5, 3, seed=3)
    np.testing.assert_array_equal(again.update(more).comoment, moments.update(more).comoment)
    np.testing.assert_array_equal(again.mean, moments.mean)


def test_no_row_is_kept():
    X = correlated_table(30, 3)
    moments = Moments(list("abc"))
    for row in X:
        moments.update(row[None])
    numbers = np.concatenate([np.ravel(v) for k, v in moments.state().items() if k != "names"])
    assert not np.isin(X, numbers).any()


def test_other_columns_cannot_be_merged():
    with pytest.raises(InvalidTableError, match="no moments"):
        merge_all([])
    left = Moments(["a", "b"])
    with pytest.raises(InvalidTableError, match=r"`a`.*`c`"):
        left.merge(Moments(["b", "c"]))
    with pytest.raises(InvalidTableError, match="another order"):
        left.merge(Moments(["b", "a"]))


def test_bad_rows_are_refused_and_leave_no_trace():
    X = correlated_table(10, 2)
    moments = Moments(["a", "b"]).update(X)
    before = moments.comoment.copy()
    for bad in ([[1.0, np.nan]], [[1.0, np.inf]], [[0.0, 1e200]]):
        with pytest.raises(InvalidTableError, match="`b`"):
            moments.update(bad)
    np.testing.assert_array_equal(moments.comoment, before)
    assert moments.n_rows == 10
    with pytest.raises(InvalidTableError, match=r"2 columns .*shape \(1, 3\)"):
        moments.update([[1.0, 2.0, 3.0]])


RANGE = "between 1e-100 and 1e\\+100"  # beyond it, squares leave that of floating point


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([1.0], "one number per row"),
        ([1.0, -1.0, 1.0], "row 1"),
        ([1.0, 1.0, np.nan], "row 2"),
        *(([size, size, 0.0], RANGE) for size in (5e-324, 0.3e-100, 3e100, 1e300)),
    ],
)
def test_bad_weights(weights, message):
    with pytest.raises(InvalidTableError, match=message):
        Moments.from_rows(np.arange(6.0).reshape(3, 2) ** 2, sample_weight=weights)


@pytest.mark.parametrize("size", [3e-100, 0.3e100])
def test_weights_at_the_ends_of_their_range(size):
    Moments.from_rows(np.arange(6.0).reshape(3, 2) ** 2, sample_weight=[size, size, 0.0])


@pytest.mark.parametrize("size", [1e-90, 1.0 / 50, 1.02 / 50, 0.5, 1e90])
def test_weights_are_aweights_of_numpy_whatever_their_scale(size):
    X = correlated_table(50, 3)
    even = Moments.from_rows(X, sample_weight=np.full(50, size))
    np.testing.assert_allclose(even.covariance, np.cov(X.T), rtol=1e-12)
    weights = np.random.default_rng(4).gamma(2.0, size=50)
    given = Moments.from_rows(X, sample_weight=size * weights)
    np.testing.assert_allclose(given.covariance, np.cov(X.T, aweights=weights), rtol=1e-12)
    assert given.effective_rows == pytest.approx(weights.sum() ** 2 / (weights**2).sum())


def test_the_columns_of_a_frame_are_known_by_name():
    X = pd.DataFrame(correlated_table(20, 3), columns=["a", "b", "c"])
    assert Moments.from_rows(X).names == ("a", "b", "c")
    assert Moments.from_rows(X.set_axis([0, 1, 2], axis=1)).names == ("x0", "x1", "x2")
    turned = X[["c", "a", "b"]]
    with pytest.raises(InvalidTableError, match="another order"):
        Moments.from_rows(X).merge(Moments.from_rows(turned))
    moments = Moments(["a", "b", "c"]).update(X)
    with pytest.raises(InvalidTableError, match="order the columns by these names"):
        moments.update(turned)
    assert moments.n_rows == 20
    with pytest.raises(InvalidTableError, match=r"Moments\.from_rows"):
        moments.merge(X)


def test_cells_without_a_number_are_refused():
    for text in ("text", "1.5"):
        with pytest.raises(InvalidTableError, match=f"numbers.*{text}"):
            Moments(["a"]).update([[text]])
    masked = np.ma.masked_greater(correlated_table(20, 3), 0.5)
    with pytest.raises(InvalidTableError, match=r"mean or variance of `x0`, .*missing"):
        Moments.from_rows(masked)
    with pytest.raises(InvalidTableError, match=r"mean or variance of `x0`, .*missing"):
        Moments(["x0", "x1", "x2"]).update(masked)
    with pytest.raises(InvalidTableError, match="sample_weight must be real"):
        Moments.from_rows(np.ones((2, 1)), sample_weight=[1.0, 1j])
    with pytest.raises(InvalidArgumentError, match="more than once: `a`"):
        Moments(["a", "b", "a"])


@pytest.mark.parametrize(
    ("field", "value"),
    [("n_rows", -1), ("weight", float("nan")), ("mean", np.inf), ("comoment", -1.0)],
)
def test_a_state_that_no_rows_have(field, value):
    state = Moments.from_rows(correlated_table(9, 2)).state()
    state[field] = np.full_like(state[field], value)
    with pytest.raises(InvalidTableError, match="cannot be the moments"):
        Moments.from_state(state)


@pytest.mark.parametrize("weighted", [False, True])
def test_the_layout_in_memory_does_not_matter(weighted):
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(177, 5)) @ rng.normal(size=(5, 5)) + 3.0
    weights = rng.uniform(size=177) if weighted else None
    first, *others = (
        Moments.from_rows(table, sample_weight=weights)
        for table in (rows, np.asfortranarray(rows), np.repeat(rows, 2, axis=1)[:, ::2])
    )
    for other in others:
        np.testing.assert_array_equal(other.covariance, first.covariance)
        np.testing.assert_array_equal(other.mean, first.mean)


@pytest.mark.parametrize(("spread", "flat"), [(3e-150, False), (0.3e-150, True)])
def test_a_spread_that_is_too_small_for_squares(spread: float, flat: bool) -> None:
    X = spread * np.array([[-1.0], [1.0]] * 3)
    assert Moments.from_rows(X).constant_columns() == (("x0",) if flat else ())
