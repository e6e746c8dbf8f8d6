"""Values falsified a little beyond each tolerance of the table are refused.

All other claims are made to hold, so that the falsified one is the reason for the refusal. The
sizes are between one and ten times the tolerance: a tolerance ten times as wide fails here.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from skcoral import decorrelate, maximize_fidelity
from skcoral.certificates import check, prove
from skcoral.core.results import Decorrelation
from skcoral.core.solution import Budget
from skcoral.exceptions import CertificateError

from .conftest import broken, failed, with_arrays, with_T
from .results import ANCHORS, MASK, SYSTEM, R, about, honest

LARGE = ["large, squared", "large, absolute"]


def raised(kind: str, share: float, **more: Any) -> Decorrelation:
    """The same claims about the best T of floors that raise the residual by about this share."""
    result, matrix = about(kind)
    step = share * max(1.0, result.objective) / float(result.prices.sum())
    other = decorrelate(matrix, result.rho_min + step, criterion=result.criterion, tol=1e-12)
    return with_T(result, other.T, matrix, **more)


@pytest.mark.parametrize(
    "kind", ["exact", "squared", "worst", "open", "wide, frame", "wide, welch", "wide, rank"]
)
def test_a_variance(kind: str) -> None:
    result, matrix = about(kind)
    for size, claims in ((1.5e-10, ["unit variances"]), (0.2e-10, [])):
        T = result.T.toarray() if kind.startswith("wide") else result.T.copy()
        T[:, 0] *= 1 + size
        broken(with_T(result, T, matrix), *claims, matrix=matrix)


@pytest.mark.parametrize("kind", ["exact", "wide, welch"])
def test_a_floor(kind: str) -> None:
    result, matrix = about(kind)
    free = int(np.argmin(result.weights))  # a floor that does not bind enters nothing else
    assert result.weights[free] == (1 if kind == "exact" else 0)
    for step, claims in ((3e-10, ["floors"]), (0.5e-10, [])):
        floors = result.rho_min.copy()
        floors[free] = result.fidelity[free] + step
        broken(replace(result, rho_min=floors), *claims, matrix=matrix)


def rotation(angle: float) -> np.ndarray:
    turn = np.eye(6)
    turn[2:4, 2:4] = [[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]]
    return turn


def test_outputs_that_are_not_exact() -> None:
    """A residual of 1e-8 is none; one of half as much is not said to be one."""
    result = honest("exact")
    for size, status, wrong in (
        (1.5e-8, "exact", ["uncorrelated"]),
        (1e-9, "exact", []),
        (2e-8, "not_converged", []),
        (0.2e-8, "not_converged", ["status"]),
        (0.2e-8, "optimal", ["status"]),
    ):
        mix = np.eye(6)
        mix[2, 3] = mix[3, 2] = size if status == "exact" else 0.5 * size
        broken(with_T(result, result.T @ mix, status=status), *wrong)


def test_a_mean_that_is_not_the_largest() -> None:
    """A loss of 1e-8 is none; one of half as much is not said to be one."""
    result = honest("exact")
    turned = result.T @ rotation(1e-3)
    unit = 1e-3 * np.sqrt(1e-8 / (result.fidelity - np.diag(R @ turned)).mean())
    for size, status, wrong in (
        (5.0, "exact", ["largest mean fidelity"]),
        (0.2, "exact", []),
        (2.0, "best_found", []),
        (0.2, "best_found", ["status"]),
    ):
        T = result.T @ rotation(np.sqrt(size) * unit)
        broken(with_T(result, T, status=status), *wrong)


def test_floors_that_are_not_the_highest() -> None:
    result = honest("edge")
    broken(replace(result, rho_min=result.rho_min - 5e-8), "largest floors")
    broken(replace(result, rho_min=result.rho_min - 2e-9))


@pytest.mark.parametrize("kind", ["squared", "worst", "absolute", *LARGE])
def test_gaps(kind: str) -> None:
    """A gap of 1e-7 of the residual is closed; one of half as much is not called open."""
    for share, status, wrong in (
        (3e-7, "optimal", True),
        (0.4e-7, "optimal", False),
        (0.2e-7, "best_found", True),
        (0.8e-7, "best_found", False),
        (0.2e-7, "not_converged", True),
        (0.8e-7, "not_converged", False),
    ):
        broken(raised(kind, share, status=status), *["status"] * wrong, matrix=about(kind)[1])


@pytest.mark.parametrize("kind", ["squared", "worst", "absolute", *LARGE])
def test_bounds_that_cross(kind: str) -> None:
    """A residual below its bound by more than 1e-7 of it; floors lowered in T alone make one."""
    result, matrix = about(kind)
    for share, wrong in ((-3e-7, True), (-0.5e-7, False)):
        claims = failed(raised(kind, share, rho_min=result.rho_min), matrix)
        assert ("bounds in order" in claims) == wrong
        assert "floors" in claims


def test_a_large_budget() -> None:
    """Relative to residuals above one."""
    large = maximize_fidelity(SYSTEM, 8.0)
    for share, wrong in ((3e-9, True), (0.5e-9, False)):
        goal = replace(large.goal, budget=large.objective * (1 - share))
        assert ("budget" in failed(replace(large, goal=goal), SYSTEM)) == wrong


@pytest.mark.parametrize("word", ["optimal", "best_found"])
def test_a_floor_that_is_nearly_proved_may_be_called_either(word: Any) -> None:
    """Between what solvers aim at and what is promised both words are true, beyond it one is."""
    result = honest("budget")
    for above, other in ((0.95e-7, ""), (3e-7, "optimal"), (0.1e-7, "best_found")):
        goal = replace(result.goal, rho_upper=float(result.rho_min[0]) + above)
        lie = replace(result, goal=goal, status=word)
        broken(lie, *["status"] * (word == other))


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
        lie = replace(mean, goal=Budget(0.0, upper))
        broken(lie, "largest mean fidelity", *wrong)
    # Nor does the bound on a support, which says nothing of other floors.
    support = honest("support")
    lie = replace(support, goal=Budget(support.objective, float(support.rho_min[0]) + 1e-6))
    assert "largest floor" in failed(lie)
    for judge in (check, prove):
        with pytest.raises(CertificateError, match="`rho_upper` must be a number"):
            judge(replace(mean, goal=Budget(0.0, None)), R)  # type: ignore[arg-type]


def test_exact_answers_whose_proof_is_none() -> None:
    """What is not said to be the best needs no proof; what is exact does."""
    result = honest("exact")
    lie = with_arrays(result, mean_S=-result.certificate.arrays["mean_S"])
    broken(replace(lie, status="best_found"))
    for judge in (check, prove):
        with pytest.raises(CertificateError, match="positive definite"):
            judge(lie, R)


def test_a_threshold_of_outputs_that_are_not_quite_exact() -> None:
    """Longer outputs have larger fidelities; the exact decorrelator next to them does not."""
    th = honest("threshold")
    longer = replace(th, T=th.T * (1 + 1.8e-9), fidelity=th.fidelity * (1 + 1.8e-9))
    for judge in (check, prove):
        judgement = judge(longer, R)
        assert judgement.lower <= th.lower + 1e-12
        assert judgement.lower >= th.lower - 1e-8
        lie = replace(longer, lower=float(longer.fidelity.min()))
        assert "lower" in failed(lie, R, judge)


def test_another_matrix_that_is_nearly_the_same() -> None:
    result = honest("squared")
    near = R.copy()
    near[0, 1] = near[1, 0] = R[0, 1] + 5e-12
    broken(replace(result, R=near), "R")


@pytest.mark.parametrize(("r", "costs"), [(3e-10, True), (0.3e-10, False)])
def test_a_correlation_that_makes_a_floor_of_one_cost_anything(r: float, costs: bool) -> None:
    two = np.array([[1.0, r], [r, 1.0]])
    answer = decorrelate(two, 1.0, support=np.ones((2, 2), bool))
    assert np.all(np.isinf(answer.prices) == costs)
    assert check(answer, two).passed
    forged = replace(answer, prices=np.where(costs, 0.0, np.full(2, np.inf)))
    assert not check(forged, two).passed
