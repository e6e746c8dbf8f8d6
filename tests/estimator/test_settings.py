"""Floors, criteria, supports, composites, ranks: the effect of each setting."""

import numpy as np
import pandas as pd
import pytest

from skcoral import CORAL
from skcoral.exceptions import InvalidArgumentError


def test_floors_by_name(wine):
    coral = CORAL({"flavanoids": 0.95, "ash": 0.5}).fit(wine)
    flavanoids = list(wine.columns).index("flavanoids")
    assert coral.fidelity_[flavanoids] >= 0.95 - 1e-9
    floors = dict(zip(wine.columns, coral.result_.rho_min, strict=True))
    assert floors["flavanoids"] == 0.95
    assert floors["alcohol"] == 0.0
    with pytest.raises(InvalidArgumentError, match="`flavonoids`"):
        CORAL({"flavonoids": 0.9}).fit(wine)


@pytest.mark.parametrize("criterion", ["squared", "worst", "absolute"])
def test_above_the_threshold(wine, conic_optimum, criterion):
    coral = CORAL(0.95, criterion=criterion).fit(wine)
    expected = conic_optimum(np.corrcoef(wine.to_numpy().T), 0.95, criterion)
    assert coral.result_.objective == pytest.approx(expected, rel=1e-6)
    assert coral.result_.gap < 1e-7
    assert coral.fidelity_.min() >= 0.95 - 1e-9
    assert (coral.prices_ > 0).any()
    assert coral.score(wine) == pytest.approx(-expected, rel=1e-6)


def test_budget(wine):
    coral = CORAL(budget=0.1).fit(wine)
    assert coral.fidelity_.min() == pytest.approx(0.8715, abs=5e-5)  # in the paper's table
    assert -coral.score(wine) <= 0.1 + 1e-8


def test_support(wine):
    X = wine.iloc[:, :5]
    mask = np.abs(np.corrcoef(X, rowvar=False)) > 0.2
    coral = CORAL(0.8, support=mask).fit(X)
    assert (coral.T_[~mask] == 0).all()
    assert coral.fidelity_.min() >= 0.8 - 1e-9


def test_a_support_by_a_number_is_about_the_matrix_that_is_solved_for():
    rng = np.random.default_rng(4)
    a, c = rng.normal(size=(2, 200))
    b = a + 0.8 * rng.normal(size=200)
    a[0], b[0] = 60.0, -60.0  # hides a correlation that a robust estimator finds
    X = np.column_stack([a, b, c])
    coral = CORAL(0.8, support=0.5, covariance="MinCovDet").fit(X)
    assert np.corrcoef(a, b)[0, 1] < 0
    assert coral.correlation_[0, 1] > 0.6
    np.testing.assert_array_equal(coral.T_ != 0, np.abs(coral.correlation_) > 0.5)


def test_anchors(wine):
    X = wine.iloc[:, :4]
    composites = np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.0, 1.0]])
    coral = CORAL(anchors=composites).fit(X)
    Y = coral.transform(X)
    assert Y.shape == (178, 2)
    Z = (X - X.mean()) / X.std()
    achieved = [np.corrcoef(Z @ composites[:, j], Y[:, j])[0, 1] for j in range(2)]
    np.testing.assert_allclose(achieved, coral.fidelity_, atol=1e-9)
    np.testing.assert_allclose(achieved, coral.measured_.fidelity, atol=1e-9)
    assert abs(np.corrcoef(Y.T)[0, 1]) < 1e-9
    assert len(coral.get_feature_names_out()) == 2
    with pytest.raises(InvalidArgumentError, match="no inverse"):
        coral.inverse_transform(Y)
    with pytest.raises(InvalidArgumentError, match="unit"):
        CORAL(anchors=composites, output_scale="original").fit(X)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"rho_min": 0.5, "budget": 0.1}, "not both rho_min and budget"),
        ({"criterion": "cubed"}, "criterion must be one of"),
        ({"output_scale": "big"}, "output_scale must be one of"),
        ({"max_vif": 2, "rho_min": 0.9}, "not both rho_min and max_vif"),
        ({"max_vif": 2, "max_correlation": 0.3}, "not both max_vif and max_correlation"),
        ({"max_vif": 2, "support": 0.2}, "support goes with floors"),
        ({"max_vif": 0.9}, "at least 1"),
        ({"max_vif": np.nan}, "finite"),
        ({"max_correlation": -0.1}, "at least 0"),
        ({"max_correlation": 0.3, "criterion": "absolute"}, "criterion='worst'"),
        ({"max_vif": 2, "criterion": "worst"}, "max_vif limits the VIFs"),
        ({"max_vif": 2, "criterion": "absolute"}, "max_vif limits the VIFs"),
    ],
)
def test_settings_that_are_invalid(wine, settings, message):
    with pytest.raises(InvalidArgumentError, match=message):
        CORAL(**settings).fit(wine)


def test_a_scale_set_after_the_fit_waits_for_the_next(wine):
    coral = CORAL(0.9).fit(wine)
    before = coral.transform(wine)
    coral.set_params(output_scale="original", criterion="worst")
    assert np.array_equal(coral.transform(wine), before)
    assert np.allclose(coral.inverse_transform(before), wine)
    assert coral.score(wine) == pytest.approx(-coral.result_.objective)
    again = coral.fit(wine).transform(wine)
    assert np.allclose(again.mean(axis=0), wine.mean())
    assert np.allclose(again.std(axis=0, ddof=1), wine.std())


def test_names_of_composites_are_those_of_the_fit(wine):
    composites = pd.DataFrame(
        {"first": [1.0, 1.0, 0.0], "second": [0.0, 0.0, 1.0]}, index=wine.columns[:3]
    )
    coral = CORAL(anchors=composites).fit(wine.iloc[:, :3]).set_params(anchors=None)
    assert list(coral.get_feature_names_out()) == ["first", "second"]
    assert coral.set_output(transform="pandas").transform(wine.iloc[:, :3]).shape == (178, 2)
