"""Other rows: hold-out by hand, coverage of intervals, derivatives."""

import inspect

import joblib
import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_wine
from sklearn.model_selection import ShuffleSplit

from skcoral import CORAL, threshold
from skcoral.exceptions import InvalidArgumentError, InvalidTableError, SingularCorrelationError
from skcoral.stability import bootstrap, confident_floors, holdout, influence


@pytest.fixture(scope="module")
def wine():
    return load_wine(as_frame=True).data


def rho(X, weights=None):
    """ρ★ of a table, by NumPy's own weighted covariance."""
    C = np.cov(np.asarray(X).T, aweights=weights)
    d = np.sqrt(np.diag(C))
    return threshold(C / np.outer(d, d), tol=1e-10).value


# --- hold-out --------------------------------------------------------------------------------


def test_holdout_by_hand(wine):
    splits = list(ShuffleSplit(3, test_size=0.4, random_state=1).split(wine))
    report = holdout(CORAL(0.7), wine, cv=splits)
    for fold, (train, test) in enumerate(splits):
        coral = CORAL(0.7).fit(wine.iloc[train])
        for rows, fidelity, residual, criterion in (
            (train, report.fidelity_fitted, report.residual_fitted, report.criterion_fitted),
            (test, report.fidelity_new, report.residual_new, report.criterion_new),
        ):
            X = wine.iloc[rows].to_numpy()
            Y = coral.transform(wine.iloc[rows])
            by_hand = [np.corrcoef(X[:, j], Y[:, j])[0, 1] for j in range(13)]
            np.testing.assert_allclose(fidelity[fold], by_hand, atol=1e-9)
            E = np.abs(np.corrcoef(Y.T) - np.eye(13))
            np.testing.assert_allclose(residual[fold], E.max(axis=0), atol=1e-8)
            assert criterion[fold] == pytest.approx(0.5 * (E**2).sum(), abs=1e-8)
    frame = report.to_frame()
    assert list(frame.index) == list(wine.columns)
    np.testing.assert_allclose(frame["fidelity_new"], report.fidelity_new.mean(axis=0))
    np.testing.assert_allclose(frame["residual_new_worst"], report.residual_new.max(axis=0))
    assert "Fitted 3 times" in repr(report)
    assert "(0 on the rows fitted)" in report.sentence()


@pytest.mark.parametrize("criterion", ["squared", "absolute"])
def test_noise_beside_a_hold_out_is_that_of_independent_columns(wine, criterion):
    omega = np.triu(np.random.default_rng(0).uniform(0, 2, (3, 3)), 1)
    coral = CORAL(0.9, criterion=criterion, pair_weights=omega + omega.T)
    report = holdout(coral, wine.iloc[:60, :3], cv=3)
    rows = np.random.default_rng(1).normal(size=(4000, 20, 3))
    rows -= rows.mean(axis=1, keepdims=True)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    r = rows.transpose(0, 2, 1) @ rows
    by_hand = omega * (r**2 if criterion == "squared" else np.abs(r))
    expected = by_hand.sum(axis=(1, 2)).mean()
    np.testing.assert_allclose(report.criterion_noise, expected, rtol=0.05)


def test_what_the_guide_says_about_new_rows():
    n, m = 400, 100
    rng = np.random.default_rng(0)
    mixing = np.eye(6) + 0.3 * rng.normal(size=(6, 6))
    squares = []
    for _ in range(40):
        coral = CORAL().fit(rng.normal(size=(n, 6)) @ mixing)
        G = np.corrcoef(coral.transform(rng.normal(size=(m, 6)) @ mixing).T)
        squares.append(G[np.triu_indices(6, 1)] ** 2)
    assert np.sqrt(np.mean(squares)) == pytest.approx(np.sqrt(1 / n + 1 / m), rel=0.08)


# --- bootstrap -------------------------------------------------------------------------------


def test_bootstrap_replicates_are_refits(wine):
    report = bootstrap(CORAL(), wine, n_boot=12, random_state=5)
    assert "tables: 12" in report.summary()
    fewest = bootstrap(CORAL(), wine, n_boot=1, random_state=5)
    assert fewest.threshold_interval == report.threshold_interval
    seeds = np.random.SeedSequence(5).spawn(12)
    for seed, value in zip(seeds, report.threshold_samples, strict=True):
        counts = np.random.default_rng(seed).multinomial(178, np.full(178, 1 / 178))
        assert value == pytest.approx(rho(np.repeat(wine.to_numpy(), counts, axis=0)), abs=1e-8)
    assert report.threshold == pytest.approx(0.826231, abs=5e-7)  # as in the paper
    low, high = report.threshold_interval
    assert low < report.threshold < report.threshold_estimate < high
    assert report.fidelity_interval.shape == (2, 13)
    frame = report.to_frame()
    assert list(frame.index) == ["threshold", *wine.columns]
    assert (frame["low"] <= frame["high"]).all()
    assert report.n_failed == 0


@pytest.mark.slow  # the processes import everything anew
def test_processes_of_joblib_change_nothing(wine):
    rows = wine.iloc[:, :5]
    one = bootstrap(CORAL(0.7), rows, n_boot=6)
    with joblib.parallel_config(n_jobs=2):
        two = bootstrap(CORAL(0.7), rows, n_boot=6)
    # the same rows are drawn; each threshold is certified to 1e-9, whatever the rounding
    np.testing.assert_allclose(one.threshold_samples, two.threshold_samples, atol=1e-9, rtol=0)
    np.testing.assert_allclose(one.fidelity_interval, two.fidelity_interval, atol=1e-6, rtol=0)


def test_dependent_columns_have_no_threshold_to_resample(wine):
    X = np.column_stack([wine.iloc[:, :3], wine.iloc[:, :3].sum(axis=1)])
    with pytest.raises(SingularCorrelationError, match="x3"):
        bootstrap(CORAL(0.8), X, n_boot=5)


def test_replicates_that_fail_are_counted():
    X = np.random.default_rng(0).normal(size=(7, 4))
    report = bootstrap(CORAL(), X, n_boot=40)
    assert 0 < report.n_failed < 40
    assert len(report.threshold_samples) == 40 - report.n_failed
    assert f"{report.n_failed} more could not be fitted" in repr(report)
    with pytest.raises(InvalidTableError, match="None of 20"):
        bootstrap(CORAL(), np.random.default_rng(0).normal(size=(9, 8)), n_boot=20)


# --- influence -------------------------------------------------------------------------------


def degenerate_table():
    """The threshold of this table is bound by two of its four columns only."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(60, 4))
    X[:, 1] = 0.95 * X[:, 0] + 0.3 * X[:, 1]
    return X


@pytest.mark.parametrize("source", ["wine", "degenerate"])
def test_first_order_is_the_derivative(wine, source):
    X = wine.to_numpy() if source == "wine" else degenerate_table()
    n = len(X)
    report = influence(CORAL(), X, n_refits=0)
    if source == "degenerate":
        weights = CORAL().fit(X).threshold_.weights
        assert 0 < np.count_nonzero(weights) < 4
    h = 0.02
    for i in (0, 7, n - 1, int(np.argmax(np.abs(report.first_order)))):
        one = np.ones(n)
        step = h * (np.arange(n) == i)
        near = (rho(X, one + step) - rho(X, one - step)) / (2 * h)
        far = (rho(X, one + 2 * step) - rho(X, one - 2 * step)) / (4 * h)
        derivative = (4 * near - far) / 3
        assert report.first_order[i] == pytest.approx(-derivative, abs=2e-8)


def test_weighted_rows_are_repeated_rows(wine):
    counts = np.random.default_rng(0).integers(0, 3, size=178)
    weighted = influence(CORAL(), wine, sample_weight=counts, n_refits=0)
    repeated = influence(CORAL(), np.repeat(wine.to_numpy(), counts, axis=0), n_refits=0)
    joined = np.zeros(178)
    np.add.at(joined, np.repeat(np.arange(178), counts), repeated.first_order)
    np.testing.assert_allclose(weighted.first_order, joined, atol=1e-8)
    few = influence(CORAL(), wine.iloc[:30, :3], sample_weight=counts[:30], n_refits=30)
    assert set(few.refitted) == set(np.flatnonzero(counts[:30]))


def test_refits_are_leave_one_out(wine):
    report = influence(CORAL(), wine, n_refits=4)
    for i, value in zip(report.refitted, report.threshold_without, strict=True):
        assert value == pytest.approx(rho(np.delete(wine.to_numpy(), i, axis=0)), abs=1e-8)
    change = np.abs(report.threshold_without - report.threshold)
    assert (np.diff(change) <= 0).all()
    assert set(report.refitted) == set(np.argsort(-np.abs(report.first_order))[:4])


def test_holdout_raises_the_floors_of_each_fold_where_a_confidence_is_asked_for(wine):
    rows, groups = wine.iloc[:, :4], np.arange(178) // 2
    splits = [(np.arange(0, 178, 2), np.arange(1, 178, 2))]
    report = holdout(CORAL(0.9, confidence=0.9), rows, cv=splits, groups=groups)
    fold = CORAL(0.9, confidence=0.9).fit(rows[::2], groups=groups[::2])
    np.testing.assert_allclose(report.fidelity_fitted[0], fold.fidelity_, atol=1e-7)


def test_folds_at_fault_are_located(wine):
    for cv, message in ((1, "cv"), (-3, "cv"), (len(wine), "choose fewer folds")):
        with pytest.raises(InvalidArgumentError, match=message):
            holdout(CORAL(), wine, cv=cv)
    rare = wine.assign(rare=(np.arange(178) < 2) * 1.0)
    with pytest.raises(InvalidTableError, match=r"held back in fold \d: .*`rare`"):
        holdout(CORAL(), rare)
    with pytest.raises(InvalidTableError, match=r"fitted in fold 1: .*12 rows"):
        holdout(CORAL(on_singular="raise"), wine[:15])
    with pytest.raises(InvalidArgumentError, match="no fold"):
        holdout(CORAL(), wine, cv=[])


def test_a_row_that_determines_everything():
    X = np.random.default_rng(0).normal(size=(30, 3))
    X[:, 2] = X[:, 0]
    X[7, 2] = 9.0
    frame = pd.DataFrame(X, index=[f"site {i}" for i in range(30)], columns=list("abc"))
    report = influence(CORAL(), frame, n_refits=3)
    assert report.refitted[0] == 7
    assert report.to_frame().index[0] == "site 7"
    assert "site 7" in repr(report)
    assert np.isnan(report.threshold_without[0])
    assert np.isfinite(report.threshold_without[1:]).all()
    assert np.isnan(influence(CORAL(), X[[7, *range(3)]], n_refits=4).threshold_without).all()


def test_arguments_that_are_invalid(wine):
    for settings in (
        {"random_state": "a"},
        {"random_state": -1},
        {"confidence": "high"},
        {"confidence": 0.9999},
        {"n_boot": 0},
    ):
        with pytest.raises(InvalidArgumentError, match=next(iter(settings))):
            bootstrap(CORAL(), wine, **{"n_boot": 2} | settings)
    with pytest.raises(InvalidArgumentError, match="leave out covariance"):
        influence(CORAL(covariance="OAS"), wine)
    with pytest.raises(InvalidTableError, match="only numbers"):
        influence(CORAL(), wine, sample_weight="many")


@pytest.mark.parametrize("function", [holdout, bootstrap, influence, confident_floors])
def test_the_estimator_comes_before_the_rows(wine, function):
    assert list(inspect.signature(function).parameters)[:2] == ["estimator", "X"]
    kinds = [p.kind for p in inspect.signature(function).parameters.values()][2:]
    assert set(kinds) == {inspect.Parameter.KEYWORD_ONLY}
    with pytest.raises(InvalidArgumentError, match="The estimator comes first"):
        function(wine, CORAL(0.9))
