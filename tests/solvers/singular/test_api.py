"""Singular matrices through the four questions."""

from __future__ import annotations

import re
import warnings

import numpy as np
import pandas as pd
import pytest

import judge
from skcoral import CORAL, decorrelate, frontier, maximize_fidelity, threshold
from skcoral.certificates import check
from skcoral.core.problem import check_semidefinite
from skcoral.exceptions import (
    InfeasibleError,
    InvalidArgumentError,
    NotCertifiedWarning,
    SingularCorrelationError,
    SingularCorrelationWarning,
)
from skcoral.solvers.singular.problem import FrameProblem

pytestmark = [
    pytest.mark.filterwarnings("ignore::skcoral.exceptions.SingularCorrelationWarning"),
    pytest.mark.filterwarnings("ignore::skcoral.exceptions.NotCertifiedWarning"),
]


@pytest.fixture(scope="module")
def totals(tables):
    X = tables.factors(60, 6)
    frame = pd.DataFrame(X, columns=list("abcdef"))
    frame["total"] = frame.a + frame.b + frame.c
    return frame.corr()


def test_the_relation_is_named_and_what_it_means(totals):
    with pytest.warns(SingularCorrelationWarning, match="`total` = .*`a` .*`b` .*`c`") as caught:
        decorrelate(totals, 0.99)
    message = str(caught[0].message)
    assert "rank 6 of 7" in message
    assert "dropping `total`" in message
    assert caught[0].filename == __file__


def test_what_is_said_of_all_outputs_is_true_of_composites(totals):
    """As many composites as the rank has directions can be decorrelated, and nobody denies it."""
    with pytest.warns(SingularCorrelationWarning) as caught:
        answer = decorrelate(totals, 0.3, anchors=np.eye(7)[:, :6])
    assert answer.objective == pytest.approx(0.0, abs=1e-9)
    message = str(caught[0].message)
    for what in ("7 outputs in 6 dimensions", "0.583333", "Full rank would take"):
        assert what in message  # (49/6 - 7)/2, and nothing of fewer outputs


def test_refusal_on_request(totals):
    for ask in (threshold, decorrelate, frontier, lambda R, **k: maximize_fidelity(R, 1.0, **k)):
        with pytest.raises(SingularCorrelationError, match="total"):
            ask(totals, on_singular="raise")
    with pytest.raises(InvalidArgumentError, match="on_singular"):
        decorrelate(totals, on_singular="ignore")


@pytest.mark.parametrize("criterion", ["squared", "worst", "absolute"])
@pytest.mark.parametrize("floor", [None, 0.5, 0.99, {"a": 0.9, "total": 1.0}])
def test_the_definition_holds(totals, criterion, floor):
    answer = decorrelate(totals, floor, criterion=criterion)
    R = totals.to_numpy()
    assert judge.wrongs(R, answer, {}) == []
    np.testing.assert_allclose(answer.T.T @ R @ answer.T, answer.correlation, atol=1e-10)
    np.testing.assert_allclose((R * answer.T).sum(axis=0), answer.fidelity, atol=1e-10)
    assert answer.rank == 6
    assert answer.least_residual == pytest.approx((49 / 6 - 7) / 2)
    assert answer.names == tuple(totals.columns)
    assert (answer.status == "optimal") == (answer.gap <= 1e-7 * max(1.0, answer.objective))
    assert answer.unique == (criterion == "squared")  # ties of the others are not broken here


def test_no_floor_given_means_the_least_residual_at_the_largest_floor(totals):
    th, answer = threshold(totals), decorrelate(totals)
    assert th.rank == 6
    assert th.least_residual == pytest.approx((49 / 6 - 7) / 2)
    assert th.lower <= th.upper
    G = th.T.T @ totals.to_numpy() @ th.T
    assert 0.5 * (np.sum(G**2) - 7) == pytest.approx(th.least_residual, rel=1e-9)
    assert (totals.to_numpy() * th.T).sum(axis=0).min() == pytest.approx(th.lower, abs=1e-9)
    assert answer.status == "optimal"
    assert answer.objective == pytest.approx(th.least_residual, rel=1e-8)
    assert answer.min_fidelity == pytest.approx(th.lower, abs=1e-9)
    above = decorrelate(totals, min(th.upper + 1e-3, 1.0))
    assert above.lower_bound > th.least_residual


def test_transformation_is_the_identity_at_floors_of_one(totals):
    answer = decorrelate(totals, 1.0)
    np.testing.assert_allclose(answer.T, np.eye(7), atol=1e-9)
    assert answer.status == "optimal"


def test_budget_is_the_inverse_of_the_frontier(totals):
    curve = frontier(totals, rho_min=[0.97, 0.99])
    answer = maximize_fidelity(totals, float(curve.objective[1]))
    assert float(answer.rho_min[0]) == pytest.approx(0.99, abs=1e-6)
    assert answer.objective <= curve.objective[1] * (1 + 1e-8)
    assert answer.goal.rho_upper >= float(answer.rho_min[0])
    with pytest.raises(InfeasibleError, match="below"):
        maximize_fidelity(totals, 0.1)


@pytest.mark.parametrize("criterion", ["squared", "worst", "absolute"])
@pytest.mark.parametrize(("n", "p"), [(8, 12), (10, 24)])
def test_open_budgets_are_met_after_few_floors(tables, criterion, n, p):
    """Where gaps are open, no digits are looked for that other outputs would change."""
    R = np.corrcoef(tables.factors(n, p).T)
    raw = decorrelate(R, 1.0, criterion=criterion).objective
    least = frontier(R, [0.0], criterion=criterion).objective[0]
    budget, visits = least + 0.2 * (raw - least), []
    answer = maximize_fidelity(
        R, budget, criterion=criterion, callback=lambda *visit: visits.append(visit)
    )
    floor = float(answer.rho_min[0])
    assert 0.98 * budget <= answer.objective <= budget * (1 + 1e-8)
    assert floor <= answer.goal.rho_upper <= floor + 0.02
    assert check(answer, R).passed
    proofs = {bound for _, _, bound in visits}
    assert len(proofs) <= 10  # each of these takes as long as all outputs that are followed


def test_frontier_rises_from_the_least_residual_to_the_raw_one(totals):
    curve = frontier(totals, n_points=6)
    R = totals.to_numpy()
    assert curve.objective[0] == pytest.approx((49 / 6 - 7) / 2, rel=1e-8)
    assert curve.objective[-1] == pytest.approx(0.5 * (np.sum(R**2) - 7), rel=1e-9)
    assert (np.diff(curve.objective) > 0).all()
    assert (curve.lower_bound <= curve.objective).all()


def test_an_open_gap_is_reported(tables):
    R = np.corrcoef(tables.sums(100, 12, 1).T)
    with pytest.warns(NotCertifiedWarning, match="gap"):
        answer = decorrelate(R, 0.93)
    assert answer.status == "best_found"
    assert answer.lower_bound < answer.objective <= 1.03 * answer.lower_bound


def test_directions_that_carry_variance_count():
    """A direction of variance 1e-8 is amplified: it is no rounding."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 4))
    X = np.column_stack([X, X[:, 0] + X[:, 1] + 1e-4 * rng.normal(size=200)])
    R = np.corrcoef(X.T)
    exact = decorrelate(R)
    assert exact.status == "exact"
    assert exact.rank == 5
    assert np.abs(exact.T).max() > 1000
    with pytest.raises(TypeError, match="rank_tol"):
        decorrelate(R, rank_tol=1e-6)


def test_composites_of_dependent_variables(totals):
    B = np.eye(7)[:, :3]
    answer = decorrelate(totals, 0.3, anchors=B)
    assert answer.status == "exact"
    assert answer.T.shape == (7, 3)
    with pytest.raises(InvalidArgumentError, match="depend on each other"):
        decorrelate(totals, 0.99, anchors=np.eye(7))


def test_support_needs_full_rank(totals):
    with pytest.raises(SingularCorrelationError, match="support"):
        decorrelate(totals, 0.5, support=np.eye(7))
    with pytest.raises(SingularCorrelationError, match="A bound on coefficients needs"):
        decorrelate(totals, 0.5, bounds=(-1, 2))


@pytest.mark.parametrize("p", [2, 5])
def test_rank_one(p):
    R = np.outer(np.r_[1.0, -np.ones(p - 1)], np.r_[1.0, -np.ones(p - 1)])
    answer = decorrelate(R, 0.4)
    assert answer.rank == 1
    assert answer.status == "optimal"
    assert answer.objective == pytest.approx(p * (p - 1) / 2)
    assert threshold(R).value == pytest.approx(1.0)


def test_shrunk_problems_tend_to_the_lifted_bound_and_not_to_the_singular_problem(totals, tables):
    """With any shrinkage outputs use directions that the rows do not have."""
    R = totals.to_numpy()
    floors = np.full(7, 0.95)
    A = check_semidefinite(R).deficiency.factor
    arrays, _, _ = FrameProblem(A).lifted(floors)
    limit = tables.bound_of("tradeoff", arrays, A, floors)
    singular = decorrelate(R, 0.95)
    values = [decorrelate((1 - s) * R + s * np.eye(7), 0.95).objective for s in (1e-3, 1e-5, 1e-7)]
    assert abs(values[-1] - limit) < 1e-2 * limit
    assert abs(values[-1] - limit) < abs(values[0] - limit)
    assert limit < 0.95 * singular.lower_bound


@pytest.mark.filterwarnings("ignore::skcoral.exceptions.RoundingWarning")
@pytest.mark.parametrize("seed", [0, 5, 15, 20, 29, 33])
def test_tables_of_n_equal_p_in_any_units_pass_their_own_check(seed):
    """Weak directions are amplified by 1e3 and more; variances hold to the last digits of R."""
    rng = np.random.default_rng(seed)
    p = int(rng.integers(3, 9))
    units = 10.0 ** rng.uniform(-6, 6, size=p)
    X = np.cov((rng.normal(size=(60, p)) @ rng.normal(size=(p, p)) * units).T)
    if seed % 2 == 0:
        weak = np.diag(10.0 ** rng.uniform(-5, 0, size=p))
        X = rng.normal(size=(p, p)) @ weak @ rng.normal(size=(p, p)) * units
    model = CORAL().fit(X)
    assert model.result_.rank < p
    verdict = check(model.result_, model.correlation_)
    assert verdict.passed, verdict.problems


def test_relations_of_dummies_are_stated_up_to_constants():
    groups = np.random.default_rng(0).integers(0, 3, size=40)
    table = pd.DataFrame({f"g{k}": (groups == k).astype(float) for k in range(3)})
    told = CORAL(0.9).fit(table).result_.deficiency
    assert re.search(r"`g\d` = -`g\d` - `g\d` \(up to constants", told)  # g0 = 1 - g1 - g2


@pytest.mark.parametrize("criterion", ["squared", "worst"])
def test_warm_starts_from_the_window_before(tables, criterion):
    """Rows enter and leave; the answer is as good as without, after fewer steps."""
    rows = tables.factors(13, 20, 2)
    windows = [np.corrcoef(rows[k : k + 12].T) for k in (0, 1)]
    before = decorrelate(windows[0], 0.97, criterion=criterion)
    cold, warm = (
        decorrelate(windows[1], 0.97, criterion=criterion, warm=w) for w in (None, before)
    )
    assert warm.objective == pytest.approx(cold.objective, rel=1e-3)
    assert warm.lower_bound == pytest.approx(cold.lower_bound, rel=1e-6)
    assert (warm.fidelity >= 0.97 - 1e-12).all()
    assert check(warm, windows[1]).passed
    with pytest.raises(InvalidArgumentError, match="20 outputs"):
        decorrelate(windows[1], 0.97, warm=decorrelate(np.eye(3), 0.5))


def test_a_frontier_of_copies_where_newton_equations_are_singular():
    """Two copies beside a third variable, at floors where a part of the bound ends on its edge."""
    r = -0.7598599739550335
    R = np.array([[1.0, r, 1.0], [r, 1.0, r], [1.0, r, 1.0]])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        curve = frontier(R, n_points=5)
    assert curve.objective[-1] == pytest.approx(1.0 + 2.0 * r**2)  # unchanged
    assert (curve.lower_bound <= curve.objective + 1e-12).all()
    assert (curve.lower_bound >= 0.75 - 1e-9).all()  # Welch: (9/2 - 3)/2


@pytest.mark.parametrize("weak", [1e-7, 1e-8, 1e-10])
def test_thresholds_of_weak_directions_pass_their_check(weak):
    for seed in range(4):
        F = np.random.default_rng(seed).normal(size=(2, 4))
        F /= np.linalg.norm(F, axis=0)
        R = (1 - weak) * np.ones((4, 4)) + weak * F.T @ F
        np.fill_diagonal(R, 1.0)
        th = threshold(R)
        assert th.rank == 3
        assert check(th, R).passed


def test_rounding_does_not_count_as_a_direction():
    """Three categories with dummies for all levels; the rank is known."""
    levels = (5, 4, 4)
    for seed in (0, 4, 6, 10, 11, 16):
        rng = np.random.default_rng(seed)
        rows = [np.r_[np.arange(k), rng.integers(0, k, 200 - k)] for k in levels]
        X = np.hstack([np.eye(k)[own] for k, own in zip(levels, rows, strict=True)])
        R = np.corrcoef(X.T)
        answer = decorrelate(R, 0.5)
        assert answer.rank == sum(levels) - len(levels)
        assert check(answer, R).passed


@pytest.mark.parametrize("copies", [(4, 5), (1, 1, 1, 1, 2), (2, 3), (1, 6, 2)])
def test_bounds_do_not_exceed_objectives_by_rounding(copies):
    F = np.repeat(np.eye(len(copies)), copies, axis=1)
    answer = decorrelate(F.T @ F, 0.0)
    assert answer.objective == pytest.approx(answer.least_residual, rel=1e-9)
    assert answer.gap >= 0.0
