"""Fidelity, residuals and VIF against their definitions."""

import numpy as np
import pytest

from skcoral.core import measures
from skcoral.datasets import make_system
from skcoral.exceptions import InvalidArgumentError, InvalidCorrelationError


@pytest.fixture(scope="module")
def case():
    """Rows with an exact correlation matrix, a transformation of unit variance, its outputs."""
    rng = np.random.default_rng(5)
    X = rng.normal(size=(40, 6)) @ rng.normal(size=(6, 6)) + 100.0
    Z = (X - X.mean(axis=0)) / X.std(axis=0, ddof=1)
    R = np.corrcoef(X.T)
    T = rng.normal(size=(6, 6))
    T /= np.sqrt(np.einsum("ij,ik,kj->j", T, R, T))
    return Z, R, T


def naive_pairs(Y):
    k = Y.shape[1]
    return [np.corrcoef(Y[:, i], Y[:, j])[0, 1] for i in range(k) for j in range(i)]


def test_fidelity_is_the_correlation_of_output_and_source(case):
    Z, R, T = case
    wanted = [np.corrcoef(Z[:, j], Z @ T[:, j])[0, 1] for j in range(6)]
    assert measures.fidelity(R, T) == pytest.approx(wanted, abs=1e-12)


def test_fidelity_to_anchors_is_the_correlation_with_the_composite(case):
    Z, R, T = case
    B = np.random.default_rng(6).normal(size=(6, 3))
    wanted = [np.corrcoef(Z @ B[:, j], Z @ T[:, j])[0, 1] for j in range(3)]
    assert measures.fidelity(R, T[:, :3], anchors=B) == pytest.approx(wanted, abs=1e-12)
    assert measures.fidelity(R, T, anchors=3 * np.eye(6)) == pytest.approx(
        measures.fidelity(R, T), abs=1e-14
    )


def test_residuals_are_the_correlations_of_the_outputs(case):
    Z, R, T = case
    E = measures.residual(R, T)
    wanted = np.corrcoef((Z @ T).T) - np.eye(6)
    assert pytest.approx(wanted, abs=1e-12) == E
    assert np.array_equal(E, E.T)
    assert not np.diag(E).any()


def test_criteria_against_loops_over_pairs(case):
    Z, R, T = case
    pairs = np.array(naive_pairs(Z @ T))
    assert measures.residual_by("squared", R, T) == pytest.approx((pairs**2).sum(), rel=1e-12)
    assert measures.residual_by("worst", R, T) == pytest.approx(np.abs(pairs).max(), rel=1e-12)
    assert measures.residual_by("absolute", R, T) == pytest.approx(np.abs(pairs).sum(), rel=1e-12)


def test_pair_weights_weigh_pairs(case):
    _, R, T = case
    W = np.zeros((6, 6))
    W[1, 4] = W[4, 1] = 3.0
    g = (T.T @ R @ T)[1, 4]
    assert measures.residual_by("squared", R, T, pair_weights=W) == pytest.approx(3 * g**2)
    assert measures.residual_by("worst", R, T, pair_weights=W) == pytest.approx(3 * abs(g))
    assert measures.residual_by("absolute", R, T, pair_weights=W) == pytest.approx(3 * abs(g))


def test_one_output_has_no_residual():
    one = np.eye(1)
    for criterion in ("squared", "worst", "absolute"):
        assert measures.residual_by(criterion, one, one) == 0.0


def test_paper_says_how_correlated_the_system_of_fifty_is():
    R = make_system(50, seed=1)
    assert round(measures.residual_by("worst", R, np.eye(50)), 4) == 0.2909
    assert f"{np.abs(measures.residual(R, np.eye(50))).sum() / (50 * 49):.4f}" == "0.0748"


def test_vif_is_that_of_the_regressions(case):
    Z, R, _ = case
    wanted = []
    for j in range(6):
        others = np.delete(Z, j, axis=1)
        left = Z[:, j] - others @ np.linalg.lstsq(others, Z[:, j], rcond=None)[0]
        wanted.append((Z[:, j] @ Z[:, j]) / (left @ left))
    assert measures.vif(R) == pytest.approx(wanted, rel=1e-10)


def test_vif_is_infinite_where_others_determine_a_variable():
    R = np.array([[1.0, 1.0, 0.6], [1.0, 1.0, 0.6], [0.6, 0.6, 1.0]])
    assert measures.vif(R) == pytest.approx([np.inf, np.inf, 1 / (1 - 0.36)])


TWO, THREE = np.eye(2), np.eye(3)


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda: measures.fidelity(THREE, TWO), r"\(3, 3\) and \(2, 2\)"),
        (lambda: measures.fidelity(np.ones((3, 2)), THREE), r"\(3, 2\)"),
        (lambda: measures.fidelity(THREE, np.ones(3)), r"\(3,\)"),
        (lambda: measures.fidelity(THREE, THREE[:, :2]), "without anchors"),
        (lambda: measures.fidelity(THREE, THREE, anchors=np.ones((3, 2))), "same shape"),
        (lambda: measures.fidelity(TWO, "T"), "T must contain only numbers.*'T'"),
        (lambda: measures.residual_by("squared", THREE, THREE, pair_weights=TWO), r"\(2, 2\)"),
        (lambda: measures.residual_by("l2", TWO, TWO), "criterion must be one of 'squared'"),
        (lambda: measures.vif(None), "square matrix, got None"),
        (lambda: measures.vif([[1.0, np.nan], [np.nan, 1.0]]), "finite"),
    ],
)
def test_what_does_not_fit(call, told):
    with pytest.raises((InvalidArgumentError, InvalidCorrelationError), match=told):
        call()
