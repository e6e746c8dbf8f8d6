"""The law of fidelities and of the threshold in the population, by simulation."""

import numpy as np
import pytest

from skcoral import decorrelate, threshold


def test_fidelities_in_the_population_have_the_variance_of_the_delta_method():
    """Skewed rows, floors that all bind: the error of each fidelity is that of a mean of ψ."""
    mixing = np.array([[1, 0.9, 0.2], [0.3, 1, 0.8], [0.1, 0.4, 1]])
    covariance = mixing.T @ mixing  # exponential rows have unit variances
    scale = np.sqrt(np.diag(covariance))
    R = covariance / np.outer(scale, scale)
    rng = np.random.default_rng(0)
    answer = decorrelate(R, 0.97)
    assert np.all(answer.prices > 0)

    def standardised(n):
        return (rng.exponential(size=(n, 3)) - 1) @ mixing / scale

    v = standardised(200_000)
    u = v @ answer.T
    f = np.diag(R @ answer.T)
    expected = np.std(u * v - f * (u**2 + v**2) / 2, axis=0)
    n, errors = 1000, []
    for _ in range(150):
        rows = standardised(n)
        sample = np.cov(rows.T)
        deviations = np.sqrt(np.diag(sample))
        T = decorrelate(sample / np.outer(deviations, deviations), 0.97).T / deviations[:, None]
        population = np.diag(R @ T) / np.sqrt(np.diag(T.T @ R @ T))
        errors.append(population - 0.97)
    spread = np.sqrt(n) * np.std(errors, axis=0)
    assert spread == pytest.approx(expected, rel=0.2)  # known from 150 to 6 %
    assert np.abs(np.sqrt(n) * np.mean(errors, axis=0)).max() < 0.6 * expected.max()


def factor_model(rng, p):
    loadings = rng.normal(size=(p, 3))
    covariance = loadings @ loadings.T + np.diag(rng.uniform(0.5, 2, p))
    scale = np.sqrt(np.diag(covariance))
    return covariance / np.outer(scale, scale)


def test_outputs_of_an_exact_decorrelator_vary_more_in_the_population():
    """Normal rows: variances by the formula, covariances by less, so that fidelities fall."""
    rng = np.random.default_rng(0)
    n, p = 60, 20
    R = factor_model(rng, p)
    root, tables = np.linalg.cholesky(R), []
    for _ in range(200):
        sample = np.cov((rng.normal(size=(n, p)) @ root.T).T)
        deviations = np.sqrt(np.diag(sample))
        values, vectors = np.linalg.eigh(sample / np.outer(deviations, deviations))
        T = (vectors / np.sqrt(values)) @ vectors.T / deviations[:, None]
        variance, covariance = np.diag(T.T @ R @ T), np.diag(R @ T)
        fitted = np.diag(sample @ T) / deviations
        tables.append(
            [
                variance.mean(),
                (covariance / fitted).mean(),
                (covariance / np.sqrt(variance) / fitted).mean(),
            ]
        )
    variance, covariance, fidelity = np.mean(tables, axis=0)
    assert variance == pytest.approx((n - 1) / (n - p - 2), rel=0.02)
    assert covariance == pytest.approx(1.19, abs=0.02)
    assert fidelity == pytest.approx(0.96, abs=0.01)


def test_the_optimism_of_the_threshold_is_of_second_order_and_the_same_on_both_sides():
    """Three normal variables: both ends against the exact second derivative, by simulation."""
    rng = np.random.default_rng(1)
    R = np.array([[1, 0.6, 0.5], [0.6, 1, 0.55], [0.5, 0.55, 1.0]])
    n, root, population = 200, np.linalg.cholesky(R), threshold(R)
    upper = np.triu_indices(3, 1)
    gradient = (population.T @ np.diag(population.weights))[upper]
    h = 1e-3
    second = np.empty((3, 3))
    for a, b in np.ndindex(3, 3):
        values = []
        for x, y in ((1, 1), (1, -1), (-1, 1), (-1, -1)):
            moved = R.copy()
            for k, step in ((a, x), (b, y)):
                moved[upper[0][k], upper[1][k]] += h * step
                moved[upper[1][k], upper[0][k]] += h * step
            values.append(threshold(moved).value)
        second[a, b] = (values[0] - values[1] - values[2] + values[3]) / (4 * h * h)
    low, high, curves = [], [], []
    for _ in range(600):
        sample = np.corrcoef((rng.normal(size=(n, 3)) @ root.T).T)
        change = (sample - R)[upper]
        rows = threshold(sample)
        D, S = np.diag(rows.weights), rows.certificate.arrays["S"]
        low.append(rows.value - population.value - gradient @ change)  # the first order cancels
        high.append((np.trace(np.linalg.solve(S, D @ R @ D)) + np.trace(S)) / 2 - population.value)
        curves.append(change @ second @ change / 2)
    assert np.mean(curves) < 0
    assert np.mean(low) == pytest.approx(np.mean(curves), rel=0.1)
    assert np.mean(high) == pytest.approx(-np.mean(curves), rel=0.1)
    assert min(high) > 0
