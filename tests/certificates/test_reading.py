"""Altered fields and parts of a certificate: what is refused, and with which message."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from skcoral import decorrelate
from skcoral.bounds.arithmetic import exactly
from skcoral.bounds.frame import from_squares
from skcoral.certificates import check, prove
from skcoral.core.lowrank import LowRankTransform
from skcoral.core.solution import Certificate

from .conftest import broken, failed, verdict, verifier_refuses, with_arrays, with_T
from .results import MASK, SYSTEM, R, about, honest

FIVE = np.full(5, 0.9)


def of_rank(rank: Any) -> Certificate:
    """A proof that says so of its rank."""
    proof = honest("wide, frame").certificate
    return replace(proof, info={**proof.info, "rank": rank})


@pytest.mark.parametrize(
    ("kind", "changes", "words"),
    [
        ("squared", {"fidelity": FIVE}, "`fidelity` must be floats of shape (6,), got shape (5,)"),
        ("squared", {"rho_min": np.full(6, np.nan)}, "without nan"),
        ("squared", {"fidelity": np.full(6, np.inf)}, "not finite"),
        ("squared", {"prices": np.full(6, 5e100)}, "beyond 1e+100"),
        ("squared", {"objective": 5e100}, "must be finite"),
        ("squared", {"objective": "1"}, "must be a number, got '1'"),
        ("squared", {"rho_min": np.full(6, -1e-300)}, "outside [0, 1]"),
        ("squared", {"rho_min": np.full(6, 1 + 3e-16)}, "outside [0, 1]"),
        ("squared", {"criterion": "best"}, "`criterion` must be one of squared"),
        ("squared", {"status": "fine"}, "`status` must be one of exact, optimal"),
        ("squared", {"goal": None}, "`goal` must be Floors, Budget or VifLimit"),
        ("squared", {"n_iter": -1}, "`n_iter` must be a whole number that is not negative, got -1"),
        ("squared", {"names": ("a",) * 6}, "must be distinct"),
        ("squared", {"names": ("a", "b")}, "names 2 outputs, and there are 6"),
        ("squared", {"names": ["a"] * 6}, "`names` must be a tuple of text"),
        ("squared", {"T": np.eye(6)[:, :5]}, "floats of shape (6, 6), got shape (6, 5)"),
        ("weighted", {"pair_weights": np.ones((6, 6))}, "symmetric with a zero diagonal"),
        ("weighted", {"pair_weights": np.eye(5)}, "shape (6, 6)"),
        ("weighted", {"pair_weights": -np.ones((6, 6))}, "negative"),
        ("anchors", {"anchors": np.ones(6)}, "anchors are a matrix"),
        ("squared", {"anchors": np.zeros((6, 6))}, "no coefficient"),
        ("anchors", {"anchors": np.full((6, 4), np.inf)}, "must be finite"),
        ("anchors", {"anchors": np.eye(6)[:, :4] * [1, 1, 1, 0]}, "Composite 3 has no coefficient"),
        ("support", {"pair_weights": 1 - np.eye(6)}, "not combined"),
        ("threshold", {"tol": None}, "`tol` must be a number"),
        ("wide, frame", {"anchors": np.eye(40)}, "not combined with anchors"),
        ("wide, frame", {"T": LowRankTransform(np.zeros((39, 2)), np.zeros((2, 39)))}, "by 40"),
        ("wide, frame", {"pair_weights": np.ones((2, 2))}, "shape (40, 40)"),
        ("wide, frame", {"pair_weights": np.ones((40, 40))}, "zero diagonal"),
        ("wide, frame", {"pair_weights": np.eye(40) - 1}, "negative"),
        ("wide, frame", {"certificate": Certificate("exact", {})}, "rank below p"),
        ("wide, threshold", {"certificate": honest("wide, frame").certificate}, "the kind 'frame'"),
        *(("wide, frame", {"certificate": of_rank(r)}, "a rank is a whole") for r in (True, 8.0)),
    ],
)
def test_fields_that_are_none(kind: str, changes: dict[str, Any], words: str) -> None:
    result, matrix = about(kind)
    for judge in (check, prove):
        assert words in verdict(judge, replace(result, **changes), matrix)


@pytest.mark.parametrize(
    ("kind", "arrays", "words"),
    [
        ("squared", {"multipliers": np.full(6, -1e-300)}, "negative"),
        ("squared", {"more": np.eye(2)}, "consists of H, criterion, multipliers; check more"),
        ("exact", {"mean_weights": np.zeros(6)}, "all weights are zero"),
        ("support", {"support": np.full((6, 6), 0.5)}, "zeros and ones"),
        ("support", {"support": 1.0 - np.eye(6)}, "ones on the diagonal"),
        ("support, moments", {"weights": np.full((5, 5), 3.0)}, "weights of a sum over pairs"),
        ("support", {"slope": np.eye(5)}, "`slope` must be floats of shape (6, 6)"),
    ],
)
def test_parts_that_are_none(kind: str, arrays: dict[str, Any], words: str) -> None:
    result, matrix = about(kind)
    lie = with_arrays(result, **arrays)
    for judge in (check, prove):
        assert words in verdict(judge, lie, matrix)
    assert "slope" in arrays or "more" in arrays or verifier_refuses(lie, matrix)


# The words for an open gap, on both sides of where they begin.


def test_words_on_a_support() -> None:
    """A residual of next to nothing is none."""
    result = honest("support, exact")
    for size, wrong in ((2e-8, []), (0.2e-8, ["status"])):
        mix = np.eye(6)
        mix[2, 3] = size
        T = np.where(np.tril(np.ones((6, 6))) > 0, result.T @ mix.T, 0.0)
        T = T / np.sqrt(np.diag(T.T @ R @ T))
        broken(with_T(result, T, status="optimal"), *wrong)


# Dual points at the ends of what they may be.


@pytest.mark.parametrize("kind", ["squared", "worst", "weighted", "support"])
def test_a_point_that_proves_that_nothing_is_negative(kind: str) -> None:
    """Every residual is at least zero, whatever a poor point proves; the bound reported is that."""
    result = honest(kind)
    lam = result.certificate.arrays["multipliers"]
    poor = with_arrays(result, multipliers=0 * lam)
    poor = replace(poor, lower_bound=0.0, status="best_found")
    if kind != "support":
        poor = replace(poor, weights=np.zeros(6), prices=np.zeros(6))
    assert check(poor, R).lower == 0
    for changes, claim in (
        ({}, None),
        ({"lower_bound": 5e-9}, "lower bound"),
        ({"status": "optimal"}, "status"),
    ):
        wrong = failed(replace(poor, **changes)) - {"prices", "weights"}
        assert wrong == ({claim} if claim else set())


def test_squares_below_zero_bound_other_criteria_by_zero() -> None:
    for criterion, squares, lower, upper in (
        ("worst", -1.0, 0.0, 0.0),
        ("worst", 28.0, 1.0, 1.0),
        ("squared", -1.0, -1.0, -1.0),
    ):
        bound = from_squares(criterion, exactly(squares), 28.0)
        assert (float(bound.lower), float(bound.upper)) == pytest.approx((lower, upper), abs=1e-14)


def test_prices_of_floors_of_one() -> None:
    """Infinite where the output is correlated with another; nothing where it is not."""
    result = honest("a floor of one")
    assert result.prices[0] == np.inf
    for value in (0.0, 1.0, 1e99, np.nan, -np.inf):
        prices = result.prices.copy()
        prices[0] = value
        broken(replace(result, prices=prices), "prices")
    block = np.eye(6)
    block[1:, 1:] = R[1:, 1:]
    pairs = np.where(np.arange(6) * np.arange(6)[:, None] > 0, 1.0, 0.0)  # none of the first
    for matrix, weights in ((block, None), (R, pairs)):
        alone = decorrelate(matrix, [1.0, *[0.99] * 5], pair_weights=weights)
        assert alone.prices[0] == 0
        assert check(alone, matrix).passed
        for value in (np.inf, 1.0):
            prices = alone.prices.copy()
            prices[0] = value
            assert "prices" in verdict(check, replace(alone, prices=prices), matrix)


def test_prices_on_a_support() -> None:
    """Known ones follow from the slope; all or none may be unknown; idle floors cost nothing."""
    floors = np.array([0.99, 0.99, 0.3, 0.99, 0.2, 1.0])
    result = decorrelate(R, floors, support=MASK, n_starts=5)
    idle = np.flatnonzero(result.fidelity > floors + 1e-3)
    assert len(idle)
    assert not result.prices[idle].any()
    assert (np.delete(result.prices, idle) > 0).sum() >= 2
    for j in idle:
        for value in (1e-3, -1e-3, 1.0):
            prices, weights = result.prices.copy(), result.weights.copy()
            prices[j], weights[j] = value, 0.5 * value
            assert failed(replace(result, prices=prices, weights=weights)) == {"prices", "weights"}
    unknown, part = np.full(6, np.nan), np.r_[np.nan, result.prices[1:]]
    broken(replace(result, prices=unknown, weights=unknown))
    for changes in ({"prices": unknown}, {"weights": unknown}, {"prices": part}):
        assert verdict(check, replace(result, **changes), R)


def test_prices_of_sources_alone_in_their_column() -> None:
    """A floor of one on a column that may be nothing else costs nothing; on others it may."""
    alone, other = np.argsort(MASK.sum(axis=0))[-2:]
    mask = MASK.copy()
    mask[:, alone] = np.eye(6)[alone]
    floors = np.where(np.isin(range(6), (alone, other)), 1.0, 0.95)
    result = decorrelate(R, floors, support=mask, n_starts=2)
    assert np.abs(result.correlation - np.eye(6))[[alone, other]].max(axis=1).min() > 1e-3
    assert (result.prices[alone], result.prices[other]) == (0.0, np.inf)
    assert check(result, R).passed
    for j, value in ((alone, np.inf), (other, 0.0)):
        prices = result.prices.copy()
        prices[j] = value
        broken(replace(result, prices=prices), "prices")


@pytest.mark.parametrize("criterion", ["absolute", "worst"])
def test_slopes_outside_their_domain(criterion: Any) -> None:
    """No entry above one half, or no sum above one, also where the slope at T is the right one."""
    result = honest(f"support, {criterion}")
    arrays, E = result.certificate.arrays, result.correlation - np.diag(np.diag(result.correlation))
    assert not failed(result)
    pairs = np.argwhere(np.triu(np.abs(E) > 1e-4, 1))
    (i, j), (k, m) = pairs[0], pairs[1]
    for size, wrong in ((0.3, True), (1e-4, True), (1e-8, False)):
        slope = arrays["slope"].copy()
        slope[i, j] = slope[j, i] = slope[i, j] + size * np.sign(slope[i, j] or 1.0)
        moved = (slope - arrays["slope"])[i, j] * E[i, j] / E[k, m]
        slope[k, m] = slope[m, k] = slope[k, m] - moved
        assert np.sum(slope * E) == pytest.approx(np.sum(arrays["slope"] * E), abs=1e-12)
        assert ("slope" in failed(with_arrays(result, slope=slope))) == wrong


@pytest.mark.parametrize("criterion", ["squared", "absolute", "worst"])
def test_slopes_on_a_support(criterion: Any) -> None:
    """Half a subgradient: Fenchel's inequality is an equality up to 1e-6 of its value."""
    mask = np.abs(SYSTEM) > 0.95
    result = decorrelate(SYSTEM, 0.999, support=mask, n_starts=2, criterion=criterion)
    assert criterion == "worst" or result.objective > 8
    assert not failed(result, SYSTEM)
    arrays = result.certificate.arrays
    value = result.objective * (2.0 if criterion == "squared" else 1.0)
    for share, wrong in ((3e-6, True), (0.3e-6, False)):
        size = np.sqrt(2 * share * value / np.sum(arrays["slope"] ** 2))
        slope = arrays["slope"] * (1 + (size if criterion == "squared" else -share))
        assert ("slope" in failed(with_arrays(result, slope=slope), SYSTEM)) == wrong
    assert "slope" in failed(with_arrays(result, slope=arrays["slope"] + 1e-2 * np.eye(6)), SYSTEM)


def test_an_idle_floor_that_is_nearly_met_binds() -> None:
    """A floor counts as met with equality up to 1e-7: there it has a price, beyond it none."""
    result = honest("support, open")
    slack = result.fidelity - result.rho_min
    binding = int(np.argmax(np.where(slack < 1e-9, result.prices, -1.0)))
    assert result.prices[binding] > 1e-3
    for below, priced in ((0.5e-7, True), (5e-7, False)):
        floors = result.rho_min.copy()
        floors[binding] = result.fidelity[binding] - below
        moved = replace(result, rho_min=floors, status="best_found")
        free = result.prices.copy(), result.weights.copy()
        free[0][binding] = free[1][binding] = 0.0
        assert ("prices" not in failed(moved)) == priced
        bare = replace(moved, prices=free[0], weights=free[1])
        assert ("prices" in failed(bare)) == priced


@pytest.mark.parametrize("judge", [check, prove])
def test_dual_points_whose_sums_leave_the_range_of_floats(judge: Any) -> None:
    for kind, first, second in (
        ("squared", "multipliers", "H"),
        ("worst", "multipliers", "H"),
        ("exact", "mean_weights", "mean_S"),
        ("threshold", "weights", "S"),
        ("vif", "vif_weights", "vif_H"),
    ):
        result = honest(kind)
        tiny = 1e-160 * np.eye(len(result.certificate.arrays[second]))
        assert verdict(judge, with_arrays(result, **{first: np.full(6, 1e100), second: tiny}), R)
