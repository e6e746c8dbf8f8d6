"""Coefficients on the outputs as coefficients on the columns: the same fitted values."""

import numpy as np
import pytest

from skcoral import CORAL
from skcoral.core.lowrank import LowRankTransform
from skcoral.exceptions import InvalidArgumentError

pytestmark = [
    pytest.mark.filterwarnings("ignore::skcoral.exceptions.SingularCorrelationWarning"),
    pytest.mark.filterwarnings("ignore::skcoral.exceptions.NotCertifiedWarning"),
]


def table(n, p):
    """Correlated columns, off centre and in very different units; the fifth is a total."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, p)) + rng.normal(size=(n, 1))
    X[:, 4] = X[:, 0] + X[:, 1]
    return X * 10.0 ** rng.integers(-3, 4, size=p) + rng.normal(scale=5.0, size=p)


CASES = {
    "exact": ({}, 4),
    "floors": ({"rho_min": 0.95}, 4),
    "within a limit": ({"max_vif": 1.5}, 4),
    "support": ({"rho_min": 0.4, "support": 0.4}, 4),
    "anchors": ({"rho_min": 0.9, "anchors": np.random.default_rng(2).normal(size=(4, 2))}, 4),
    "singular": ({"rho_min": 0.8}, 5),
    "wide": ({"rho_min": 0.9}, 400),
}


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("output_scale", ["unit", "original"])
@pytest.mark.parametrize("case", CASES)
def test_the_same_fitted_values_for_any_linear_model(case, output_scale, weighted):
    if case == "anchors" and output_scale == "original":
        pytest.skip("composites have no scale of their own")
    settings, p = CASES[case]
    X = table(60, max(p, 5))[:, :p]
    weights = np.arange(1, 31) if weighted else None
    coral = CORAL(**settings, output_scale=output_scale).fit(X[:30], sample_weight=weights)
    assert isinstance(coral.T_, LowRankTransform) == (case == "wide")
    outputs = coral.transform(X)  # of rows fitted and of new ones
    rng = np.random.default_rng(1)
    slopes, constants = rng.normal(size=(3, outputs.shape[1])), rng.normal(size=3)
    coef, intercept = coral.source_coefficients(slopes, constants)
    assert (coef.shape, intercept.shape) == ((3, p), (3,))
    values = outputs @ slopes.T + constants
    largest = np.abs(values).max()
    np.testing.assert_allclose(X @ coef.T + intercept, values, rtol=1e-9, atol=1e-10 * largest)
    alone = coral.source_coefficients(slopes[0], constants[0])
    np.testing.assert_allclose(alone.coef, coef[0], rtol=1e-9, atol=1e-12 * np.abs(coef).max())
    assert isinstance(alone.intercept, float)


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
    with pytest.raises(InvalidArgumentError, match=words):
        CORAL(0.9).fit(table(60, 5)[:, :4]).source_coefficients(coef, intercept)
