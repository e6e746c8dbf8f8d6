"""Dependent rows: groups and blocks are drawn, left out and summed together."""

import numpy as np
import pandas as pd
import pytest

from skcoral import CORAL
from skcoral.exceptions import InvalidArgumentError
from skcoral.stability import bootstrap, holdout
from skcoral.stability.dependence import Dependence, automatic_block_length, read_dependence


def ar(n, phi, seed=0):
    x = np.random.default_rng(seed).normal(size=n)
    for i in range(1, n):
        x[i] += phi * x[i - 1]
    return x


def test_automatic_length_against_the_known_optimum():
    # for AR(1) the best length of the stationary bootstrap is (2φ/(1−φ²))^(2/3) n^(1/3)
    n = 4000
    for phi in (0.3, 0.6, 0.8):
        length = np.mean([automatic_block_length(ar(n, phi, seed)) for seed in range(12)])
        best = (2 * phi / (1 - phi**2)) ** (2 / 3) * n ** (1 / 3)
        assert length == pytest.approx(best, rel=0.25)
    assert automatic_block_length(np.random.default_rng(0).normal(size=n)) < 4
    for n in (2, 5, 50):
        assert automatic_block_length(np.zeros(n)) == 1.0
    assert automatic_block_length(np.arange(4.0)) >= 1.0


def test_blocks_reproduce_the_variance_of_a_mean():
    n, phi = 2000, 0.6
    x = ar(n, phi)
    known = Dependence(n, block_length=25)
    means = [x[known.drawn(seed)].mean() for seed in range(400)]
    truth = 1 / (1 - phi) ** 2 / n
    assert np.var(means) == pytest.approx(truth, rel=0.35)
    rows = Dependence(n)
    alone = [x[rows.drawn(seed)].mean() for seed in range(400)]
    assert np.var(alone) < 0.5 * truth


def test_blocks_are_left_out_in_order_of_time():
    left = [test for _, test in Dependence(80, block_length=10).folds(4)]
    assert [(part[0], part[-1], len(part)) for part in left] == [
        (start, start + 19, 20) for start in (0, 20, 40, 60)
    ]
    rows = np.column_stack([ar(300, 0.8), ar(300, 0.5, seed=1)])
    lengths = {read_dependence(rows + far, None, "auto").block_length for far in (0, 100)}
    assert len(lengths) == 1


def test_groups_are_drawn_and_left_out_whole():
    labels = np.array(list("aabbbcddeeffgghh"))
    known = read_dependence(np.zeros((16, 1)), groups=labels)
    for seed in range(20):
        drawn = np.bincount(known.drawn(seed), minlength=16)
        counts = pd.Series(drawn).groupby(labels).nunique()
        assert (counts == 1).all()
    left = [set(labels[test]) for _, test in known.folds(4)]
    assert sum(map(len, left)) == len(set().union(*left)) == 8


def test_sums_of_units_have_the_mean_of_the_rows():
    rng = np.random.default_rng(0)
    values, w = rng.normal(size=(30, 2)), rng.random(30)
    for known in (
        Dependence(30, weights=w),
        Dependence(30, groups=np.arange(30) // 4, weights=w),
        Dependence(30, block_length=7),
        Dependence(30, weights=np.arange(30.0)),
    ):
        weights = np.ones(30) if known.weights is None else known.weights
        np.testing.assert_allclose(
            known.sums(values, known.units()).mean(axis=0),
            weights @ values / weights.sum(),
            rtol=1e-10,
        )


def test_hold_out_keeps_the_past_before_the_future():
    X = pd.DataFrame(np.random.default_rng(0).normal(size=(60, 2)), columns=["a", "b"])
    late = X.set_index(pd.date_range("2024", periods=60)[::-1])
    by_date, by_hand = holdout(CORAL(0.9), late), []
    for k in range(5):
        start = 10 * (k + 1)
        by_hand.append((np.arange(60)[::-1][:start], np.arange(60)[::-1][start : start + 10]))
    expected = holdout(CORAL(0.9), X, cv=by_hand)
    np.testing.assert_allclose(by_date.fidelity_new, expected.fidelity_new)
    periods = holdout(CORAL(0.9), late.set_index(late.index.to_period("D")))
    np.testing.assert_allclose(periods.fidelity_new, expected.fidelity_new)
    assert by_date.left_out == periods.left_out == "later"
    assert (expected.left_out, holdout(CORAL(0.9), X, cv=2).left_out) == ("others", "rows")
    assert holdout(CORAL(0.9), X, cv=2, groups=np.arange(60) % 9).left_out == "groups"


def test_hold_out_with_weights_is_that_of_repeated_rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, 3)) @ (np.eye(3) + 0.5 * rng.normal(size=(3, 3)))
    counts = rng.integers(1, 4, size=50)
    part = np.arange(50) % 2
    one = holdout(CORAL(0.9), X, cv=[(part == 0, part == 1)], sample_weight=counts)
    again = np.repeat(part, counts)
    two = holdout(CORAL(0.9), np.repeat(X, counts, axis=0), cv=[(again == 0, again == 1)])
    for name in ("fidelity_fitted", "fidelity_new", "residual_new", "criterion_new"):
        np.testing.assert_allclose(getattr(one, name), getattr(two, name), atol=1e-7)


def test_bootstrap_with_weights_and_groups():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    wide = bootstrap(
        CORAL(), np.repeat(X, 3, axis=0), groups=np.repeat(np.arange(60), 3), n_boot=40
    )
    narrow = bootstrap(CORAL(), np.repeat(X, 3, axis=0), n_boot=40)
    assert np.std(wide.threshold_samples) > 1.2 * np.std(narrow.threshold_samples)
    weighted = bootstrap(CORAL(), X, sample_weight=rng.random(60) + 0.5, n_boot=5)
    assert len(weighted.threshold_samples) == 5
    shrunk = bootstrap(CORAL(covariance="OAS"), X, n_boot=5)
    assert len(shrunk.threshold_samples) == 5
    mean = shrunk.threshold_samples.mean()
    assert shrunk.threshold_estimate == pytest.approx(min(2 * shrunk.threshold - mean, 1.0))
    high, low = 2 * shrunk.threshold - np.quantile(shrunk.threshold_samples, [0.025, 0.975])
    assert shrunk.threshold_interval == pytest.approx((low, min(high, 1.0)))


def test_effective_numbers():
    weights = np.array([1.0, 2.0, 3.0, 4.0])
    assert Dependence(4, weights=weights).n_effective == pytest.approx(100 / 30)
    assert Dependence(8, groups=np.arange(8) // 2).n_effective == 4.0
    assert Dependence(9, block_length=2).n_effective == 4.0


@pytest.mark.parametrize(
    ("groups", "said"),
    [
        (list("aabbccaabb"), "^3 groups are too few .* at least 4 are needed. Without groups, "),
        (["a"] * 10, "^1 group is too few"),
        (["a", None, *"bcdefghi"], "^1 row has no group; .* number 2 of the rows used"),
        ([*"abcdefg", np.nan, "h", np.nan], "^2 of 10 rows have no group; .* number 8 of"),
    ],
)
def test_groups_that_tell_nothing_are_refused_in_words_of_the_table(groups, said):
    labels = np.array(groups, dtype=object)
    with pytest.raises(InvalidArgumentError, match=said):
        read_dependence(np.zeros((10, 1)), groups=labels)
