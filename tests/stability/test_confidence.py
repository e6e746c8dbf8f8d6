"""Floors for the population: definitions, closed forms, limits, and the same answer everywhere."""

import numpy as np
import pandas as pd
import pytest
from scipy.linalg import sqrtm
from sklearn.datasets import load_wine

from skcoral import CORAL
from skcoral.exceptions import ConfidenceWarning, InvalidArgumentError, InvalidTableError
from skcoral.stability import bootstrap, confident_floors, holdout
from skcoral.stability.dependence import Dependence
from skcoral.stability.resampling import Resampler
from skcoral.stability.sampling_errors import Draws, left_out

MIXING = np.eye(5) + 0.4 * np.random.default_rng(1).normal(size=(5, 5))


def table(n, seed=0):
    return np.random.default_rng(seed).normal(size=(n, 5)) @ MIXING


def in_population(coral):
    """Fidelities of a fit for the covariance that the rows are drawn from."""
    covariance = MIXING.T @ MIXING
    B = coral.T_ / coral.scale_[:, None]
    spread = np.sqrt(np.diag(covariance) * np.diag(B.T @ covariance @ B))
    return np.diag(covariance @ B) / spread


@pytest.fixture(scope="module")
def wine():
    return load_wine(as_frame=True).data


def test_floors_hold_for_the_population_and_plain_ones_do_not():
    sure, plain = 0, 0
    for seed in range(12):
        X = table(100, seed)
        raised = confident_floors(CORAL(0.9), X)
        sure += in_population(CORAL(raised.floors).fit(X)).min() >= 0.9
        plain += in_population(CORAL(0.9).fit(X)).min() >= 0.9
    assert plain <= 4
    assert sure >= 10  # fewer once in 50 times if the coverage is 95 %


def test_what_the_estimator_keeps(wine):
    coral = CORAL(0.8, confidence=0.95).fit(wine)
    report = coral.confidence_
    np.testing.assert_array_equal(coral.floors_, report.floors)
    np.testing.assert_allclose(coral.fidelity_, report.fidelity, atol=1e-7)
    assert (coral.fidelity_ >= coral.floors_ - 1e-9).all()
    assert (report.lower >= 0.8).all()
    assert coral.result_.objective == pytest.approx(report.objective, rel=1e-6)
    assert report.objective > report.objective_plain
    assert report.sentence() in coral.result_.summary()
    same = confident_floors(CORAL(0.8), wine)
    np.testing.assert_array_equal(same.floors, report.floors)
    frame = report.to_frame()
    assert list(frame.index) == list(wine.columns)
    assert list(frame.columns) == ["floor", "raised", "fidelity", "lower", "residual_bound"]
    assert (CORAL(0.8).fit(wine).floors_ == 0.8).all()


def test_floors_of_a_normal_table_are_raised_by_its_standard_error():
    # one pair far apart: artanh of a fidelity has variance 1/n for normal rows, and no optimism
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20_000, 2)) @ np.array([[1.0, 0.8], [0.0, 0.6]])
    raised = confident_floors(CORAL([0.97, 0.0]), X, n_folds=4)
    step = np.arctanh(raised.floors[0]) - np.arctanh(0.97)
    assert step * np.sqrt(20_000) == pytest.approx(1.645, abs=0.15)
    assert raised.floors[1] == 0.0  # nothing was promised


def test_studentised_draws_against_a_loop():
    values = np.random.default_rng(0).exponential(size=(30, 2))
    drawn = Draws(Dependence(30), 50, 7)
    assert (drawn.drawn.sum(axis=1) == 30).all()
    spread, draws = drawn.errors(values)
    np.testing.assert_allclose(spread, values.std(axis=0, ddof=1) / np.sqrt(30))
    for counts, draw in zip(drawn.drawn.astype(int), draws, strict=True):
        again = np.repeat(values - values.mean(axis=0), counts, axis=0)
        by_hand = again.mean(axis=0) / (again.std(axis=0, ddof=0) / np.sqrt(29))
        np.testing.assert_allclose(draw, by_hand, rtol=1e-9)


def test_optimism_is_what_rows_left_out_lose(wine):
    X = wine.iloc[:, :4].to_numpy()
    sample, floors = Resampler(CORAL(), X), np.full(4, 0.9)
    fit, draws = sample.fit(floors=floors), Draws(sample.dependence, 10, 0)
    errors = left_out(sample, fit, floors, n_folds=5, draws=draws)
    outputs = np.empty_like(X)
    for train, test in sample.dependence.folds(5):
        Y = CORAL(0.9).fit(X[train]).transform(X)
        outputs[test] = ((Y - Y.mean(axis=0)) / Y.std(axis=0))[test]
    new, fitted = (
        np.arctanh(np.diag(np.corrcoef(Y.T, X.T)[:4, 4:]))
        for Y in (outputs, CORAL(0.9).fit_transform(X))
    )
    # a fold has four fifths of the rows, and so five fourths of the optimism
    expected = 0.8 * np.maximum(fitted - new, 0.0)
    np.testing.assert_allclose(errors.optimism, expected, atol=1e-6)
    assert errors.optimism.max() > 0.01


def test_more_confidence_costs_more():
    X = table(120)
    low, high = (confident_floors(CORAL(0.9), X, confidence=c) for c in (0.8, 0.99))
    assert (high.floors > low.floors).all()
    assert high.objective > low.objective
    assert (low.residual_bound >= CORAL(low.floors).fit(X).measured_.residual).all()


def test_clusters_cost_what_they_hide():
    X = np.repeat(table(60), 4, axis=0) + 0.01 * table(240, 1)
    blind = confident_floors(CORAL(0.9), X)
    known = confident_floors(CORAL(0.9), X, groups=np.repeat(np.arange(60), 4))
    once = confident_floors(CORAL(0.9), X[::4])
    assert known.floors.mean() > blind.floors.mean() + 0.01
    assert known.floors.mean() == pytest.approx(once.floors.mean(), abs=0.01)
    assert known.about == "60 groups"


def test_too_few_rows_leave_a_variable_as_it_is():
    X = np.random.default_rng(3).normal(size=(9, 5)) @ MIXING
    with pytest.warns(ConfidenceWarning, match="no floor below one is confident"):
        raised = confident_floors(CORAL(0.97), X, confidence=0.99, n_folds=9)
    assert raised.untouched
    at = np.isin(raised.names, raised.untouched)
    assert (raised.floors[at] == 1.0).all()
    assert (raised.fidelity[at] == 1.0).all()
    assert (raised.floors[~at] < 1.0).all()
    assert raised.limits() in raised.sentence()


def test_anchors_and_floors_by_name(wine):
    X = wine.iloc[:, :4]
    B = np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.0, -1.0]])
    assert len(confident_floors(CORAL(0.9, anchors=B), X, n_folds=4).floors) == 2
    named = CORAL({"ash": 0.95}, confidence=0.9).fit(X)
    assert named.floors_[2] > 0.95
    assert (named.floors_[[0, 1, 3]] == 0.0).all()
    assert "at least 0.95, for which" in named.confidence_.sentence()


def test_what_is_invalid_is_refused(wine):
    for settings, message in (
        ({"groups": [1, 2]}, "one label for each"),
        ({"groups": [0] * 178}, "too few"),
        ({"block_length": "long"}, "block_length must be a whole number"),
        ({"block_length": 80}, "shorter blocks"),
        ({"block_length": 5, "groups": np.arange(178)}, "not both"),
        ({"confidence": 0.9999}, r"at most 0\.9995"),
    ):
        with pytest.raises(InvalidArgumentError, match=message):
            confident_floors(CORAL(0.8), wine, **settings)
    for floorless in (CORAL(), CORAL(budget=0.1), CORAL(max_vif=2)):
        with pytest.raises(InvalidArgumentError, match="give rho_min"):
            confident_floors(floorless, wine)
    for limit in ("max_vif", "max_correlation", "budget"):
        with pytest.raises(InvalidArgumentError, match=f"not both rho_min and {limit}"):
            confident_floors(CORAL(0.5, **{limit: 1.0}), wine)
    with pytest.raises(InvalidArgumentError, match="rho_min"):
        CORAL(confidence=0.9).fit(wine)
    with pytest.raises(InvalidArgumentError, match="between 0 and 1"):
        confident_floors(CORAL(0.0), wine)
    with pytest.raises(InvalidTableError, match="This is about"):
        confident_floors(CORAL(0.8, on_singular="raise"), wine[:15])


def test_the_estimate_of_the_threshold_by_definition(wine):
    """Half-way between ρ★ and the dual bounds of folds, on the rows that these left out."""
    X = wine.iloc[:, :5].to_numpy()
    Z, bounds = (X - X.mean(axis=0)) / X.std(axis=0), []
    for train, test in Dependence(178).folds(10):
        weights = CORAL().fit(X[train]).threshold_.weights
        D = np.diag(weights / weights.sum())
        S = sqrtm(D @ np.corrcoef(X[train].T) @ D).real
        left_out = Z[test].T @ Z[test] / len(test)
        bound = 0.5 * (np.trace(np.linalg.inv(S) @ D @ left_out @ D) + np.trace(S))
        off_scale = 0.5 * np.trace(S) * (np.diag(D) @ np.diag(left_out) - 1.0)
        bounds += [bound - off_scale] * len(test)
    report = bootstrap(CORAL(), X, n_boot=2)
    expected = 0.5 * (report.threshold + np.mean(bounds))
    assert report.threshold_estimate == pytest.approx(expected, rel=1e-6)


def test_the_interval_holds_a_threshold_that_the_table_misses():
    # independent columns: ρ★ is one, and that of every table is below it
    hits = 0
    for seed in range(8):
        X = np.random.default_rng(seed).normal(size=(60, 4))
        report = bootstrap(CORAL(), X, n_boot=2)
        assert report.threshold < report.threshold_estimate <= 1.0
        assert report.threshold_interval[0] < report.threshold_estimate
        hits += report.threshold_interval[1] >= 1.0 - 1e-9
    assert hits >= 6


def robust(Z):
    """Correlations of square roots, far from those of skewed rows."""
    return np.corrcoef((np.sign(Z) * np.sqrt(np.abs(Z))).T)


@pytest.mark.parametrize("covariance", [robust, "LedoitWolf"])
def test_floors_hold_for_the_rows_whatever_estimated_the_matrix(wine, covariance):
    rows = wine.iloc[:60, :6]
    raised = confident_floors(CORAL(0.8, covariance=covariance), rows, n_folds=4)
    # no more is said than the bounds show
    met = raised.lower.min() >= 0.8 - 1e-4
    assert ("at least 0.8," in raised.sentence()) == met
    assert ("below a floor asked" in raised.sentence()) != met
    coral = CORAL(raised.floors, covariance=covariance).fit(rows)
    fidelity = np.diag(np.corrcoef(rows.T, coral.transform(rows).T)[:6, 6:])
    np.testing.assert_allclose(raised.fidelity, fidelity, atol=1e-6)


def test_the_bound_on_correlations_is_rounded_up_and_said_where_it_says_something(wine):
    from dataclasses import replace

    report = confident_floors(CORAL(0.8), wine.iloc[:, :4])
    bounds = np.array([0.1, 0.3412, 0.3412, 0.2])
    assert "larger than 0.35 in" in replace(report, residual_bound=bounds).sentence()
    vacuous = replace(report, residual_bound=np.full(4, 0.997))
    assert "No correlation left" not in vacuous.sentence()
    assert "No correlation left" not in replace(report, residual_bound=None).sentence()


@pytest.mark.parametrize("kind", ["rows", "groups", "later"])
@pytest.mark.parametrize(
    ("function", "figures"),
    [
        (confident_floors, ["floors", "lower", "about"]),
        (lambda *a, **known: bootstrap(*a, n_boot=4, **known), ["threshold_samples", "fidelity"]),
        (lambda *a, **known: holdout(*a, cv=3, **known), ["fidelity_new", "left_out"]),
    ],
    ids=["confident_floors", "bootstrap", "holdout"],
)
def test_rows_of_weight_zero_are_no_observations(wine, function, figures, kind):
    rows = wine.iloc[::3, :4].set_index(pd.date_range("2000", periods=60))
    rows = rows if kind == "later" else rows.reset_index(drop=True)
    groups = np.arange(60) // 2 if kind == "groups" else None
    weights = np.repeat([0.0, 1.0], [32, 28])  # the first sixteen groups have no weight
    everything = function(CORAL(0.8), rows, sample_weight=weights, groups=groups)
    few = function(CORAL(0.8), rows[32:], groups=None if groups is None else groups[32:])
    for name in figures:
        one, two = getattr(everything, name), getattr(few, name)
        assert one == two if isinstance(one, str) else np.allclose(one, two, atol=1e-9)
