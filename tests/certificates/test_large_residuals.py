"""Tolerances are relative where a number exceeds one: residuals of ten, on both sides of each."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from skcoral import decorrelate, maximize_fidelity
from skcoral.certificates import check, prove
from skcoral.core.measures import residual_by
from skcoral.core.results import Decorrelation
from skcoral.datasets import make_system
from skcoral.solvers.support import support_from_threshold

SYSTEM = 0.1 * make_system(6) + 0.9
CRITERIA = ["squared", "absolute"]
_KEPT: dict[str, Decorrelation] = {}


def made(criterion: Any) -> Decorrelation:
    if criterion not in _KEPT:
        _KEPT[criterion] = decorrelate(SYSTEM, 0.999, criterion=criterion)
    return _KEPT[criterion]


def claims(result: Any, judge: Any = check) -> set[str]:
    """The claims that do not hold."""
    return {claim.name for claim in judge(result, SYSTEM).claims if not claim.holds}


def moved(result: Decorrelation, step: float, **more: Any) -> Decorrelation:
    """The same claims about the best T of floors that raise the residual by about this share."""
    floors = result.rho_min + step * result.objective / float(result.prices.sum())
    T = decorrelate(SYSTEM, floors, criterion=result.criterion, tol=1e-12).T
    G = T.T @ SYSTEM @ T
    return replace(
        result,
        T=T,
        correlation=0.5 * (G + G.T),
        fidelity=np.einsum("ij,ij->j", SYSTEM, T),
        objective=residual_by(result.criterion, SYSTEM, T),
        **more,
    )


@pytest.mark.parametrize("criterion", CRITERIA)
def test_reported_numbers(criterion: str) -> None:
    result = made(criterion)
    assert result.objective > 8
    for judge in (check, prove):
        assert not claims(result, judge)
        proved = judge(result, SYSTEM).lower
        for field, value, low, high in (
            ("objective", result.objective, -3e-9, 3e-9),
            ("lower_bound", proved, -3e-7, 3e-9),
        ):
            for step in (low, high):
                lie = replace(result, **{field: value + step * result.objective})
                assert claims(lie, judge) == {field.replace("_", " ")}
                near = replace(result, **{field: value + 0.2 * step * result.objective})
                assert not claims(near, judge)


@pytest.mark.parametrize("criterion", CRITERIA)
def test_gaps(criterion: str) -> None:
    """A gap of 1e-7 of the residual is closed; one of half as much is not called open."""
    result = made(criterion)
    for step, status, wrong in (
        (3e-7, "optimal", True),
        (0.4e-7, "optimal", False),
        (0.2e-7, "best_found", True),
        (0.8e-7, "best_found", False),
    ):
        assert claims(moved(result, step, status=status)) == ({"status"} if wrong else set())


@pytest.mark.parametrize("criterion", CRITERIA)
def test_bounds_that_cross(criterion: str) -> None:
    """A residual below its bound by more than 1e-7 of it; lower floors make one."""
    result = made(criterion)
    for step, wrong in ((-3e-7, True), (-0.5e-7, False)):
        lie = moved(result, step, rho_min=result.rho_min)
        assert ("bounds in order" in claims(lie)) == wrong
        assert "floors" in claims(lie)


def test_budgets() -> None:
    result = maximize_fidelity(SYSTEM, 8.0)
    for step, wrong in ((3e-9, True), (0.5e-9, False)):
        goal = replace(result.goal, budget=result.objective * (1 - step))
        assert ("budget" in claims(replace(result, goal=goal))) == wrong


def test_prices() -> None:
    """Relative to the price itself, where it exceeds one."""
    result = made("squared")
    assert result.prices.min() > 30
    for step, wrong in ((3e-9, True), (0.5e-9, False)):
        lie = replace(result, prices=result.prices * (1 + step))
        assert claims(lie) == ({"prices"} if wrong else set())


def test_slopes_of_a_support() -> None:
    mask = support_from_threshold(SYSTEM, 0.95)
    for criterion in ("squared", "absolute"):
        result = decorrelate(SYSTEM, 0.999, support=mask, n_starts=2, criterion=criterion)
        assert result.objective > 8
        assert not claims(result)
        # Fenchel's inequality is an equality up to 1e-6 of its value.
        value = result.objective * (2.0 if criterion == "squared" else 1.0)
        arrays = result.certificate.arrays
        for share, wrong in ((3e-6, True), (0.3e-6, False)):
            size = np.sqrt(2 * share * value / np.sum(arrays["slope"] ** 2))
            size = size if criterion == "squared" else -share
            slope = arrays["slope"] * (1 + size)
            point = replace(result.certificate, arrays={**arrays, "slope": slope})
            assert ("slope" in claims(replace(result, certificate=point))) == wrong
