"""Tolerances outside the certificates, tested at their size: input, files, caches."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pytest
from scipy.linalg import null_space

from skcoral import CORAL, api, decorrelate, maximize_fidelity
from skcoral.certificates import check
from skcoral.certificates.certify import certify
from skcoral.core.deficiency import linear_relations
from skcoral.core.linalg import correlation_of_covariance, inflation_factors
from skcoral.core.lowrank import LowRankTransform
from skcoral.core.problem import Problem, check_correlation, check_pair_weights, check_semidefinite
from skcoral.core.tolerances import MEAN_TOL
from skcoral.data.effects import measure_matrix
from skcoral.data.moments import Moments
from skcoral.data.wide import duplicates
from skcoral.datasets import load_wine, make_system
from skcoral.exceptions import (
    InvalidArgumentError,
    InvalidCorrelationError,
    InvalidTableError,
)
from skcoral.models import load_model, save_model
from skcoral.show.sentences import status
from skcoral.solvers.exact import best_exact
from skcoral.solvers.exact.solver import _mean_room, exact_solution
from skcoral.solvers.support import exactness
from skcoral.solvers.tradeoff.solved import Solved
from skcoral.tables.matrices import named_matrix

R = make_system(6)
NAMES = [f"x{j}" for j in range(6)]


def nudged(i: int, j: int, step: float) -> np.ndarray:
    out = R.copy()
    out[i, j] += step
    return out


@pytest.mark.parametrize("place", [(0, 1), (2, 2)])
def test_symmetry_and_unit_diagonal(place: tuple[int, int]) -> None:
    check_correlation(nudged(*place, 0.5e-8))
    with pytest.raises(InvalidCorrelationError):
        check_correlation(nudged(*place, 5e-8))


def test_pair_weights_are_symmetric() -> None:
    check_pair_weights(nudged(0, 1, 0.5e-8) ** 2, NAMES)
    with pytest.raises(InvalidArgumentError, match="symmetric"):
        check_pair_weights(nudged(0, 1, 5e-8) + 1, NAMES)


def test_correlations_beyond_one() -> None:
    for step, refused in ((5e-8, True), (0.2e-8, False)):
        two = np.array([[1.0, 1 + step], [1 + step, 1.0]])
        with pytest.raises(InvalidCorrelationError) as caught:
            check_correlation(two)
        assert ("lie in" in str(caught.value)) == refused


def test_anchors_that_count_as_dependent() -> None:
    def pair(step: float) -> np.ndarray:
        B = np.ones((6, 2))
        B[0, 1] += step
        return B

    Y = np.linalg.cholesky(R).T @ pair(1e-3)
    Y /= np.linalg.norm(Y, axis=0)
    rate = (1.0 - Y[:, 0] @ Y[:, 1]) / 1e-6  # 1 - r is proportional to the square of the step
    Problem.of(R, anchors=pair(np.sqrt(2 * 3e-12 / rate)))  # the ratio of eigenvalues: 3e-12
    with pytest.raises(InvalidArgumentError, match="`anchor1` = `anchor0`"):
        Problem.of(R, anchors=pair(np.sqrt(2 * 0.3e-12 / rate)))


@pytest.mark.parametrize("floor", [0.3, 0.95, 0.99, 0.999999])
def test_floors_and_variances_are_met_to_rounding(floor: float) -> None:
    for result in (decorrelate(R, floor), decorrelate(R, floor, criterion="worst")):
        assert np.all(np.diag(R @ result.T) >= floor - 2e-15)
        assert np.abs(np.einsum("ij,ij->j", result.T, R @ result.T) - 1).max() <= 1e-14


def test_supports_that_carry_an_exact_transformation_are_never_called_impossible() -> None:
    """R is made from T, so T itself is the proof; only its digits are rounded away."""
    rng = np.random.default_rng(0)
    for _ in range(40):
        p = int(rng.integers(4, 8))
        mask = (rng.random((p, p)) < 0.45) | np.eye(p, dtype=bool)
        T = np.where(mask, rng.normal(size=(p, p)), 0.0) + 2 * np.eye(p)
        C = correlation_of_covariance(np.linalg.inv(T @ T.T))
        assert exactness(C, mask).verdict != "impossible"


def test_a_model_is_replaced_and_not_written_over(tmp_path: Path) -> None:
    """Whoever has the old file open goes on reading the old file."""
    X = load_wine().data
    path, other = tmp_path / "model.json", tmp_path / "the same file"
    save_model(CORAL(rho_min=0.5).fit(X), path)
    os.link(path, other)
    save_model(CORAL(rho_min=0.9).fit(X), path)
    assert load_model(other).rho_min == 0.5
    assert load_model(path).rho_min == 0.9


def test_the_moments_of_the_caller_are_unchanged() -> None:
    X = load_wine().data
    moments = Moments.from_rows(X[:100])
    before = {name: np.array(value) for name, value in moments.state().items()}
    model = CORAL(rho_min=0.5).fit_moments(moments)
    model.partial_fit(X[100:])
    assert model.n_samples_seen_ == len(X)
    for name, value in moments.state().items():
        np.testing.assert_array_equal(np.array(value), before[name])


def test_every_setting_of_the_matrix_is_in_the_request_of_the_app() -> None:
    """Two questions with different answers are never remembered under one key."""
    pytest.importorskip("streamlit")
    from skcoral.app.problem import request_of
    from skcoral.app.settings import Settings

    names = {"without": ("ash",), "include": ("ash",), "weights": "ash", "target": "ash"}
    others = [{}, {"covariance": "OAS"}, {"covariance": "GraphicalLasso"}]
    others += [{name: value} for name, value in names.items()]
    requests = [request_of(Settings(**chosen)) for chosen in others]
    assert len(set(requests)) == len(requests)


@pytest.mark.filterwarnings("ignore::skcoral.exceptions.NotCertifiedWarning")
def test_the_highest_floor_within_a_limit_on_the_vif() -> None:
    """Called optimal if its bound is no more than 1e-6 above it."""
    with patch.object(api, "certify", lambda *asked: asked):
        problem, solution = maximize_fidelity(R, 1.1, criterion="vif")
    for above, certified in ((5e-6, False), (0.5e-6, True)):
        goal = replace(solution.goal, rho_upper=float(solution.rho_min[0]) + above)
        moved = certify(problem, replace(solution, goal=goal))
        assert moved.is_certified == certified
        assert status(moved) == ("optimal within the limit" if certified else "best found")


@pytest.mark.parametrize(("r", "costs"), [(3e-10, True), (0.3e-10, False)])
def test_a_correlation_that_makes_a_floor_of_one_cost_anything(r: float, costs: bool) -> None:
    two = np.array([[1.0, r], [r, 1.0]])
    answer = decorrelate(two, 1.0, support=np.ones((2, 2), bool))
    assert np.all(np.isinf(answer.prices) == costs)
    assert check(answer, two).passed
    forged = replace(answer, prices=np.where(costs, 0.0, np.full(2, np.inf)))
    assert not check(forged, two).passed


@pytest.mark.parametrize(("part", "takes_part"), [(3e-9, True), (0.3e-9, False)])
def test_a_variable_that_takes_part_in_a_dependency(part: float, takes_part: bool) -> None:
    """The fourth is the sum of the first two, and of so much of the third."""
    rows = np.array([[1, 0, 0, 1], [0, 1, 0, 1], [0, 0, 1, 2 * part]]) / [1, 1, 1, np.sqrt(2)]
    dependent = rows.T @ rows
    np.fill_diagonal(dependent, 1.0)
    factors = inflation_factors(dependent)
    assert np.isinf(factors[[0, 1, 3]]).all()
    assert np.isinf(factors[2]) == takes_part


@pytest.mark.parametrize(("share", "named"), [(3e-6, True), (0.3e-6, False)])
def test_a_coefficient_that_is_named_in_a_dependency(share: float, named: bool) -> None:
    null = np.array([[1.0, -1.0, share, 0.0]])
    (relation,) = linear_relations(null_space(null).T, ["a", "b", "c", "d"])
    assert ("c" in relation.names) == named
    assert "d" not in relation.names


@pytest.mark.parametrize(("above", "weakest"), [(3e-9, "b"), (0.3e-9, "a")])
def test_the_weakest_of_equal_fidelities_is_the_first(above: float, weakest: str) -> None:
    measured = measure_matrix(np.eye(2), np.eye(2), ("a", "b"))
    assert replace(measured, fidelity=np.array([0.9 + above, 0.9])).weakest == weakest


@pytest.mark.parametrize(("least", "refused"), [(-3e-12, True), (-0.3e-12, False)])
def test_an_eigenvalue_below_zero_by_rounding(least: float, refused: bool) -> None:
    values, vectors = np.linalg.eigh(np.full((3, 3), 0.2) + 0.8 * np.eye(3))
    values[0] = least * values[-1]
    matrix = correlation_of_covariance((vectors * values) @ vectors.T)
    values = np.linalg.eigvalsh(matrix)
    assert values[0] == pytest.approx(least * values[-1], rel=0.1)
    if refused:
        with pytest.raises(InvalidCorrelationError, match="not positive definite"):
            check_semidefinite(matrix)
    else:
        assert check_semidefinite(matrix).deficiency.rank == 2


@pytest.mark.parametrize(("spread", "flat"), [(3e-150, False), (0.3e-150, True)])
def test_a_spread_that_is_too_small_for_squares(spread: float, flat: bool) -> None:
    X = spread * np.array([[-1.0], [1.0]] * 3)
    assert Moments.from_rows(X).constant_columns() == (("x0",) if flat else ())


@pytest.mark.parametrize(("apart", "copies"), [(3e-10, False), (0.3e-10, True)])
def test_columns_that_count_as_copies(apart: float, copies: bool) -> None:
    """Distances are those of 1 - |r|; the projections that the search sorts by are not apart."""
    rng = np.random.default_rng(0)
    key, a = rng.normal(size=(2, 5))
    a /= np.linalg.norm(a)
    turn = null_space([a, key])[:, 0]
    angle = np.arccos(1 - apart)
    b = np.sin(angle) * turn + np.cos(angle) * a
    pairs = duplicates(np.column_stack([a, -b]))
    assert pairs == ([(0, 1)] if copies else [])


@pytest.mark.parametrize(("least", "inverts"), [(3e-13, True), (0.3e-13, False)])
def test_a_transformation_of_few_factors_that_inverts(least: float, inverts: bool) -> None:
    v = np.array([0.6, 0.0, 0.8, 0.0])
    T = LowRankTransform((least - 1) * v[:, None], v[None, :])  # v shrinks to `least` of itself
    rows, unique = T.solve(least * v)
    assert unique == inverts
    np.testing.assert_allclose(rows, v if inverts else 0 * v, atol=0.02)


@pytest.mark.parametrize(("off", "one"), [(3e-6, False), (0.3e-6, True)])
def test_a_printed_diagonal_of_one(off: float, one: bool) -> None:
    """A little further off it is a covariance matrix, and has a scale."""
    matrix = np.array([[1 + off, 0.3, 0.2], [0.3, 1.0, 0.1], [0.2, 0.1, 1.0]])
    matrix = named_matrix(matrix, ("a", "b", "c"), "it")
    assert (matrix.scale is None) == one


@pytest.mark.parametrize(("least", "refused"), [(-3e-5, True), (-1e-6, False)])
def test_a_printed_covariance_matrix_is_semidefinite(least: float, refused: bool) -> None:
    r = (least - 1) / 2  # the smallest eigenvalue of three equal correlations is 1 + 2r
    matrix = 4 * np.where(np.eye(3) > 0, 1.0, r)
    if refused:
        with pytest.raises(InvalidCorrelationError, match="semidefinite"):
            named_matrix(matrix, ("a", "b", "c"), "it")
    else:
        assert named_matrix(matrix, ("a", "b", "c"), "it")


@pytest.mark.parametrize(("off", "word"), [(3e-8, "not_converged"), (0.3e-8, "exact")])
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_outputs_that_a_solver_calls_uncorrelated(off: float, word: str) -> None:
    floors = np.full(6, 0.3)
    best = best_exact(R, floors)
    turned = best.T @ (np.eye(6) + 0.5 * off * (np.eye(6, k=1) + np.eye(6, k=-1)))
    problem = Problem.of(R)
    solution = exact_solution(R, floors, replace(best, T=turned), problem.settings, 0.0)
    assert certify(problem, solution).status == word


@pytest.mark.parametrize(("lost", "largest"), [(3e-8, False), (0.3e-8, True)])
def test_a_mean_fidelity_that_a_solver_calls_the_largest(lost: float, largest: bool) -> None:
    """A turn of two outputs keeps them uncorrelated, and costs its square in their fidelities."""
    floors = np.zeros(6)
    best = best_exact(R, floors)
    C = R @ best.T
    angle = np.sqrt(2 * 6 * lost / (C[0, 0] + C[1, 1]))
    turn = np.eye(6)
    turn[:2, :2] = [[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]]
    other = best.T @ turn
    assert np.mean(np.diag(C)) - np.mean(np.diag(R @ other)) == pytest.approx(lost, rel=0.01)
    room = _mean_room(R, floors, replace(best, T=other))
    assert (room <= MEAN_TOL) == largest


@pytest.mark.parametrize(("gap", "closed"), [(3e-7, False), (0.3e-7, True)])
@pytest.mark.parametrize("objective", [0.2, 40.0])
def test_a_gap_that_a_solver_calls_closed(gap: float, closed: bool, objective: float) -> None:
    gap = gap * max(1.0, objective)
    none = np.zeros((6, 6))
    solved = Solved(
        T=np.eye(6),
        G=R,
        fidelity=np.ones(6),
        objective=objective,
        lower_bound=objective - gap,
        lam=none[0],
        H=none,
        binding=none[0] > 0,
        n_iter=1,
    )
    assert solved.certified == closed


@pytest.mark.parametrize(
    ("weight", "refused"), [(3e-100, False), (0.3e-100, True), (0.3e100, False), (3e100, True)]
)
def test_row_weights_whose_squares_leave_the_range(weight: float, refused: bool) -> None:
    X, weights = np.arange(6.0).reshape(3, 2) ** 2, np.array([weight, weight, 0.0])
    if refused:
        with pytest.raises(InvalidTableError, match="between 1e-100 and 1e\\+100"):
            Moments.from_rows(X, sample_weight=weights)
    else:
        Moments.from_rows(X, sample_weight=weights)
