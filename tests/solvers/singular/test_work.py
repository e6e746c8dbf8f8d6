"""Singular tables take few gradients and dual steps, and their gaps stay as narrow as they are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import work
from skcoral import decorrelate, frontier, maximize_fidelity, threshold

TABLES = {
    "5 rows": work.few_rows(5, 6),
    "8 rows": work.few_rows(8, 12),
    "18 rows": work.few_rows(18, 20),
    "a sum": work.sums(6, 1),
    "two sums": work.sums(12, 2),
}


def budget(R: Any) -> Any:
    """Half of what the variables leave beyond the least for the rank."""
    p = len(R)
    least = (p**2 / np.linalg.matrix_rank(R, 1e-8) - p) / 2
    return maximize_fidelity(R, (least + (np.sum(R**2) - p) / 2) / 2)


def mixed(R: Any) -> Any:
    """Floors between none and nearly one."""
    return np.linspace(0.2, 0.98, len(R))


ASKED: dict[str, Callable[[Any], Any]] = {
    "0.5, squared": lambda R: decorrelate(R, 0.5),
    "0.9, squared": lambda R: decorrelate(R, 0.9),
    "0.98, squared": lambda R: decorrelate(R, 0.98),
    "mixed, squared": lambda R: decorrelate(R, mixed(R)),
    "0.98, worst": lambda R: decorrelate(R, 0.98, criterion="worst"),
    "mixed, worst": lambda R: decorrelate(R, mixed(R), criterion="worst"),
    "0.5, absolute": lambda R: decorrelate(R, 0.5, criterion="absolute"),
    "0.98, absolute": lambda R: decorrelate(R, 0.98, criterion="absolute"),
    "mixed, absolute": lambda R: decorrelate(R, mixed(R), criterion="absolute"),
    "budget": budget,
    "threshold": threshold,
    "frontier": lambda R: frontier(R, n_points=3),
}

# Table, what is asked; steps, matrices, and the gap, at most.
LIMITS: list[tuple[str, str, int, int, float]] = [
    ("5 rows", "0.5, squared", 25, 15, 1e-09),
    ("5 rows", "0.9, squared", 4600, 310, 0.00012),
    ("5 rows", "0.98, squared", 26, 31, 1e-09),
    ("5 rows", "mixed, squared", 29, 15, 1e-09),
    ("5 rows", "0.98, worst", 41, 440, 1e-09),
    ("5 rows", "0.5, absolute", 64, 25, 1e-07),
    ("5 rows", "0.98, absolute", 39, 360, 1e-12),
    ("5 rows", "mixed, absolute", 2500, 570, 1e-07),
    ("5 rows", "budget", 17, 160, 1e-10),
    ("5 rows", "threshold", 25000, 330, 0.0032),
    ("5 rows", "frontier", 2, 370, 1e-07),
    ("8 rows", "0.5, squared", 19, 15, 1e-09),
    ("8 rows", "0.9, squared", 41, 15, 1e-09),
    ("8 rows", "0.98, squared", 31, 39, 1e-09),
    ("8 rows", "mixed, squared", 21, 15, 1e-09),
    ("8 rows", "0.98, worst", 51, 690, 1e-09),
    ("8 rows", "0.5, absolute", 72, 25, 1e-09),
    ("8 rows", "0.98, absolute", 49, 540, 1e-12),
    ("8 rows", "mixed, absolute", 3600, 130, 1e-07),
    ("18 rows", "0.5, squared", 32, 15, 1e-09),
    ("18 rows", "0.9, squared", 6500, 430, 0.0016),
    ("18 rows", "0.98, squared", 30, 37, 1e-09),
    ("18 rows", "mixed, squared", 38, 15, 1e-10),
    ("18 rows", "0.98, worst", 48, 590, 1e-09),
    ("18 rows", "0.5, absolute", 89, 25, 1e-07),
    ("18 rows", "0.98, absolute", 51, 660, 1e-12),
    ("a sum", "0.5, squared", 68, 58, 1e-09),
    ("a sum", "0.9, squared", 4900, 350, 0.0079),
    ("a sum", "0.98, squared", 3600, 350, 0.0016),
    ("a sum", "mixed, squared", 64, 72, 1e-10),
    ("a sum", "mixed, worst", 69, 210, 1e-08),
    ("a sum", "0.5, absolute", 170, 70, 1e-07),
    ("a sum", "0.98, absolute", 190, 450, 1e-12),
    ("a sum", "mixed, absolute", 150, 210, 1e-07),
    ("a sum", "threshold", 25000, 530, 0.026),
    ("two sums", "0.5, squared", 41, 15, 1e-10),
    ("two sums", "0.9, squared", 5900, 410, 0.0046),
    ("two sums", "0.98, squared", 230, 72, 1e-12),
    ("two sums", "0.98, worst", 240, 500, 1e-09),
    ("two sums", "0.5, absolute", 87, 25, 1e-07),
    ("two sums", "0.98, absolute", 240, 480, 1e-12),
    ("two sums", "mixed, absolute", 1500, 650, 1e-07),
]


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize(("table", "asked", "steps", "matrices", "gap"), LIMITS)
def test_steps_are_few(table: str, asked: str, steps: int, matrices: int, gap: float) -> None:
    needs = work.needed(lambda: ASKED[asked](TABLES[table]))
    assert needs.steps <= steps
    assert needs.matrices <= matrices
    assert needs.gap <= gap
