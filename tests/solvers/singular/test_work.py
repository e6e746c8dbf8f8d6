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
    "ones, squared": lambda R: decorrelate(R, np.resize([1.0, 0.9], len(R))),
    "0.98, worst": lambda R: decorrelate(R, 0.98, criterion="worst"),
    "mixed, worst": lambda R: decorrelate(R, mixed(R), criterion="worst"),
    "0.5, absolute": lambda R: decorrelate(R, 0.5, criterion="absolute"),
    "0.98, absolute": lambda R: decorrelate(R, 0.98, criterion="absolute"),
    "mixed, absolute": lambda R: decorrelate(R, mixed(R), criterion="absolute"),
    "budget": budget,
    "itself": lambda R: maximize_fidelity(R, (np.sum(R**2) - len(R)) / 2),
    "threshold": threshold,
    "frontier": lambda R: frontier(R, n_points=3),
}

# Table, what is asked; steps, matrices, and the gap, at most.
LIMITS: list[tuple[str, str, int, int, float]] = [
    ("5 rows", "0.5, squared", 25, 250, 1e-09),
    ("5 rows", "0.98, squared", 26, 440, 1e-09),
    ("5 rows", "mixed, squared", 29, 280, 1e-09),
    ("5 rows", "0.98, worst", 41, 900, 1e-09),
    ("5 rows", "0.5, absolute", 64, 570, 1e-07),
    ("5 rows", "0.98, absolute", 39, 820, 1e-12),
    ("5 rows", "mixed, absolute", 2500, 7100, 1e-07),
    ("8 rows", "0.5, squared", 19, 190, 1e-09),
    ("8 rows", "0.9, squared", 41, 380, 1e-09),
    ("8 rows", "0.98, squared", 31, 730, 1e-09),
    ("8 rows", "mixed, squared", 21, 200, 1e-09),
    ("8 rows", "0.98, worst", 51, 1500, 1e-09),
    ("8 rows", "0.5, absolute", 72, 610, 1e-09),
    ("8 rows", "0.98, absolute", 49, 1300, 1e-12),
    ("8 rows", "mixed, absolute", 3600, 16000, 1e-07),
    ("18 rows", "0.5, squared", 32, 310, 1e-09),
    ("18 rows", "0.9, squared", 6200, 17500, 0.0016),
    ("18 rows", "0.98, squared", 30, 560, 1e-09),
    ("18 rows", "mixed, squared", 38, 360, 1e-10),
    ("18 rows", "0.98, worst", 48, 1200, 1e-09),
    ("18 rows", "0.5, absolute", 89, 750, 1e-07),
    ("18 rows", "0.98, absolute", 51, 1300, 1e-12),
    ("a sum", "0.5, squared", 68, 1100, 1e-09),
    ("a sum", "0.9, squared", 4800, 6200, 0.0079),
    ("a sum", "0.98, squared", 3400, 5400, 0.0016),
    ("a sum", "mixed, squared", 64, 1500, 1e-10),
    ("a sum", "mixed, worst", 69, 1800, 1e-08),
    ("a sum", "0.5, absolute", 170, 1800, 1e-07),
    ("a sum", "0.98, absolute", 190, 3500, 1e-12),
    ("a sum", "mixed, absolute", 150, 2300, 1e-07),
    ("5 rows", "threshold", 24000, 25000, 0.0033),
    ("8 rows", "threshold", 25000, 35000, 0.0008),
    ("a sum", "threshold", 23000, 18000, 0.025),
    ("two sums", "0.5, squared", 41, 380, 1e-10),
    ("two sums", "0.9, squared", 5700, 12000, 0.0046),
    ("two sums", "0.98, squared", 160, 2600, 1e-10),
    ("two sums", "0.98, worst", 240, 4000, 1e-09),
    ("two sums", "0.5, absolute", 87, 750, 1e-07),
    ("two sums", "0.98, absolute", 240, 4000, 1e-12),
    ("two sums", "mixed, absolute", 1500, 16000, 1e-07),
    ("5 rows", "itself", 1, 55, 0.0),
    ("5 rows", "budget", 17, 14000, 1e-10),
    ("5 rows", "frontier", 2, 24000, 1e-07),
    ("5 rows", "ones, squared", 32, 790, 1e-07),
]


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize(("table", "asked", "steps", "matrices", "gap"), LIMITS)
def test_steps_are_few(table: str, asked: str, steps: int, matrices: int, gap: float) -> None:
    work.assert_within(lambda: ASKED[asked](TABLES[table]), matrices=matrices, gap=gap, steps=steps)


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_steps_are_numbered_in_their_order() -> None:
    told: list[int] = []
    decorrelate(TABLES["5 rows"], 0.9, callback=lambda step, *_: told.append(step))
    assert len(set(told)) > 2
    assert told == sorted(told)


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_variables_themselves_are_the_point_of_a_frontier_at_one() -> None:
    R = TABLES["5 rows"]
    curve, off = frontier(R, rho_min=[1.0]), np.abs(R[np.triu_indices(len(R), 1)])
    assert curve.objective[0] == pytest.approx((off**2).sum(), abs=1e-9)
    assert curve.mean_residual[0] == pytest.approx(off.mean(), abs=1e-9)
    assert curve.worst_residual[0] == pytest.approx(off.max(), abs=1e-9)
