"""Guarantees of the transformation: decorrelated, faithful, invertible, independent of units."""

import numpy as np
import pytest
from sklearn.decomposition import PCA

from skcoral import CORAL


def ugly_table(n=300, p=5, seed=0, offset=4):
    """Correlated, badly scaled, and off-centre by up to 10**offset standard deviations."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p)) @ (np.eye(p) + 0.7 * rng.normal(size=(p, p)))
    return (X + np.logspace(offset, -1, p)) * np.logspace(-6, 6, p)


@pytest.mark.parametrize("output_scale", ["unit", "original"])
def test_outputs_are_decorrelated_and_keep_their_fidelity(output_scale):
    X = ugly_table()
    coral = CORAL(output_scale=output_scale).fit(X)
    Y = coral.transform(X)
    np.testing.assert_allclose(np.corrcoef(Y, rowvar=False), np.eye(5), atol=1e-8)
    achieved = [np.corrcoef(X[:, j], Y[:, j])[0, 1] for j in range(5)]
    np.testing.assert_allclose(achieved, coral.fidelity_, atol=1e-8)
    assert min(achieved) >= coral.threshold_.value - 1e-8
    assert coral.threshold_.gap < 1e-8
    if output_scale == "unit":
        np.testing.assert_allclose(Y.mean(axis=0), 0.0, atol=1e-8)
        np.testing.assert_allclose(Y.std(axis=0, ddof=1), 1.0, rtol=1e-10)
    else:
        np.testing.assert_allclose(Y.mean(axis=0), X.mean(axis=0), rtol=1e-9)
        np.testing.assert_allclose(Y.std(axis=0, ddof=1), X.std(axis=0, ddof=1), rtol=1e-8)


def test_the_assertions_above_can_fail():
    X = ugly_table()
    off = np.abs(np.corrcoef(X, rowvar=False) - np.eye(5))
    assert off.max() > 0.3
    whitened = PCA(whiten=True).fit_transform(X / X.std(axis=0))
    assert np.abs([np.corrcoef(X[:, j], whitened[:, j])[0, 1] for j in range(5)]).min() < 0.5


def test_fitted_attributes_agree_with_each_other():
    X = ugly_table()
    coral = CORAL(rho_min=0.4).fit(X)
    Z = (X - coral.mean_) / coral.scale_
    np.testing.assert_allclose(coral.transform(X), Z @ coral.T_, atol=1e-9)
    np.testing.assert_allclose(coral.transform(X), (X - coral.mean_) @ coral.components_.T)
    np.testing.assert_allclose(coral.correlation_, np.corrcoef(X, rowvar=False), atol=1e-10)
    np.testing.assert_allclose(coral.scale_, X.std(axis=0, ddof=1), rtol=1e-9)
    assert coral.result_.T is coral.T_
    assert coral.certificate_ is coral.result_.certificate
    np.testing.assert_array_equal(coral.prices_, coral.result_.prices)
    assert (coral.n_samples_seen_, coral.n_features_in_) == (300, 5)
    assert "300 rows" in coral.result_.notes.guarantee


@pytest.mark.parametrize("output_scale", ["unit", "original"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_inverse_transform_recovers_the_rows(wine, output_scale, dtype):
    X = wine.to_numpy(dtype)
    coral = CORAL(0.7, output_scale=output_scale).fit(X)
    back = coral.inverse_transform(coral.transform(X))
    assert back.dtype == dtype
    eps = np.finfo(dtype).eps
    np.testing.assert_allclose(back, X, rtol=0, atol=60 * eps * np.abs(X).max(axis=0).max())


def test_one_column():
    X = ugly_table(p=1)
    coral = CORAL().fit(X)
    np.testing.assert_array_equal(coral.T_, [[1.0]])
    np.testing.assert_allclose(coral.transform(X).std(ddof=1), 1.0)


def test_float32_statistics_are_double():
    X = ugly_table(offset=2).astype(np.float32)
    coral = CORAL().fit(X)
    assert coral.transform(X).dtype == np.float32
    assert coral.T_.dtype == np.float64
    np.testing.assert_allclose(coral.correlation_, np.corrcoef(X, rowvar=False), atol=1e-12)
