"""Matrices of other libraries: the same answers, computed on their device."""

from importlib import import_module
from importlib.util import find_spec

import numpy as np
import pytest
from scipy.linalg import block_diag

from skcoral import decorrelate, frontier, maximize_fidelity, threshold
from skcoral.certificates import check
from skcoral.core import arrays as _arrays
from skcoral.core.linalg import gram_defect
from skcoral.datasets import make_system, wdi_correlation
from systems import nearly_singular

SYSTEMS = {
    "idle variables": np.array(wdi_correlation().correlation),
    "all bind": make_system(18),
    "blocks": block_diag(0.1 * np.eye(3) + 0.9, np.eye(2)),
    "nearly singular": nearly_singular(9, condition=1e7),
}


@pytest.fixture(params=[name for name in ("array_api_strict", "torch") if find_spec(name)])
def library(request):
    return import_module(request.param)


@pytest.mark.parametrize("name", SYSTEMS)
def test_the_threshold_is_the_same_and_proved(library, name):
    R = SYSTEMS[name]
    there = threshold(library.asarray(R))
    assert there.status == "optimal"
    assert there.value == pytest.approx(threshold(R).value, abs=1e-10)
    assert check(there, R).passed
    assert isinstance(there.T, np.ndarray)


@pytest.mark.parametrize("name", SYSTEMS)
def test_floors_within_reach(library, name):
    R = SYSTEMS[name]
    common = threshold(R).value - 1e-3
    pinned = np.zeros(len(R))
    pinned[0] = 1.0
    for floors in (None, 0.5 * common, common, pinned):
        there = decorrelate(library.asarray(R), floors)
        assert there.status == "exact"
        assert there.mean_fidelity == pytest.approx(decorrelate(R, floors).mean_fidelity, abs=1e-8)
        assert check(there, R).passed


@pytest.mark.parametrize("name", ["idle variables", "all bind", "nearly singular"])
def test_floors_beyond_reach(library, name):
    R = SYSTEMS[name]
    above = 0.5 * (1 + threshold(R).value)
    some = np.where(np.arange(len(R)) % 3 == 0, 0.2, above)  # not all of them bind
    for floors in (above, some):
        there, here = decorrelate(library.asarray(R), floors), decorrelate(R, floors)
        assert there.status == here.status in ("optimal", "exact")
        assert there.objective == pytest.approx(here.objective, abs=1e-8)
        assert there.prices == pytest.approx(here.prices, rel=1e-5, abs=1e-5)
        assert check(there, R).passed


def test_budget_and_frontier(library):
    R = SYSTEMS["idle variables"]
    floors = [0.7, 0.8, 0.9, 1.0]
    there = frontier(library.asarray(R), floors)
    assert there.objective == pytest.approx(frontier(R, floors).objective, abs=1e-8)
    answer = maximize_fidelity(library.asarray(R), 0.1)
    assert answer.objective == pytest.approx(0.1, abs=1e-7)
    assert answer.rho_min == pytest.approx(maximize_fidelity(R, 0.1).rho_min, abs=1e-8)


@pytest.mark.parametrize("criterion", ["worst", "absolute"])
def test_the_other_criteria(library, criterion):
    R = SYSTEMS["idle variables"]
    there = decorrelate(library.asarray(R), 0.9, criterion=criterion)
    here = decorrelate(R, 0.9, criterion=criterion)
    # Iterated there, factorised here: equal within the certificates of both.
    assert there.objective == pytest.approx(here.objective, abs=here.gap + there.gap + 1e-12)


def test_single_precision_is_taken_for_what_it_is(library):
    R = library.asarray(SYSTEMS["all bind"].astype(np.float32))
    assert threshold(R).value == pytest.approx(0.958528, abs=1e-5)  # as in the paper


def test_bad_matrices_are_refused_as_ever(library):
    with pytest.raises(ValueError, match="positive definite"):
        threshold(library.asarray([[1.0, 0.9, -0.9], [0.9, 1.0, 0.9], [-0.9, 0.9, 1.0]]))


def test_operations_agree_with_numpy(library):
    rng = np.random.default_rng(0)
    A, d = rng.normal(size=(5, 5)), rng.uniform(1, 2, 5)
    P = A @ A.T + np.eye(5)
    there, positive = library.asarray(A), library.asarray(P)
    rows, columns = np.array([3, 1]), np.array([0, 4, 2])

    def equal(other, own):
        assert np.asarray(_arrays.to_host(other)) == pytest.approx(own, abs=1e-12)

    equal(_arrays.submatrix(there, rows, columns), A[np.ix_(rows, columns)])
    equal(_arrays.diagonal(there), np.diag(A))
    equal(_arrays.scaled(there, d), np.diag(d) @ A @ np.diag(d))
    equal(_arrays.column_dots(there, positive), np.diag(A.T @ P))
    equal(_arrays.row_products(there, positive), np.diag(A @ P.T))
    equal(_arrays.norm(there), np.linalg.norm(A))
    equal(_arrays.one_norm(there), np.linalg.norm(A, 1))
    equal(_arrays.largest(there, 1), np.abs(A).max(axis=1, keepdims=True))
    equal(_arrays.cholesky(positive), np.linalg.cholesky(P))
    equal(_arrays.solve_positive(positive, there), np.linalg.solve(P, A))
    equal(_arrays.solve_factored(_arrays.cholesky(positive), d), np.linalg.solve(P, d))
    equal(_arrays.inverse_factored(_arrays.cholesky(positive)), np.linalg.inv(P))
    assert _arrays.cholesky_or_none(library.asarray(-P)) is None
    equal(_arrays.inner(there, positive), np.sum(A * P))
    equal(_arrays.plus_diagonal(1.0 * there, d), A + np.diag(d))
    equal(_arrays.eigh(positive)[0], np.linalg.eigvalsh(P))
    shifted = np.zeros((5, 2))
    shifted[3, 0] = shifted[4, 1] = -1.0
    wide = library.asarray(A[:, :2].copy())  # changed in place
    equal(_arrays.plus_diagonal(wide, -1.0, first=3), A[:, :2] + shifted)


@pytest.mark.parametrize("condition", [1e1, 1e6, 1e11])
def test_singular_values_have_absolute_accuracy(library, condition):
    """Also where the eigenvalues of AᵀA have lost all digits of the small ones."""
    rng = np.random.default_rng(1)
    left, right = (np.linalg.qr(rng.normal(size=(30, 30)))[0] for _ in range(2))
    wanted = np.logspace(0, -np.log10(condition), 30)
    A = (left * wanted) @ right.T
    values, vectors = map(_arrays.to_host, _arrays.right_singular(library.asarray(A)))
    assert np.sort(values)[::-1] == pytest.approx(wanted, abs=2e-14)
    assert vectors.T @ vectors == pytest.approx(np.eye(30), abs=1e-13)
    polar = (right * wanted) @ right.T
    assert (vectors * values) @ vectors.T == pytest.approx(polar, abs=1e-13)


def test_gram_matrices_keep_their_accuracy(library):
    # Products of this size lose ten digits when they are formed directly.
    R = nearly_singular(6, condition=1e11)
    T = np.linalg.inv(np.linalg.cholesky(R)).T
    there = gram_defect(library.asarray(R), library.asarray(T))
    assert _arrays.to_host(there) == pytest.approx(gram_defect(R, T), abs=1e-14)


def test_one_variable_has_an_eigenvalue_and_a_vector():
    values, vectors = _arrays.eigh(np.array([[4.0]]))
    assert values == [4.0]
    assert abs(vectors) == [[1.0]]
