"""What a transformation does to a matrix, against the rows and their regressions."""

from dataclasses import replace

import numpy as np
import pytest

from skcoral.data.effects import measure_matrix
from skcoral.exceptions import InvalidArgumentError


@pytest.fixture(scope="module")
def case():
    """Standardised rows, their correlation matrix, and a transformation of any variance."""
    rng = np.random.default_rng(5)
    X = rng.normal(size=(40, 6)) @ rng.normal(size=(6, 6)) + 100.0
    return (X - X.mean(axis=0)) / X.std(axis=0, ddof=1), np.corrcoef(X.T), rng.normal(size=(6, 6))


def inflation(rows):
    """One over the share of each column that regression on the others leaves."""
    factors = []
    for j in range(rows.shape[1]):
        others = np.delete(rows, j, axis=1)
        left = rows[:, j] - others @ np.linalg.lstsq(others, rows[:, j], rcond=None)[0]
        factors.append((rows[:, j] @ rows[:, j]) / (left @ left))
    return factors


def test_figures_of_a_matrix_are_those_of_the_rows(case):
    Z, R, T = case
    measured = measure_matrix(R, T)
    outputs = Z @ T
    fidelity = [np.corrcoef(Z[:, j], outputs[:, j])[0, 1] for j in range(6)]
    left = np.abs(np.corrcoef(outputs.T) - np.eye(6))
    assert measured.fidelity == pytest.approx(fidelity, abs=1e-12)
    assert measured.residual == pytest.approx(left.max(axis=0), abs=1e-12)
    assert measured.residual_before == pytest.approx(np.abs(R - np.eye(6)).max(axis=0), abs=1e-12)
    assert measured.vif == pytest.approx(inflation(outputs), rel=1e-9)
    assert measured.vif_before == pytest.approx(inflation(Z), rel=1e-10)
    assert measured.names == ("x0", "x1", "x2", "x3", "x4", "x5")


def test_fidelity_to_anchors_is_the_correlation_with_the_composite(case):
    Z, R, T = case
    B = np.random.default_rng(6).normal(size=(6, 3))
    wanted = [np.corrcoef(Z @ B[:, j], Z @ T[:, j])[0, 1] for j in range(3)]
    assert measure_matrix(R, T[:, :3], anchors=B).fidelity == pytest.approx(wanted, abs=1e-12)


def test_shapes_that_do_not_fit():
    for T, anchors in ((np.eye(2), None), (np.ones((3, 2)), None), (np.eye(3), np.ones((3, 2)))):
        with pytest.raises(InvalidArgumentError, match=r"T must have the shape \(3, [23]\)"):
            measure_matrix(np.eye(3), T, anchors=anchors)


def test_vif_is_infinite_where_others_determine_a_variable():
    R = np.array([[1.0, 1.0, 0.6], [1.0, 1.0, 0.6], [0.6, 0.6, 1.0]])
    wanted = [np.inf, np.inf, 1 / (1 - 0.36)]
    assert measure_matrix(R, np.eye(3)).vif == pytest.approx(wanted)


@pytest.mark.parametrize(("above", "weakest"), [(3e-9, "b"), (0.3e-9, "a")])
def test_the_weakest_of_equal_fidelities_is_the_first(above: float, weakest: str) -> None:
    measured = measure_matrix(np.eye(2), np.eye(2), ("a", "b"))
    assert replace(measured, fidelity=np.array([0.9 + above, 0.9])).weakest == weakest
