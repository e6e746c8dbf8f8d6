"""Values falsified a little beyond each tolerance of the table are refused.

All other claims are made to hold, so that the falsified one is the reason for the refusal. The
sizes are between one and ten times the tolerance: a tolerance ten times as wide fails here.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from skcoral import decorrelate, maximize_fidelity, threshold
from skcoral.bounds.support import proved_bound
from skcoral.certificates import check, prove
from skcoral.core.measures import residual_by
from skcoral.core.results import Decorrelation
from skcoral.core.solution import Budget, Certificate
from skcoral.datasets import load_wine, make_system
from skcoral.exceptions import CertificateError
from skcoral.solvers.support.caps import feasible_set
from skcoral.solvers.support.frame_relaxation import FrameBound, frame_bound
from skcoral.solvers.support.lower_bounds import frame_certificate

from .conftest import ANCHORS, MASK, R, honest


def with_T(result: Decorrelation, T: np.ndarray, **more: Any) -> Decorrelation:
    """The same claim about another transformation, with everything reported of it as it is."""
    G = T.T @ R @ T
    return replace(
        result,
        T=T,
        correlation=0.5 * (G + G.T),
        fidelity=np.einsum("ij,ij->j", R, T),
        objective=residual_by(result.criterion, R, T, pair_weights=result.pair_weights),
        **more,
    )


def broken(result: Any, *claims: str) -> None:
    """Exactly these claims do not hold, whoever judges."""
    for judge in (check, prove):
        found = judge(result, R)
        assert {claim.name for claim in found.claims if not claim.holds} == set(claims), found


@pytest.mark.parametrize("kind", ["exact", "squared", "worst", "open"])
def test_a_variance(kind: str) -> None:
    T = honest(kind).T.copy()
    T[:, 0] *= 1 + 1.5e-10
    broken(with_T(honest(kind), T), "unit variances")
    T[:, 0] *= (1 + 0.2e-10) / (1 + 1.5e-10)
    broken(with_T(honest(kind), T))


def test_a_floor() -> None:
    result = honest("exact")
    free = int(np.argmin(result.weights))
    assert result.weights[free] == 1  # a floor that does not bind enters nothing else
    floors = result.rho_min.copy()
    floors[free] = result.fidelity[free] + 5e-10
    broken(replace(result, rho_min=floors), "floors")
    floors[free] = result.fidelity[free] + 0.5e-10
    broken(replace(result, rho_min=floors))


def test_a_residual_that_is_not_exact() -> None:
    result = honest("exact")
    mix = np.eye(6)
    mix[2, 3] = mix[3, 2] = 1.5e-8  # two outputs whose floors do not bind
    broken(with_T(result, result.T @ mix), "uncorrelated")
    mix[2, 3] = mix[3, 2] = 1e-9
    broken(with_T(result, result.T @ mix))


def rotation(angle: float) -> np.ndarray:
    turn = np.eye(6)
    turn[2:4, 2:4] = [[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]]
    return turn


def test_a_mean_that_is_not_the_largest() -> None:
    result = honest("exact")

    def loss(angle: float) -> float:
        return float(result.fidelity.mean() - np.diag(R @ result.T @ rotation(angle)).mean())

    angle = np.sqrt(5e-8 / (loss(1e-3) / 1e-6))
    assert 3e-8 < loss(angle) < 8e-8
    broken(with_T(result, result.T @ rotation(angle)), "largest mean fidelity")
    broken(with_T(result, result.T @ rotation(0.2 * angle)))


def test_floors_that_are_not_the_highest() -> None:
    result = honest("edge")
    broken(replace(result, rho_min=result.rho_min - 5e-8), "largest floors")
    broken(replace(result, rho_min=result.rho_min - 2e-9))


@pytest.mark.parametrize("criterion", ["squared", "worst", "absolute"])
def test_a_gap_that_is_not_closed(criterion: Any) -> None:
    result = honest(criterion)
    slope = float(result.prices.sum())
    for gap, claims in ((5e-7, ["status"]), (0.3e-7, [])):
        other = decorrelate(R, result.rho_min + gap / slope, criterion=criterion, tol=1e-12)
        broken(with_T(result, other.T), *claims)


def test_a_gap_that_is_closed_is_not_called_open() -> None:
    broken(replace(honest("squared"), status="best_found"), "status")
    broken(replace(honest("squared"), status="not_converged"), "status")
    broken(replace(honest("exact"), status="best_found"), "status")
    broken(replace(honest("exact"), status="not_converged"), "status")
    broken(replace(honest("exact"), status="optimal"), "status")
    broken(replace(honest("support, exact"), status="optimal"), "status")


def test_bounds_that_cross() -> None:
    """Within the tolerance of the floors, but worth more than the gap that is promised."""
    floors = np.full(6, 1 - 1e-9)
    result = decorrelate(R, floors)
    lower = decorrelate(R, floors - 0.8e-10)
    lie = with_T(result, lower.T)
    assert result.lower_bound - lie.objective > 1e-7
    found = {claim.name for claim in check(lie, R).claims if not claim.holds}
    assert "bounds in order" in found
    assert "floors" not in found


def test_a_budget() -> None:
    result = honest("budget")
    for step, claims in ((5e-9, ["budget"]), (0.5e-9, [])):
        goal = replace(result.goal, budget=result.objective - step)
        broken(replace(result, goal=goal), *claims)
    goal = replace(result.goal, rho_upper=result.goal.rho_upper - 5e-9)
    lower = replace(result, goal=goal)
    assert "largest floor" in {c.name for c in check(lower, R).claims if not c.holds}


@pytest.mark.parametrize("word", ["optimal", "best_found"])
def test_a_floor_that_is_nearly_proved_may_be_called_either(word: Any) -> None:
    """Between what solvers aim at and what is promised both words are true, beyond it one is."""
    result = honest("budget")
    for above, other in ((0.95e-7, ""), (3e-7, "optimal"), (0.1e-7, "best_found")):
        goal = replace(result.goal, rho_upper=float(result.rho_min[0]) + above)
        lie = replace(result, goal=goal, status=word)
        broken(lie, *["status"] * (word == other))


def test_the_bound_on_a_floor_without_a_budget() -> None:
    result = honest("no budget")
    for below, wrong in ((1e-3, ["largest floor"]), (5e-9, ["largest floor"]), (0.2e-9, [])):
        upper = float(result.rho_min[0]) - below
        broken(replace(result, goal=replace(result.goal, rho_upper=upper)), *wrong)


@pytest.mark.parametrize("anchored", [False, True])
def test_the_bound_on_a_floor_within_a_budget(anchored: bool) -> None:
    """What is left of the budget, over the slope of the bound: no floor can be raised further."""
    result = maximize_fidelity(R, 0.05, anchors=ANCHORS if anchored else None)
    slope = float(result.prices.sum())
    budget = result.goal.budget + 1e-3
    for share, wrong in ((1.001, []), (0.999, ["largest floor"]), (0.5, ["largest floor"])):
        goal = Budget(budget, float(result.rho_min[0]) + share * 1e-3 / slope)
        broken(replace(result, goal=goal, status="best_found"), *wrong)
    # No floor exceeds one, whatever the slope would allow.
    far = Budget(result.goal.budget + slope, 1.0)
    broken(replace(result, goal=far, status="best_found"))
    far = replace(far, rho_upper=1 - 3e-9)
    broken(replace(result, goal=far, status="best_found"), "largest floor")


@pytest.mark.parametrize("field", ["correlation", "fidelity", "objective"])
@pytest.mark.parametrize("kind", ["exact", "squared", "anchors", "support"])
def test_a_reported_number(kind: str, field: str) -> None:
    result = honest(kind)
    for step, claims in ((5e-9, [field]), (-5e-9, [field]), (0.5e-9, [])):
        value = getattr(result, field)
        broken(replace(result, **{field: value + step}), *claims)


@pytest.mark.parametrize("kind", ["squared", "worst", "support", "support, open", "open"])
def test_a_lower_bound(kind: str) -> None:
    result = honest(kind)
    proved = check(result, R).lower
    broken(replace(result, lower_bound=proved + 5e-9), "lower bound")
    broken(replace(result, lower_bound=proved + 0.5e-9))
    broken(replace(result, lower_bound=proved - 5e-7), "lower bound")
    broken(replace(result, lower_bound=proved - 0.5e-7))


def test_prices() -> None:
    for kind, step in (("squared", 5e-9), ("support", 5e-6), ("exact", 5e-9)):
        result = honest(kind)
        broken(
            replace(result, prices=result.prices + step * np.maximum(1, result.prices)), "prices"
        )
        broken(replace(result, prices=result.prices + 0.1 * step))
    result = honest("squared")
    broken(replace(result, weights=result.weights * (1 + 1e-15)), "weights")


def test_prices_of_floors_next_to_one() -> None:
    """A multiplier is a small difference over a small one there: few digits, and no fewer."""
    result = decorrelate(R, 1 - 1e-9, support=MASK, n_starts=5)
    for step, refused in ((1e-5, ("prices", "weights")), (1e-6, ())):
        moved = {"prices": result.prices * (1 + step), "weights": result.weights * (1 + step)}
        broken(replace(result, **moved), *refused)


@pytest.mark.parametrize("kind", ["vif", "vif, anchors", "budget", "no budget"])
def test_one_floor_within_a_limit(kind: str) -> None:
    result = honest(kind)
    broken(result)
    for j in (0, 1):
        lower = result.rho_min.copy()
        lower[j] -= 1e-12
        broken(replace(result, rho_min=lower), "VIF" if "vif" in kind else "budget")


def test_floors_of_exact_decorrelators_bound_no_others() -> None:
    """A budget above zero may be spent, so that only a bound of one is proved without a dual."""
    result = honest("no budget")
    for budget, upper, wrong in (
        (1e-300, result.goal.rho_upper, ["largest floor"]),
        (0.1, result.goal.rho_upper, ["largest floor"]),
        (0.1, 1 - 3e-9, ["largest floor"]),
        (0.1, 1 - 0.3e-9, []),
        (0.1, 1.0, []),
        (-1e-6, 1.0, ["budget"]),
    ):
        broken(replace(result, goal=Budget(budget, upper)), *wrong)
    mean = replace(honest("exact"), rho_min=np.full(6, 0.5))
    for upper, wrong in ((1.0, []), (0.9, ["largest floor"])):
        told = replace(mean, goal=Budget(0.0, upper))
        broken(told, "largest mean fidelity", *wrong)
    for judge in (check, prove):
        with pytest.raises(CertificateError, match="`rho_upper` must be a number"):
            judge(replace(mean, goal=Budget(0.0, None)), R)  # type: ignore[arg-type]


def test_exact_answers_whose_proof_is_none() -> None:
    """What is not said to be the best needs no proof; what is exact does."""
    result = honest("exact")
    S = -result.certificate.arrays["S"]
    point = Certificate("exact", {**result.certificate.arrays, "S": S})
    broken(replace(result, certificate=point, status="best_found"))
    for judge in (check, prove):
        with pytest.raises(CertificateError, match="positive definite"):
            judge(replace(result, certificate=point), R)


def test_bounds_of_a_threshold() -> None:
    th = honest("threshold")
    lower, upper = check(th, R).lower, check(th, R).upper
    broken(replace(th, lower=lower + 5e-12), "lower")
    broken(replace(th, lower=lower + 0.5e-12))
    broken(replace(th, upper=upper - 5e-12), "upper")
    broken(replace(th, upper=upper - 0.5e-12))
    broken(replace(th, lower=lower - 5e-9), "lower")
    broken(replace(th, upper=upper + 5e-9), "upper")
    broken(replace(th, lower=lower - 0.5e-9))
    broken(replace(th, tol=5e-7), "tol")
    for name in ("zca", "trace"):
        for step in (5e-9, -5e-9):
            broken(replace(th, bounds={**th.bounds, name: th.bounds[name] + step}), f"{name} bound")
    heavy = th.weights * (1 + 5e-9)
    point = Certificate("threshold", {**th.certificate.arrays, "weights": heavy})
    broken(replace(th, weights=heavy, certificate=point), "weights")
    # Only the direction of weights and S matters: the bound is divided by their sum.
    near = {name: a * (1 + 5e-10) for name, a in th.certificate.arrays.items()}
    point = Certificate("threshold", near)
    made = replace(th, weights=near["weights"], certificate=point)
    broken(made)
    assert check(made, R).upper == pytest.approx(upper, abs=1e-13)
    turned = th.T.copy()
    turned[:, 0] += 5e-8 * turned[:, 1]
    moved = replace(th, T=turned, fidelity=np.diag(R @ turned))
    assert "uncorrelated" in {c.name for c in check(moved, R).claims if not c.holds}


def test_a_threshold_of_outputs_that_are_not_quite_exact() -> None:
    """Longer outputs have larger fidelities; the exact decorrelator next to them does not."""
    th = honest("threshold")
    longer = replace(th, T=th.T * (1 + 1.8e-9), fidelity=th.fidelity * (1 + 1.8e-9))
    for judge in (check, prove):
        found = judge(longer, R)
        assert found.lower <= th.lower + 1e-12
        assert found.lower >= th.lower - 1e-8
        lie = replace(longer, lower=float(longer.fidelity.min()))
        assert "lower" in {c.name for c in judge(lie, R).claims if not c.holds}


def test_another_matrix_that_is_nearly_the_same() -> None:
    result = honest("squared")
    near = R.copy()
    near[0, 1] = near[1, 0] = R[0, 1] + 5e-12
    broken(replace(result, R=near), "R")


# Every term of every inequality: without it, one of these would pass.


def test_an_indefinite_matrix_proves_nothing() -> None:
    """With two signs of H in different directions the formula gives whatever is wanted."""
    wine = np.asarray(load_wine().correlation)
    result = decorrelate(wine, 0.9)
    H = result.certificate.arrays["H"].copy()
    values, vectors = np.linalg.eigh(H)
    for k in (0, 5, 12):
        flipped = vectors * np.where(np.arange(13) == k, -values, values) @ vectors.T
        arrays = {**result.certificate.arrays, "H": flipped}
        lie = replace(result, certificate=Certificate("tradeoff", arrays, {"criterion": "squared"}))
        for judge in (check, prove):
            with pytest.raises(CertificateError, match="positive definite"):
                judge(lie, wine)


@pytest.mark.parametrize("criterion", ["worst", "absolute"])
def test_a_point_outside_the_conjugates_domain(criterion: Any) -> None:
    """λ and H made larger together raise the bound in proportion, unless they are pulled back."""
    result = honest(criterion)
    worse = decorrelate(R, 0.995, criterion=criterion)
    c = result.certificate
    lam, H = (1.1 * c.arrays[name] for name in ("multipliers", "H"))
    point = Certificate("tradeoff", {"multipliers": lam, "H": H}, c.info)
    lie = with_T(result, worse.T, certificate=point, weights=lam, prices=2 * lam)
    lie = replace(lie, status="best_found")
    assert worse.objective > 1.1 * result.objective
    broken(replace(lie, lower_bound=1.1 * result.objective), "lower bound")
    broken(replace(lie, lower_bound=result.objective))


@pytest.mark.parametrize("judge", [check, prove])
def test_both_terms_of_the_trace_bound(judge: Any) -> None:
    """ZCA's fidelity is no threshold, however small (or large) S is made."""
    wine = np.asarray(load_wine().correlation)
    th = threshold(wine)
    values, vectors = np.linalg.eigh(wine)
    T = vectors / np.sqrt(values) @ vectors.T
    fidelity = np.diag(wine @ T)
    weights = np.full(13, 1 / 13)
    S = (vectors * np.sqrt(values)) @ vectors.T / 13
    for scale in (1.0, fidelity.min() / fidelity.mean(), 0.01, 100.0):
        point = Certificate("threshold", {"weights": weights, "S": scale * S})
        lie = replace(
            th, T=T, fidelity=fidelity, lower=fidelity.min(), weights=weights, certificate=point
        )
        low = replace(lie, upper=float(fidelity.min()) + 1e-12)
        assert not judge(low, wine).passed
        assert judge(lie, wine).upper >= fidelity.mean() - 1e-12


def test_weights_below_one() -> None:
    """Less weight than one on a variable would leave its fidelity out of the mean."""
    result = honest("exact")
    for below in (1 - 1e-15, 1 - 1e-9, 0.5):
        weights = np.where(result.weights == 1, below, result.weights)
        point = Certificate("exact", {**result.certificate.arrays, "weights": weights})
        for judge in (check, prove):
            with pytest.raises(CertificateError, match="below one"):
                judge(replace(result, weights=weights, certificate=point), R)


def test_pairs_of_weight_zero() -> None:
    result = honest("weighted")
    pairs = result.pair_weights.copy()
    pairs[0, 1] = pairs[1, 0] = 0.0
    for judge in (check, prove):
        with pytest.raises(CertificateError, match="weight zero"):
            judge(replace(result, pair_weights=pairs), R)


def test_floors_in_the_bound_are_those_claimed() -> None:
    """Lower floors than the certificate was made for give a lower bound."""
    for kind in ("squared", "support", "anchors"):
        result = honest(kind)
        lie = replace(result, rho_min=result.rho_min - 1e-6)
        found = {claim.name for claim in check(lie, R).claims if not claim.holds}
        assert {"lower bound", "status"} <= found


def test_systems_of_every_size_keep_their_digits() -> None:
    for p in (2, 3, 17, 40):
        system = make_system(p)
        for result in (threshold(system), decorrelate(system, 0.99)):
            found = check(result, system)
            assert found.passed, found.problems
            assert found.gap <= 1e-7


def test_the_bound_by_the_nuclear_norm() -> None:
    """The certified value is the solver's, also where P has to be scaled into the unit ball."""
    floors = np.full(6, 0.9)
    space = feasible_set(R, MASK, floors)
    found = frame_bound(space, norm="nuclear")
    for scale in (1.0, 3.0, -1.0, -3.0):
        point = FrameBound(found.value, scale * found.M, abs(scale) * found.eta)
        proof = frame_certificate(space, point, "absolute", "nuclear").certificate
        linear = -np.trace(point.M)
        for k, frame in enumerate(space.frames):
            form = (frame @ point.M @ frame.T)[np.ix_(space.valid[k], space.valid[k])]
            form[0, 0] -= point.eta[k]
            linear += np.linalg.eigvalsh(form)[0] + point.eta[k] * floors[k] ** 2
        wanted = max(0.5 * linear / max(1.0, np.linalg.norm(point.M, 2)), 0.0)
        assert proved_bound(R, floors, proof) == pytest.approx(wanted, abs=1e-9)
    assert found.value > 0.05
