"""Results say no more and no less than their certificates prove."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from skcoral import decorrelate
from skcoral.certificates import check
from skcoral.certificates.certify import rechecked

from .conftest import MAKERS, R, honest, with_arrays
from .results import SYSTEM, about
from .test_falsified_values import raised, rotation, with_T
from .test_singular import HONEST as SINGULAR
from .test_singular import R as SINGULAR_R

KINDS = [kind for kind in MAKERS if kind != "threshold"]
same = pytest.mark.parametrize("kind", KINDS)


@same
def test_true_results_keep_their_status(kind: str) -> None:
    result = honest(kind)
    settled = rechecked(result, R)
    assert settled.status == result.status
    np.testing.assert_array_equal(settled.T, result.T)
    for name in ("correlation", "fidelity", "objective"):
        assert np.array_equal(getattr(settled, name), getattr(result, name))
    assert settled.lower_bound == pytest.approx(result.lower_bound, abs=1e-10)
    assert check(settled, R).passed


@pytest.mark.parametrize("kind", KINDS[::3])
@pytest.mark.parametrize("field", ["correlation", "fidelity", "objective"])
def test_numbers_are_those_of_the_transformation(kind: str, field: str) -> None:
    """What is off by half of what may be reported is put right, what is off by less stays."""
    result = honest(kind)
    value = getattr(result, field)
    scale = max(1.0, result.objective) if field == "objective" else 1.0
    for step, kept in ((0.5e-9, False), (-0.5e-9, False), (0.02e-9, True)):
        wrong = value + step * scale
        settled = rechecked(replace(result, **{field: wrong}), R)
        near = wrong if kept else value
        np.testing.assert_allclose(getattr(settled, field), near, rtol=0, atol=1e-13 * scale)
        assert check(settled, R).passed


@pytest.mark.parametrize("kind", ["exact", "support, exact"])
def test_a_residual_that_is_not_exact(kind: str) -> None:
    result = honest(kind)
    for size, status in ((0.95e-8, False), (0.5e-8, True)):
        mix = np.eye(6)
        mix[2, 3] = mix[3, 2] = 0.5 * size
        if kind != "exact":  # zeros of a lower triangle stay
            mix[2, 3], mix[3, 2] = 0.0, size
        T = result.T @ mix
        settled = rechecked(with_T(result, T), R)
        assert (settled.status == "exact") == status
        assert check(settled, R).passed or not status


def test_a_mean_that_is_not_the_largest() -> None:
    result = honest("exact")

    def loss(angle: float) -> float:
        return float(result.fidelity.mean() - np.diag(R @ result.T @ rotation(angle)).mean())

    unit = np.sqrt(1e-8 / (loss(1e-3) / 1e-6))
    for size, status in ((0.95, "best_found"), (0.85, "exact")):
        settled = rechecked(with_T(result, result.T @ rotation(np.sqrt(size) * unit)), R)
        assert settled.status == status
    assert check(settled, R).passed


@pytest.mark.parametrize("criterion", ["squared", "worst", "absolute"])
def test_a_gap_that_is_open(criterion: Any) -> None:
    result = honest(criterion)
    slope, scale = float(result.prices.sum()), max(1.0, result.objective)
    for gap, status in ((0.96e-7, "best_found"), (0.8e-7, "optimal"), (1e-3, "best_found")):
        floors = result.rho_min + gap * scale / slope
        other = with_T(result, decorrelate(R, floors, criterion=criterion, tol=1e-12).T)
        settled = rechecked(other, R)
        assert settled.status == status
        assert settled.objective - settled.lower_bound == pytest.approx(gap * scale, rel=0.03)
        for word in ("best_found", "not_converged"):
            again = rechecked(replace(other, status=word), R)
            assert again.status == (word if status == "best_found" else "optimal")
        if gap > 1e-5:
            assert check(settled, R).passed


@pytest.mark.parametrize("criterion", ["squared", "absolute"])
def test_gaps_and_numbers_of_large_residuals(criterion: str) -> None:
    """Relative to residuals of ten."""
    for word in ("optimal", "best_found", "not_converged"):
        for share, closed in ((0.8e-7, True), (0.95e-7, False)):
            found = rechecked(raised(f"large, {criterion}", share, status=word), SYSTEM)
            kept = "best_found" if word == "optimal" else word
            assert found.status == ("optimal" if closed else kept)
    result = about(f"large, {criterion}")[0]
    for share, kept in ((0.5e-10, True), (2e-10, False)):
        told = replace(result, objective=result.objective * (1 + share))
        assert (rechecked(told, SYSTEM).objective == told.objective) == kept
    below = raised(f"large, {criterion}", -0.5e-7)
    assert rechecked(below, SYSTEM).lower_bound == below.objective


def test_a_floor_within_a_budget_that_is_not_proved() -> None:
    result = honest("budget")
    for above, status in ((5e-7, "best_found"), (0.2e-7, "optimal")):
        goal = replace(result.goal, rho_upper=float(result.rho_min[0]) + above)
        assert rechecked(replace(result, goal=goal), R).status == status


def test_a_bound_above_what_is_attained() -> None:
    """Rounding may put the bound above the objective: it is not reported so."""
    result = honest("squared")
    low = rechecked(replace(result, lower_bound=result.objective + 1e-9), R)
    assert low.lower_bound <= low.objective
    assert low.lower_bound >= low.objective - 1e-9


@pytest.mark.parametrize("kind", ["squared", "worst", "anchors", "budget"])
def test_a_point_that_proves_nothing(kind: str) -> None:
    """It is replaced by one that proves that the residual is not negative."""
    result = honest(kind)
    settled = rechecked(with_arrays(result, H=-result.certificate.arrays["H"]), R)
    assert settled.lower_bound == 0
    assert settled.status == "best_found"
    assert not settled.prices.any()
    assert not settled.weights.any()
    assert settled.certificate.kind == "tradeoff"
    if kind == "budget":  # without a dual point, no common floor below one is excluded
        assert result.goal.rho_upper < 0.999
        assert settled.goal.rho_upper == 1.0
    assert check(settled, R).passed


@pytest.mark.parametrize("kind", ["support", "support, open", "support, worst"])
def test_a_point_that_proves_nothing_on_a_support(kind: str) -> None:
    result = honest(kind)
    c = result.certificate
    name = "H" if c.info["bound"] == "lifted" else "Q"
    far = 1e90 * (c.arrays[name] - 1e3 * np.eye(6))
    settled = rechecked(with_arrays(result, **{name: far}), R)
    assert settled.lower_bound == 0
    assert settled.status == "best_found"
    assert check(settled, R).passed
    np.testing.assert_array_equal(settled.certificate.arrays["support"], c.arrays["support"])


@pytest.mark.parametrize("name", ["frame", "open", "open, mixed", "welch"])
def test_a_point_that_proves_nothing_of_a_singular_matrix(name: str) -> None:
    """What remains is what the rank alone proves."""
    result = SINGULAR[name]
    c = result.certificate
    for key in {"N", "H"} & set(c.arrays):
        result = with_arrays(result, **{key: -c.arrays[key] - np.eye(len(c.arrays[key]))})
    settled = rechecked(result, SINGULAR_R)
    assert settled.certificate.kind == "frame"
    assert not settled.certificate.arrays["multipliers"].any()
    assert settled.lower_bound == pytest.approx((8 * 8 / 5 - 8) / 2, rel=1e-12)
    assert check(settled, SINGULAR_R).passed


@pytest.mark.parametrize("name", ["frame", "lifted", "welch, worst"])
def test_singular_matrices_stay(name: str) -> None:
    settled = rechecked(SINGULAR[name], SINGULAR_R)
    assert settled.status == SINGULAR[name].status
    assert settled.certificate is SINGULAR[name].certificate


def test_prices_on_a_support_are_withdrawn() -> None:
    result = honest("support")
    settled = rechecked(replace(result, prices=result.prices + 1), R)
    assert np.isnan(settled.prices).all()
    assert np.isnan(settled.weights).all()
    assert check(settled, R).passed
    kept = rechecked(result, R)
    np.testing.assert_array_equal(kept.prices, result.prices)


def test_prices_are_judged_by_the_status_that_is_left() -> None:
    """An answer on a support that turns out not to be exact needs a slope for its prices."""
    mask = np.tril(np.ones((6, 6)))
    result = decorrelate(R, 0.5, support=mask, n_starts=5, criterion="worst")
    assert result.status == "exact"
    mix = np.eye(6)
    mix[3, 2] = 5e-6
    lie = with_T(result, result.T @ mix)
    settled = rechecked(lie, R)
    assert settled.status == "best_found"
    assert np.isnan(settled.prices).all()
    assert check(settled, R).passed
