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
    ("threshold", 6, 1e-10, [31, 31, 36, 27, 11, 32, 27, 35, 39]),
    ("threshold", 12, 1e-10, [36, 35, 42, 27, 11, 33, 27, 44, 31]),
    ("threshold", 40, 1e-10, [80, 36, 89, 35, 11, 49, 34, 78, 43]),
    ("next to the threshold", 12, 1e-13, [27, 23, 26, 23, 11, 28, 26, 29, 29]),
    ("next to the threshold", 40, 1e-13, [34, 31, 36, 29, 11, 39, 35, 38, 38]),
    ("far below", 12, 1e-13, [26, 11, 23, 11, 11, 25, 11, 26, 20]),
    ("far below", 40, 1e-13, [30, 11, 29, 11, 11, 28, 30, 34, 11]),
    ("one above", 12, 1e-13, [11, 20, 11, 26, 23, 25, 23, 11, 26]),
    ("one above", 40, 1e-13, [11, 27, 31, 27, 38, 28, 27, 42, 27]),
    ("no floors", 12, 1e-13, [36, 35, 42, 27, 11, 33, 27, 44, 31]),
    ("no floors", 40, 1e-13, [80, 36, 89, 35, 11, 49, 34, 78, 43]),
]


@pytest.mark.parametrize(
    ("asked", "p", "gap", "limits"), LIMITS, ids=[f"{row[0]}-{row[1]}" for row in LIMITS]
)
def test_newton_steps_are_few(asked: str, p: int, gap: float, limits: list[int]) -> None:
    for family, limit in zip(work.FAMILIES, limits, strict=True):
        needs = work.needed(ASKED[asked](work.matrix(family, p)))
        assert needs.matrices <= limit, family.__name__
        assert needs.gap <= gap, family.__name__
