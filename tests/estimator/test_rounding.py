"""Statements about rows are checked on the rows, also where rounding is amplified."""

import warnings

import numpy as np
import pytest

from skcoral import CORAL
from skcoral.data.moments import Moments
from skcoral.estimator.rows import NEGLIGIBLE
from skcoral.exceptions import RoundingWarning


def nearly_dependent(noise, n=200):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(n, 6))
    X[:, 5] = X[:, :5].sum(axis=1) + noise * rng.normal(size=n)
    return X


def off(model, X, weights=None):
    """Largest deviation of variances and fidelities on the rows, by NumPy alone."""
    Y = model.transform(X)
    C = np.cov(np.hstack((Y, X)).T, aweights=weights)
    sd = np.sqrt(np.diag(C))
    fidelity = np.diag((C / np.outer(sd, sd))[:6, 6:])
    return max(np.abs(np.diag(C)[:6] - 1).max(), np.abs(fidelity - model.fidelity_).max())


def fitted(X, **options):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = CORAL(0.9).fit(X, **options)
    assert {w.category for w in caught} <= {RoundingWarning}
    return model, [str(w.message) for w in caught]


@pytest.mark.parametrize("noise", [1e-1, 1e-3, 1e-4, 3e-5, 1e-5])
def test_a_fit_that_is_off_on_its_rows_says_so(noise):
    X = nearly_dependent(noise)
    model, warned = fitted(X)
    deviation = off(model, X)
    if deviation > 2 * NEGLIGIBLE:
        assert len(warned) == 1
        assert f"{deviation:.0e}"[-3:] in warned[0]  # the figure has the right order of magnitude
        assert model.result_.notes.rounding == warned[0]
    if deviation < 0.5 * NEGLIGIBLE:
        assert warned == []
        assert not model.result_.notes.rounding
    assert noise > 2e-5 or deviation > NEGLIGIBLE
    # as the guide says: correlations left grow with the condition, and rows come back
    left = np.corrcoef(model.transform(X).T) - model.result_.correlation
    smallest = np.linalg.eigvalsh(model.correlation_)[0]
    assert np.abs(left - np.diag(np.diag(left))).max() < 5e-15 / smallest
    np.testing.assert_allclose(model.inverse_transform(model.transform(X)), X, atol=1e-8)


def test_weighted_rows_are_checked_with_their_weights():
    X = nearly_dependent(1e-5)
    weights = np.arange(200) % 3 + 1
    model, warned = fitted(X, sample_weight=weights)
    assert off(model, X, weights) > NEGLIGIBLE
    assert len(warned) == 1


def test_where_the_rows_are_gone_a_bound_is_reported():
    X = nearly_dependent(1e-5)
    with pytest.warns(RoundingWarning, match="may differ by up to"):
        model = CORAL(0.9).fit_moments(Moments.from_rows(X))
    bound = float(model.result_.notes.rounding.partition("up to ")[2].partition(" ")[0])
    assert bound >= off(model, X)
    with warnings.catch_warnings():
        warnings.simplefilter("error", RoundingWarning)
        CORAL(0.9).fit_moments(Moments.from_rows(nearly_dependent(0.1)))
