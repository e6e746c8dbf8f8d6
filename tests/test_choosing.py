"""Choosing a floor: limits that people think in, the table of usual floors, the grid of a curve."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest

from skcoral import CORAL, decorrelate, frontier, maximize_fidelity, words
from skcoral.certificates import check, prove
from skcoral.certificates.inflation import proved_floor
from skcoral.choosing import compare_floors
from skcoral.datasets import make_system, wdi_correlation
from skcoral.exceptions import (
    InvalidArgumentError,
    InvalidBudgetError,
    SingularCorrelationError,
)
from skcoral.tradeoff import solve_vif


def vif_of(G):
    return np.diag(np.linalg.inv(G))


def largest(G):
    return np.abs(G - np.diag(np.diag(G))).max()


def pair_floor(r_before, r_after):
    """The highest common fidelity of two outputs with correlation ``r_after``: a closed form."""
    return 0.5 * (np.sqrt((1 + r_before) * (1 + r_after)) + np.sqrt((1 - r_before) * (1 - r_after)))


@pytest.mark.parametrize("limit", [1.0, 1.2, 2.5, 9.0])
def test_two_variables_have_a_closed_form(limit):
    R = np.array([[1.0, 0.8], [0.8, 1.0]])
    answer = maximize_fidelity(R, limit, criterion="vif")
    r = min(np.sqrt(1 - 1 / limit), 0.8)
    assert answer.min_fidelity == pytest.approx(pair_floor(0.8, r), abs=1e-7)
    assert vif_of(answer.correlation).max() <= limit + 1e-9


def semidefinite_floor(R, limit):
    """The highest floor within a limit on the VIF by an independent solver: (G⁻¹)_jj ≤ limit is
    G ⪰ e_j e_jᵀ / limit."""
    p = len(R)
    L = np.linalg.cholesky(R)
    W, G, floor = cp.Variable((p, p)), cp.Variable((p, p), symmetric=True), cp.Variable()
    rules = [cp.bmat([[np.eye(p), W], [W.T, G]]) >> 0, cp.diag(G) == 1, cp.diag(L @ W) >= floor]
    rules += [G - np.outer(e, e) / limit >> 0 for e in np.eye(p)]
    problem = cp.Problem(cp.Maximize(floor), rules)
    problem.solve(solver=cp.CLARABEL)
    return problem.value


@pytest.mark.parametrize("limit", [1.1, 2.0, 5.0])
def test_vif_limit_agrees_with_a_semidefinite_program(limit):
    R = wdi_correlation().correlation
    answer = maximize_fidelity(R, limit, criterion="vif")
    assert answer.rho_min[0] == pytest.approx(semidefinite_floor(R, limit), abs=1e-6)
    assert vif_of(answer.correlation).max() <= limit
    assert 0 <= answer.details["rho_upper"] - answer.rho_min[0] <= 1e-6
    np.testing.assert_allclose(np.diag(answer.T.T @ R @ answer.T), 1, atol=1e-12)
    for judge in (check, prove):
        verdict = judge(answer, R)
        assert verdict.passed, verdict.problems
        assert {"VIF", "largest VIF", "largest floor"} <= {c.name for c in verdict.claims}
    assert words.is_certified(answer)
    assert answer.summary().splitlines()[1].startswith("Certified for the matrix given: every")


@pytest.mark.parametrize("seed", range(4))
def test_the_bound_on_the_floor_holds_whatever_the_multipliers(seed):
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(6, 3))
    S = A @ A.T + np.diag(rng.uniform(0.2, 1.0, 6))
    R = S / np.sqrt(np.outer(np.diag(S), np.diag(S)))
    best = semidefinite_floor(R, 1.7)
    answer = maximize_fidelity(R, 1.7, criterion="vif")
    found = answer.certificate.arrays
    assert best - 1e-6 <= proved_floor(R, answer.T, found, 1.7) <= best + 2e-6
    for size in np.geomspace(1e-6, 1, 20):
        roots = found["vif_roots"] * (1 + size * rng.normal(size=6))
        Y = found["vif_vectors"] + size * rng.normal(size=(6, 6))
        H = np.diag(np.diag(found["vif_H"]) + size * rng.uniform(size=6)) - Y @ Y.T
        H = H + size * np.eye(6) * max(0.0, -np.linalg.eigvalsh(H)[0] / size + 1)
        weights = rng.uniform(size=6)
        parts = {"vif_weights": weights, "vif_H": 0.5 * (H + H.T)}
        parts |= {"vif_roots": roots, "vif_vectors": Y}
        assert best - 1e-6 <= proved_floor(R, answer.T, parts, 1.7) < np.inf


def test_many_variables_get_the_best_of_the_curve_and_are_reported(monkeypatch):
    monkeypatch.setitem(solve_vif.__globals__, "_LARGEST", 5)
    R = wdi_correlation().correlation
    answer = maximize_fidelity(R, 2.0, criterion="vif")
    assert vif_of(answer.correlation).max() == pytest.approx(2, abs=1e-6)
    assert vif_of(decorrelate(R, answer.rho_min[0] + 1e-4).correlation).max() > 2
    assert not words.is_certified(answer)
    assert "Not certified" in answer.summary()
    assert "keeps more is not proved" in answer.summary()
    assert "status best found" in answer.summary()


def test_a_table_that_keeps_to_the_limit_is_unchanged():
    R = make_system(8)
    answer = maximize_fidelity(R, 1.01 * vif_of(R).max(), criterion="vif")
    np.testing.assert_allclose(answer.T, np.eye(8), atol=1e-12)
    assert "nothing was changed" in answer.summary()


def test_limits_of_the_transformer_hold_on_its_outputs(wine):
    X = wine.to_frame()
    by_vif = CORAL(max_vif=2).fit(X)
    assert vif_of(np.corrcoef(by_vif.transform(X).T)).max() == pytest.approx(2, abs=1e-6)
    assert by_vif.fidelity_.min() > 0.98
    assert "status optimal within the limit" in by_vif.summary()
    by_pair = CORAL(max_correlation=0.3).fit(X)
    G = np.corrcoef(by_pair.transform(X).T)
    assert largest(G) == pytest.approx(0.3, abs=1e-6)
    assert by_pair.result_.status == "optimal"
    # no floor above is possible, by the least largest residual at a floor a little higher
    above = decorrelate(X.corr(), by_pair.fidelity_.min() + 1e-5, criterion="worst")
    assert above.lower_bound > 0.3
    assert check(by_pair.result_, by_pair.correlation_).passed
    assert "(proved)" in by_pair.summary()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"max_vif": 2, "rho_min": 0.9}, "not both rho_min and max_vif"),
        ({"max_vif": 2, "max_correlation": 0.3}, "not both max_vif and max_correlation"),
        ({"max_vif": 2, "support": 0.2}, "support goes with floors"),
        ({"max_vif": 0.9}, "at least 1"),
        ({"max_vif": np.nan}, "finite"),
        ({"max_correlation": -0.1}, "at least 0"),
        ({"max_correlation": 0.3, "criterion": "absolute"}, "criterion='worst'"),
        ({"max_vif": 2, "criterion": "worst"}, "max_vif limits the VIFs.*criterion='worst' out"),
        ({"max_vif": 2, "criterion": "absolute"}, "max_vif limits the VIFs"),
    ],
)
def test_limits_that_are_invalid(wine, settings, message):
    with pytest.raises((InvalidArgumentError, InvalidBudgetError), match=message):
        CORAL(**settings).fit(wine.to_frame())


@pytest.mark.filterwarnings("ignore::skcoral.exceptions.SingularCorrelationWarning")
def test_dependent_columns_have_no_finite_vif(wine):
    X = wine.to_frame()
    X["sum"] = X["hue"] + X["alcohol"]
    with pytest.raises(SingularCorrelationError, match="limit on the VIF"):
        CORAL(max_vif=2).fit(X)


def test_comparison_is_what_each_floor_gives(wine):
    R = wine.to_frame().corr()
    found = compare_floors(R, (0.5, 0.9, 0.97))
    assert [c.rho_min for c in found.choices] == [None, 0.9, 0.97]  # 0.5 is below ρ★
    assert largest(R.to_numpy()) == pytest.approx(found.largest_correlation_before)
    assert vif_of(R).max() == pytest.approx(found.largest_vif_before)
    for choice in found.choices:
        G = decorrelate(R, choice.rho_min).correlation
        assert choice.largest_correlation == pytest.approx(largest(G), abs=1e-5)
        assert choice.largest_vif == pytest.approx(vif_of(G).max(), abs=1e-5)
        assert choice.min_fidelity >= choice.floor - 1e-9
    assert found.to_frame()["floor"].tolist() == [c.floor for c in found.choices]


def test_the_recommendation_is_the_highest_floor_with_little_correlation(wine):
    found = compare_floors(wine.to_frame().corr())
    fits = [c for c in found.choices if c.largest_correlation <= 0.5 and c.largest_vif <= 2]
    assert found.recommended == fits[-1]
    assert f"floor {fits[-1].rho_min:g}" in found.sentence()


def test_uncorrelated_and_nearly_kept_variables_need_no_compromise():
    assert "hardly correlate" in compare_floors(np.eye(4) + 0.1 * (1 - np.eye(4))).sentence()
    almost = compare_floors([[1.0, 0.55], [0.55, 1.0]])
    assert almost.recommended.rho_min is None
    assert "0.95" in almost.sentence()


def test_dependent_columns_are_compared_without_a_vif(wine):
    X = wine.to_frame()
    X["sum"] = X["hue"] + X["alcohol"]
    found = compare_floors(X.corr())
    assert all(c.largest_vif == np.inf for c in found.choices)
    assert found.choices[-1].largest_correlation > found.choices[0].largest_correlation
    assert found.recommended is None
    assert "No floor is recommended" in found.sentence()


@pytest.mark.parametrize("criterion", ["squared", "worst"])
def test_points_of_a_curve_lie_evenly_in_floor_and_residual(wine, criterion):
    curve = frontier(wine.correlation, criterion=criterion, n_points=25)
    floors = np.diff(curve.rho_min) / np.ptp(curve.rho_min)
    residuals = np.diff(curve.objective) / np.ptp(curve.objective)
    steps = floors + residuals
    assert steps.max() <= 2 * steps.sum() / len(steps)
    assert (curve.rho_min > 0.99).sum() <= 8


@pytest.mark.parametrize("limit", [1.5, 100.0])
def test_vif_limit_of_nearly_collinear_variables(limit):
    # two variables that differ by 1e-5 of their deviation, and others correlated with both
    G = np.cos(np.arange(8)[:, None] * np.arange(1.0, 6.0))
    G = np.column_stack([G, G[:, 0] + 1e-5 * np.sin(np.arange(8.0) ** 2)])
    R = np.corrcoef(G.T)
    R = 0.5 * (R + R.T)
    np.fill_diagonal(R, 1.0)
    answer = maximize_fidelity(R, limit, criterion="vif")
    assert check(answer, R).problems == ()


@pytest.mark.parametrize("excess", [1e-12, 1e-9, 1e-6])
def test_vif_limits_next_to_one(excess):
    R = np.array([[1.0, 0.8], [0.8, 1.0]])
    answer = maximize_fidelity(R, 1.0 + excess, criterion="vif")
    assert check(answer, R).problems == ()
    # of two variables VIF = 1/(1 - r²), and the angles of both outputs add up
    left = np.sqrt((1.0 + excess - 1.0) / (1.0 + excess))
    floor = np.cos(0.5 * (np.arccos(left) - np.arccos(0.8)))
    assert answer.rho_min[0] == pytest.approx(floor, abs=2e-8)
    assert answer.details["rho_upper"] == pytest.approx(floor, abs=2e-8)
    table = make_system(5)
    found = maximize_fidelity(table, 1.0 + excess, criterion="vif")
    assert check(found, table).problems == ()
    assert found.details["rho_upper"] - found.rho_min[0] < 1e-7 + np.sqrt(excess)


def test_a_floor_that_leaves_correlation_is_not_called_the_threshold():
    rows = np.random.default_rng(0).normal(size=(40, 3))
    free = compare_floors(np.corrcoef(rows.T)).choices[0]
    assert (free.label, free.rho_min) == ("ρ★", None)
    assert free.largest_correlation < 1e-8
    bound = compare_floors(np.corrcoef(np.column_stack([rows, rows.sum(axis=1)]).T))
    assert bound.choices[0].label == "lowest"
    assert bound.choices[0].largest_correlation > 0.1
    assert "(ρ★)" not in bound._repr_html_()
