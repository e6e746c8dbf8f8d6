"""The threshold and the largest mean fidelity take few Newton steps, in every family."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import work
from skcoral import decorrelate, threshold


def mixed(R: Any, low: float, high: float) -> Any:
    """Floors between these parts of the threshold, half of them at the higher one."""
    rng = np.random.default_rng(len(R))
    parts = np.where(rng.random(len(R)) < 0.5, high, rng.uniform(low, high, len(R)))
    return parts * threshold(R).lower


def one_above(R: Any) -> Any:
    """One floor halfway from the threshold to one, and low ones."""
    floors = np.full(len(R), 0.2)
    floors[-1] = (1 + threshold(R).lower) / 2
    return floors


ASKED: dict[str, Callable[[Any], Callable[[], Any]]] = {
    "threshold": lambda R: lambda: threshold(R),
    "next to the threshold": lambda R: _at(R, mixed(R, 0.8, 1 - 1e-4)),
    "far below": lambda R: _at(R, mixed(R, 0.0, 0.95)),
    "one above": lambda R: _at(R, one_above(R)),
    "no floors": lambda R: lambda: decorrelate(R),
}


def _at(R: Any, floors: Any) -> Callable[[], Any]:
    return lambda: decorrelate(R, floors)


# Matrices at most, for the families of ``work.FAMILIES``, and the gap at most.
LIMITS: list[tuple[str, int, float, list[int]]] = [
    ("threshold", 6, 1e-10, [34, 34, 41, 29, 14, 44, 38, 48, 45]),
    ("threshold", 12, 1e-10, [41, 39, 47, 29, 14, 45, 29, 58, 34]),
    ("threshold", 40, 1e-10, [93, 50, 99, 48, 14, 75, 53, 110, 69]),
    ("next to the threshold", 12, 1e-13, [29, 24, 28, 26, 14, 39, 28, 32, 32]),
    ("next to the threshold", 40, 1e-13, [45, 54, 51, 42, 14, 66, 49, 60, 64]),
    ("far below", 12, 1e-13, [28, 14, 24, 14, 14, 35, 14, 28, 21]),
    ("far below", 40, 1e-13, [39, 14, 38, 14, 14, 44, 41, 54, 14]),
    ("one above", 12, 1e-13, [14, 21, 14, 28, 24, 38, 24, 14, 28]),
    ("one above", 40, 1e-13, [14, 34, 39, 34, 49, 44, 34, 65, 43]),
    ("no floors", 12, 1e-13, [42, 41, 48, 30, 11, 46, 30, 59, 35]),
    ("no floors", 40, 1e-13, [94, 51, 100, 49, 11, 76, 54, 111, 70]),
]


@pytest.mark.parametrize(
    ("asked", "p", "gap", "limits"), LIMITS, ids=[f"{row[0]}-{row[1]}" for row in LIMITS]
)
def test_every_family_takes_few_matrices(asked: str, p: int, gap: float, limits: list[int]) -> None:
    work.assert_families_within(ASKED[asked], p, gap, limits)
