"""Identities of effective bets, and minimum torsion against its definition."""

import numpy as np
import pandas as pd
import pytest

from skcoral import CORAL, decorrelate, threshold
from skcoral.baselines import cholesky, pca, zca_cor
from skcoral.exceptions import InvalidArgumentError
from skcoral.panels import effective_bets, minimum_torsion


def factors(p=5, seed=0, n=400):
    rng = np.random.default_rng(seed)
    X = rng.standard_t(5, size=(n, 2)) @ rng.normal(size=(2, p)) + rng.standard_t(5, size=(n, p))
    return pd.DataFrame(X * 10.0 ** np.linspace(-3, 1, p), columns=[f"f{j}" for j in range(p)])


@pytest.mark.parametrize("seed", range(3))
def test_contributions_add_up_to_the_variance(seed):
    X = factors(seed=seed)
    R, b = X.corr(), np.random.default_rng(seed).normal(size=5)
    variance = float(np.var(X.to_numpy() @ b, ddof=1))
    answers = [None, pca(R), zca_cor(R), cholesky(R), threshold(R), decorrelate(R, 0.97), np.eye(5)]
    for T in [*answers, CORAL(rho_min=0.95).fit(X)]:
        bets = effective_bets(X.cov(), b, T)
        assert bets.variance == pytest.approx(variance, rel=1e-10)
        assert bets.contributions.sum() == pytest.approx(variance, rel=1e-9)
        assert bets.shares.sum() == pytest.approx(1.0)
        assert 1.0 - 1e-12 <= bets.effective <= 5.0 + 1e-12
        assert bets.shared == pytest.approx(
            variance - (bets.exposures**2).sum(), rel=1e-6, abs=1e-12
        )
    for T in (None, pca(R), threshold(R)):  # uncorrelated: squares, and nothing shared
        bets = effective_bets(X.cov(), b, T)
        assert np.allclose(bets.contributions, bets.exposures**2, rtol=1e-8)
        assert abs(bets.shared) < 1e-9 * variance
        assert np.allclose(bets.shares, bets.contributions / variance, atol=1e-9)


def test_the_outputs_carry_the_same_portfolio():
    X = factors()
    model = CORAL(rho_min=0.96).fit(X)
    b = np.array([3.0, -1.0, 0.5, 2.0, 0.1])
    bets = effective_bets(X.cov(), b, model)
    carried = model.transform(X) @ bets.exposures
    assert np.allclose(carried, (X - X.mean()).to_numpy() @ b)


def test_transformations_of_any_kind_and_those_of_other_factors():
    X = factors(p=3)
    covariance, b, T = X.cov(), np.array([1.0, 2.0, 3.0]), np.triu(np.ones((3, 3)))
    wanted = np.linalg.solve(T, np.sqrt(np.diag(covariance)) * b)
    for given in (T, pd.DataFrame(T), T.tolist()):
        bets = effective_bets(covariance, b, given)
        np.testing.assert_allclose(bets.exposures, wanted, rtol=1e-12)
    swapped = X[X.columns[::-1]]
    model = CORAL(rho_min=0.8).fit(swapped)
    for other in (model, model.result_, decorrelate(swapped.corr(), 0.8)):
        with pytest.raises(InvalidArgumentError, match="same order"):
            effective_bets(covariance, b, other)
    assert effective_bets(covariance, b, CORAL(rho_min=0.8).fit(X)).effective > 1
    with pytest.raises(InvalidArgumentError, match="finite"):
        effective_bets(covariance, b, np.full((3, 3), np.nan))
    with pytest.raises(InvalidArgumentError, match="overflows"):
        effective_bets(covariance, 1e200 * b)


def test_extremes():
    X = factors()
    sigma = X.cov()
    scale = np.sqrt(np.diag(sigma))
    T = minimum_torsion(X.corr()).T
    # a portfolio that is one of the uncorrelated factors is one bet, all of them alike are p
    one = effective_bets(sigma, T[:, 2] / scale)
    assert one.effective == pytest.approx(1.0, abs=1e-8)
    assert np.argmax(one.shares) == 2
    assert effective_bets(sigma, T.sum(axis=1) / scale).effective == pytest.approx(5.0)
    nothing = effective_bets(sigma, np.zeros(5))
    assert nothing.variance == 0.0
    assert np.isnan(nothing.shares).all()


def test_portfolios_by_name():
    X = factors()
    by_name = effective_bets(X.cov(), {"f1": 2.0, "f4": -1.0})
    by_place = effective_bets(X.cov(), [0.0, 2.0, 0.0, 0.0, -1.0])
    assert by_name.effective == by_place.effective
    assert by_name.to_frame().index.tolist() == list(X.columns)
    assert "effective" in repr(by_name)
    with pytest.raises(InvalidArgumentError, match="unknown: `f9`"):
        effective_bets(X.cov(), {"f9": 1.0})
    with pytest.raises(InvalidArgumentError, match="5 finite numbers"):
        effective_bets(X.cov(), [1.0, 2.0])
    with pytest.raises(InvalidArgumentError, match="no inverse"):
        effective_bets(X.cov(), np.ones(5), np.zeros((5, 5)))
    with pytest.raises(InvalidArgumentError, match="variances above 0"):
        effective_bets([[1.0, 0.0], [0.0, 0.0]], [1.0, 1.0])
    for exposures in ([1.0, 1.0], {"a": 1.0, "b": 1.0}, pd.Series([1.0, 1.0])):
        with pytest.raises(InvalidArgumentError, match="The covariance comes first"):
            effective_bets(exposures, np.eye(2))
