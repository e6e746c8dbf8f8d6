"""Answers in closed form: two variables, equal correlations, and blocks."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.linalg import block_diag
from scipy.optimize import brentq

import judge
from skcoral import decorrelate, maximize_fidelity, threshold
from skcoral.certificates import check
from skcoral.datasets import make_system, wdi_correlation

CRITERIA = ("squared", "worst", "absolute")


def equal(p: int, r: float) -> Any:
    return np.full((p, p), r) + (1 - r) * np.eye(p)


def solved(R: Any, floors: Any, criterion: str = "squared") -> Any:
    """The answer, of which nothing is wrong."""
    result = decorrelate(R, floors, criterion=criterion)
    assert judge.wrongs(R, result, {}) == []
    return result


def of_pairs(criterion: str, r: float, pairs: float = 1.0) -> float:
    """The criterion of some pairs of one correlation."""
    return {"squared": pairs * r**2, "worst": r, "absolute": pairs * r}[criterion]


@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize("r", [-0.95, -0.3, 0.05, 0.6, 0.999])
@pytest.mark.parametrize("floors", [(0.99, 0.99), (0.9, 0.999), (0.3, 1.0), (1.0, 1.0), (0.0, 1.0)])
def test_two_variables_are_turned_apart(floors: Any, r: float, criterion: str) -> None:
    """Two directions at the angle arccos|r| can be turned by arccos ρ_1 + arccos ρ_2."""
    angle = np.arccos(abs(r)) + np.arccos(floors).sum()
    least = float(np.cos(angle)) if angle < np.pi / 2 else 0.0
    result = solved(equal(2, r), list(floors), criterion)
    assert result.objective == pytest.approx(of_pairs(criterion, least), abs=1e-9)
    assert result.status == ("exact" if least == 0 else "optimal")
    if criterion == "squared" and least > 0 and max(floors) < 1:
        # d cos²(angle)/dρ_j with d arccos ρ/dρ = -1/√(1-ρ²)
        prices = 2 * np.cos(angle) * np.sin(angle) / np.sqrt(1 - np.square(floors))
        np.testing.assert_allclose(result.prices, prices, rtol=1e-6)


@pytest.mark.parametrize("criterion", CRITERIA)
def test_a_budget_of_two_variables(criterion: str) -> None:
    expected = np.cos((np.arccos(0.3) - np.arccos(0.8)) / 2)
    answer = maximize_fidelity(equal(2, 0.8), of_pairs(criterion, 0.3), criterion=criterion)
    assert float(answer.rho_min[0]) == pytest.approx(expected, abs=1e-8)


def equal_threshold(p: int, r: float) -> float:
    return float((np.sqrt(1 + (p - 1) * r) + (p - 1) * np.sqrt(1 - r)) / p)


@pytest.mark.parametrize(
    ("p", "r"),
    [
        *((2, r) for r in (-0.999, -0.5, 1e-9, 0.8, 0.999)),
        *((p, r) for p in (3, 5, 17, 60) for r in (0.0, 0.01, 0.9, 0.999)),
        (1, 0.0),
    ],
)
def test_the_threshold_of_equal_correlations(p: int, r: float) -> None:
    found = threshold(equal(p, r))
    assert check(found, equal(p, r)).passed
    for end in (found.lower, found.upper):
        assert end == pytest.approx(equal_threshold(p, r), abs=1e-10)


@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize(
    ("p", "r", "rho"),
    [(2, 0.99, 0.9), (3, 0.99, 0.99), (5, 0.7, 0.97), (10, 0.99, 0.8), (10, 0.99, 0.95)],
)
def test_equal_correlations_stay_equal(p: int, r: float, rho: float, criterion: str) -> None:
    """A mean part and a rest of each output, turned by the angle that its cap allows."""
    mean, rest = np.sqrt((1 + (p - 1) * r) / p), np.sqrt((p - 1) * (1 - r) / p)
    tilt = np.arctan2(rest, mean) + np.arccos(rho)
    left = (p * np.cos(tilt) ** 2 - 1) / (p - 1)
    assert left > 0
    result = solved(equal(p, r), rho, criterion)
    wanted = of_pairs(criterion, left, p * (p - 1) / 2)
    assert result.objective == pytest.approx(wanted, rel=1e-7)
    np.testing.assert_allclose(result.correlation[~np.eye(p, dtype=bool)], left, atol=1e-6)


@pytest.mark.parametrize("limit", [1.01, 1.5, 4.0])
@pytest.mark.parametrize(("p", "r"), [(3, 0.9), (7, 0.95), (20, 0.9)])
def test_equal_correlations_within_a_limit_on_the_vif(p: int, r: float, limit: float) -> None:
    """The optimum of a concave problem has the symmetry of R: equal correlations again."""

    def excess(rho: float) -> float:
        return (1 + (p - 2) * rho) / ((1 - rho) * (1 + (p - 1) * rho)) - limit

    after = brentq(excess, 0, r)
    both = [np.array([1 + (p - 1) * x] + [1 - x] * (p - 1)) for x in (r, after)]
    floor = np.sqrt(both[0] * both[1]).mean()
    answer = maximize_fidelity(equal(p, r), limit, criterion="vif")
    assert answer.rho_min[0] == pytest.approx(floor, abs=1e-7)


@pytest.mark.parametrize("sizes", [(4, 5), (3, 3), (2, 4, 6)])
@pytest.mark.parametrize("rs", [(0.8, 0.0, 0.4), (0.8, 0.8, 0.8), (0.5, 0.9, 0.1)])
def test_blocks_have_the_threshold_of_the_worst_block(sizes: Any, rs: Any) -> None:
    blocks = [equal(p, r) for p, r in zip(sizes, rs, strict=False)]
    expected = min(equal_threshold(len(b), b[0, 1]) for b in blocks)
    assert threshold(block_diag(*blocks)).value == pytest.approx(expected, abs=1e-10)


@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize("rho", [0.8, 0.95, 0.98])
def test_blocks_are_solved_one_by_one(rho: float, criterion: str) -> None:
    blocks = [np.asarray(wdi_correlation()), make_system(6), equal(3, 0.9), np.eye(2)]
    whole = solved(block_diag(*blocks), rho, criterion)
    parts = [decorrelate(block, rho, criterion=criterion) for block in blocks]
    joined = max if criterion == "worst" else sum
    assert whole.objective == pytest.approx(joined(part.objective for part in parts), abs=1e-7)
    if criterion == "squared":
        prices = np.concatenate([part.prices for part in parts])
        np.testing.assert_allclose(whole.prices, prices, atol=1e-5)
