"""Fidelity, residuals and VIF against their definitions."""

import numpy as np
import pytest

from skcoral.core import measures
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
    Y = Z @ T
    pairs = np.array([np.corrcoef(Y[:, i], Y[:, j])[0, 1] for i in range(6) for j in range(i)])
    one_pair = np.zeros((6, 6))
    one_pair[1, 4] = one_pair[4, 1] = 3.0
    g = np.corrcoef(Y[:, 1], Y[:, 4])[0, 1]
    wanted = {
        "squared": ((pairs**2).sum(), 3 * g**2),
        "worst": (np.abs(pairs).max(), 3 * abs(g)),
        "absolute": (np.abs(pairs).sum(), 3 * abs(g)),
    }
    for criterion, (plain, weighted) in wanted.items():
        assert measures.residual_by(criterion, R, T) == pytest.approx(plain, rel=1e-12)
        assert measures.residual_by(criterion, R, T, pair_weights=one_pair) == pytest.approx(
            weighted
        )
        assert measures.residual_by(criterion, np.eye(1), np.eye(1)) == 0.0


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
        (lambda: measures.residual_by("worst", TWO, TWO, pair_weights=-TWO[::-1]), "negative"),
        (lambda: measures.residual_by("l2", TWO, TWO), "criterion must be one of 'squared'"),
        (lambda: measures.vif(None), "square matrix, got None"),
        (lambda: measures.vif([[1.0, np.nan], [np.nan, 1.0]]), "finite"),
    ],
)
def test_what_does_not_fit(call, told):
    with pytest.raises((InvalidArgumentError, InvalidCorrelationError), match=told):
        call()
