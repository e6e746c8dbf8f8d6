"""Coefficients on the outputs as coefficients on the columns: the same fitted values."""

import numpy as np
import pytest
from sklearn.datasets import load_diabetes
from sklearn.linear_model import LinearRegression, Ridge

from skcoral import CORAL
from skcoral.core.lowrank import LowRankTransform
from skcoral.exceptions import InvalidArgumentError

pytestmark = [
    pytest.mark.filterwarnings("ignore::skcoral.exceptions.SingularCorrelationWarning"),
    pytest.mark.filterwarnings("ignore::skcoral.exceptions.NotCertifiedWarning"),
]


def table(n, p, seed=0):
    """Correlated columns, off centre and in very different units."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p)) + rng.normal(size=(n, 1))
    X = X * 10.0 ** rng.integers(-3, 4, size=p) + rng.normal(scale=5.0, size=p)
    return X, X @ rng.normal(size=p) / np.abs(X).max() + rng.normal(size=n)


@pytest.mark.parametrize("settings", [{}, {"rho_min": 0.95}, {"max_vif": 1.5}, {"support": 0.4}])
@pytest.mark.parametrize("output_scale", ["unit", "original"])
def test_least_squares_on_outputs_is_least_squares_on_columns(settings, output_scale):
    X, y = table(200, 5)
    coral = CORAL(**settings, output_scale=output_scale).fit(X)
    outputs = coral.transform(X)
    ours = LinearRegression().fit(outputs, y)
    found = coral.source_coefficients(ours.coef_, ours.intercept_)
    np.testing.assert_allclose(X @ found.coef + found.intercept, ours.predict(outputs), rtol=1e-9)
    # T is invertible, so both regressions span the same space and have the same least squares
    direct = LinearRegression().fit(X, y)
    np.testing.assert_allclose(found.coef, direct.coef_, rtol=1e-6)
    assert found.intercept == pytest.approx(direct.intercept_, rel=1e-6)
    assert isinstance(found.intercept, float)


@pytest.mark.parametrize("output_scale", ["unit", "original"])
def test_new_rows_and_many_targets(output_scale):
    X, y = table(150, 4, seed=1)
    Y = np.column_stack([y, y**2, X[:, 0]])
    coral = CORAL(0.9, output_scale=output_scale).fit(X[:100], sample_weight=np.arange(1, 101))
    model = Ridge(alpha=0.3).fit(coral.transform(X[:100]), Y[:100])
    coef, intercept = coral.source_coefficients(model.coef_, model.intercept_)
    assert coef.shape == (3, 4)
    assert intercept.shape == (3,)
    expected = model.predict(coral.transform(X))
    np.testing.assert_allclose(X @ coef.T + intercept, expected, rtol=1e-8, atol=1e-8)


def test_anchors_singular_and_wide_tables():
    rng = np.random.default_rng(2)
    X, y = table(60, 5, seed=3)
    total = np.column_stack([X, X[:, 0] / X[:, 0].std() + X[:, 1] / X[:, 1].std()])
    anchors = rng.normal(size=(5, 2))
    wide = rng.normal(size=(30, 400)) + 3.0 * rng.normal(size=(30, 1))
    fits = {
        "anchored": (CORAL(0.9, anchors=anchors).fit(X), X, y),
        "singular": (CORAL(0.8).fit(total), total, y),
        "wide": (CORAL(0.9).fit(wide), wide, y[:30]),
    }
    assert isinstance(fits["wide"][0].T_, LowRankTransform)
    for name, (coral, rows, target) in fits.items():
        model = Ridge(alpha=1.0).fit(coral.transform(rows), target)
        coef, intercept = coral.source_coefficients(model.coef_, model.intercept_)
        assert coef.shape == (rows.shape[1],)
        expected = model.predict(coral.transform(rows))
        np.testing.assert_allclose(rows @ coef + intercept, expected, rtol=1e-9, err_msg=name)


def test_each_output_alone_is_its_own_column_of_components():
    X = load_diabetes().data[:, :4]
    coral = CORAL(0.9).fit(X)
    coef, intercept = coral.source_coefficients(np.eye(4))
    np.testing.assert_allclose(coef, coral.components_, rtol=1e-12)
    np.testing.assert_allclose(X @ coef.T + intercept, coral.transform(X), atol=1e-12)


@pytest.mark.parametrize(
    ("coef", "intercept", "words"),
    [
        (np.ones(3), 0.0, "each of the 4 outputs"),
        (1.0, 0.0, r"got shape \(\)"),
        (np.ones((2, 2, 4)), 0.0, "each of the 4 outputs"),
        (np.ones((2, 4)), np.ones(3), "one number for each target"),
        (["a"] * 4, 0.0, "must be numbers"),
    ],
)
def test_other_shapes_are_refused(coef, intercept, words):
    coral = CORAL(0.9).fit(load_diabetes().data[:, :4])
    with pytest.raises(InvalidArgumentError, match=words):
        coral.source_coefficients(coef, intercept)
