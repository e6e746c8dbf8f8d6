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
    ("threshold", 6, 1e-10, [34, 34, 41, 30, 14, 47, 38, 48, 52]),
    ("threshold", 12, 1e-10, [42, 39, 48, 30, 14, 48, 30, 58, 34]),
    ("threshold", 40, 1e-10, [95, 50, 110, 48, 14, 77, 55, 120, 69]),
    ("next to the threshold", 12, 1e-13, [30, 26, 29, 26, 14, 42, 29, 32, 32]),
    ("next to the threshold", 40, 1e-13, [47, 43, 51, 42, 14, 69, 49, 62, 65]),
    ("far below", 12, 1e-13, [29, 14, 26, 14, 14, 38, 14, 29, 23]),
    ("far below", 40, 1e-13, [41, 14, 38, 14, 14, 47, 41, 56, 14]),
    ("one above", 12, 1e-13, [14, 23, 14, 29, 26, 38, 26, 14, 29]),
    ("one above", 40, 1e-13, [14, 34, 39, 34, 49, 48, 34, 65, 43]),
    ("no floors", 12, 1e-13, [43, 41, 49, 31, 15, 49, 31, 59, 35]),
    ("no floors", 40, 1e-13, [96, 51, 110, 49, 15, 78, 56, 120, 70]),
]


@pytest.mark.parametrize(
    ("asked", "p", "gap", "limits"), LIMITS, ids=[f"{row[0]}-{row[1]}" for row in LIMITS]
)
def test_every_family_takes_few_matrices(asked: str, p: int, gap: float, limits: list[int]) -> None:
    work.assert_families_within(ASKED[asked], p, gap, limits)
