"""Results say no more and no less than their certificates prove."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest

import problems
from skcoral import api, decorrelate
from skcoral.certificates import check
from skcoral.certificates.certify import certify
from skcoral.exceptions import NotCertifiedWarning

from .conftest import failed, with_arrays, with_T
from .results import FULL, MASK, SYSTEM, R, about, honest
from .test_tolerances import raised, rotation


class Asked:
    """A question with the solution that its solver has, to be certified with changes."""

    def __init__(self, make: Any) -> None:
        with patch.object(api, "certify", lambda problem, solution: (problem, solution)):
            self.problem, self.solution = make()

    def certified(self, **changes: Any) -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", NotCertifiedWarning)
            return certify(self.problem, replace(self.solution, **changes))


def numbers_of(result: Any) -> dict[str, Any]:
    """What a solution says of T."""
    names = ("T", "correlation", "fidelity", "objective", "rho_min")
    return {name: getattr(result, name) for name in names}


@pytest.mark.parametrize("field", ["correlation", "fidelity", "objective"])
@pytest.mark.parametrize("step", [0.5e-9, -0.5e-9])
def test_numbers_are_those_of_the_transformation(field: str, step: float) -> None:
    """Where floors are next to one, a number that is off by half of what may be is put right."""
    asked = Asked(lambda: decorrelate(R, 1 - 1e-13))
    value = getattr(asked.certified(), field)
    answer = asked.certified(**{field: value + step})
    np.testing.assert_allclose(getattr(answer, field), value, rtol=0, atol=1e-13)
    assert check(answer, R).passed


@pytest.mark.parametrize("kind", ["exact", "support, exact"])
def test_a_residual_that_is_not_exact(kind: str) -> None:
    asked, result = Asked(FULL[kind]), honest(kind)
    for size, exact in ((0.95e-8, False), (0.5e-8, True)):
        mix = np.eye(6)
        mix[3, 2] = size  # zeros of a lower triangle stay
        T = result.T @ mix
        answer = asked.certified(**numbers_of(with_T(result, T)))
        assert (answer.status == "exact") == exact
        assert check(answer, R).passed or not exact


def test_floors_on_composites_are_met() -> None:
    """An exact decorrelator is turned for a miss that counts."""
    asked = Asked(FULL["exact, anchors"])
    for miss in (2e-10, 1e-12):
        floors = asked.solution.fidelity + miss
        assert "floors" not in failed(asked.certified(rho_min=floors))


def test_a_mean_that_is_not_the_largest() -> None:
    asked, result = Asked(FULL["exact"]), honest("exact")
    for room, status in ((0.95e-8, "best_found"), (0.85e-8, "exact")):
        assert asked.certified(room=room).status == status
    turned = with_T(result, result.T @ rotation(1e-3))
    assert check(asked.certified(room=1e-6, **numbers_of(turned)), R).passed


@pytest.mark.parametrize("converged", [True, False])
@pytest.mark.parametrize("criterion", ["squared", "worst", "absolute"])
def test_a_gap_that_is_open(criterion: str, converged: bool) -> None:
    asked = Asked(FULL[criterion])
    word = "best_found" if converged else "not_converged"
    for share, status in ((0.96e-7, word), (0.8e-7, "optimal"), (1e-3, word)):
        other = numbers_of(raised(criterion, share)) | {"rho_min": asked.solution.rho_min}
        answer = asked.certified(converged=converged, **other)
        assert answer.status == status
        assert check(answer, R).passed or share < 1e-5


def test_what_is_said_of_open_gaps() -> None:
    """What was attained, what was proved, and which of the two was asked for."""
    budget, exact = Asked(FULL["budget"]), Asked(FULL["exact"])
    goal = replace(budget.solution.goal, rho_upper=0.99999)
    mixed = with_T(honest("exact"), honest("exact").T @ rotation(1e-3))
    for asked, changes, words in (
        (Asked(FULL["squared"]), {"objective": 0.5, "converged": False}, "0.5 .squared.*attained"),
        (budget, {"goal": goal}, "Every variable keeps 0.9.* above 0.99999"),
        (exact, {"room": 1e-6, **numbers_of(mixed)}, "not proved to be the largest fidelities"),
        (exact, {"correlation": 1 + np.zeros((6, 6))}, "uncorrelated only to 1.0e.00"),
    ):
        with pytest.warns(NotCertifiedWarning, match=words):
            certify(asked.problem, replace(asked.solution, **changes))


@pytest.mark.parametrize("criterion", ["squared", "absolute"])
def test_gaps_of_large_residuals(criterion: Any) -> None:
    """Relative to residuals of ten."""
    asked = Asked(lambda: decorrelate(SYSTEM, 0.999, criterion=criterion))
    bound = about(f"large, {criterion}")[0].lower_bound
    for share, status in ((0.8e-7, "optimal"), (0.95e-7, "best_found")):
        assert asked.certified(objective=bound * (1 + share)).status == status
    below = asked.certified(objective=bound * (1 - 0.5e-7))
    assert below.lower_bound == below.objective


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("seed", [1202, 1501])
def test_bounds_of_singular_matrices(seed: int) -> None:
    """The best H is singular as well: the digits that its inverse lost are not claimed."""
    problem = problems.dense(np.random.default_rng(seed), problems.singular)
    criterion = {1202: "worst", 1501: "absolute"}[seed]
    result = decorrelate(problem.R, **{**problem.asked, "criterion": criterion})
    assert check(result, problem.R).passed


@pytest.mark.parametrize(("kind", "far", "near"), [("budget", 5e-7, 0.2e-7), ("vif", 5e-6, 0.5e-6)])
def test_a_floor_within_a_limit_that_is_not_proved(kind: str, far: float, near: float) -> None:
    asked = Asked(FULL[kind])
    for above, certified in ((far, False), (near, True)):
        goal = replace(asked.solution.goal, rho_upper=float(asked.solution.rho_min[0]) + above)
        assert asked.certified(goal=goal).is_certified == certified


@pytest.mark.parametrize("kind", ["squared", "worst", "anchors", "budget"])
def test_a_point_that_proves_nothing(kind: str) -> None:
    """Then nothing is claimed to be proved but that the residual is not negative."""
    asked = Asked(FULL[kind])
    H = asked.solution.certificate.arrays["H"]
    proof = with_arrays(asked.solution, H=-1e9 * (H + np.eye(len(H)))).certificate
    answer = asked.certified(certificate=proof)
    assert (answer.lower_bound, answer.status) == (0, "best_found")


def test_prices_on_a_support_are_withdrawn() -> None:
    """Where they do not follow from the slope of the criterion."""
    asked = Asked(lambda: decorrelate(R, 1 - 1e-13, support=MASK, n_starts=5))
    assert np.isfinite(asked.certified().prices).all()
    answer = asked.certified(slopes=asked.solution.slopes + 1e3)
    assert np.isnan(answer.prices).all()
    assert np.isnan(answer.weights).all()
    assert check(answer, R).passed
