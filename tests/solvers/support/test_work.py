"""Restricted coefficients take few descents and dual steps, and gaps stay as narrow as they are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import problems
import work
from skcoral import decorrelate, threshold

TABLES = {
    "small": work.matrix(problems.factor, 4),
    "factor": work.matrix(problems.factor, 6),
    "sample": work.matrix(problems.sample, 9),
    "autoregressive": work.matrix(problems.autoregressive, 7),
    "nearly singular": work.matrix(problems.nearly_singular, 6),
}


def some(R: Any, rho_min: Any, criterion: str = "squared", **asked: Any) -> Any:
    """Half of the coefficients are allowed."""
    mask = np.random.default_rng(len(R)).random(R.shape) < 0.5
    np.fill_diagonal(mask, True)
    return decorrelate(R, rho_min, criterion=criterion, support=mask, n_starts=10, **asked)


def within(R: Any, rho_min: Any, criterion: str) -> Any:
    """No coefficient is much below zero."""
    low = np.where(np.eye(len(R), dtype=bool), 0.0, -0.2)
    high = np.full(R.shape, 3.0)
    return decorrelate(R, rho_min, criterion=criterion, bounds=(low, high), n_starts=5)


def everything(R: Any) -> Any:
    """All coefficients are allowed, so that the gap closes."""
    rho = (1 + threshold(R).lower) / 2
    return decorrelate(R, rho, support=np.ones(R.shape, dtype=bool), n_starts=5)


def composites(R: Any) -> Any:
    """Anchored to sums of two, with restricted coefficients."""
    B = np.eye(len(R))[:, :-1] + np.eye(len(R))[:, 1:]
    mask = (B > 0) | (np.random.default_rng(1).random(B.shape) < 0.3)
    return decorrelate(R, 0.9, anchors=B, support=mask, n_starts=5)


def moments(R: Any) -> Any:
    """Neighbours only, proved by moments."""
    mask = np.abs(np.subtract.outer(np.arange(len(R)), np.arange(len(R)))) <= 1
    return decorrelate(R, 0.9, support=mask, n_starts=3, proof="moments")


ASKED: dict[str, Callable[[Any], Any]] = {
    "0, squared": lambda R: some(R, 0.0),
    "0.9, squared": lambda R: some(R, 0.9),
    "0.99, squared": lambda R: some(R, 0.99),
    "mixed, squared": lambda R: some(R, np.linspace(0.2, 1.0, len(R))),
    "0.9, worst": lambda R: some(R, 0.9, "worst"),
    "0.99, worst": lambda R: some(R, 0.99, "worst"),
    "0.9, absolute": lambda R: some(R, 0.9, "absolute"),
    "0.99, absolute": lambda R: some(R, 0.99, "absolute"),
    "all": everything,
    "composites": composites,
    "moments": moments,
    "within, squared": lambda R: within(R, 0.8, "squared"),
    "within, worst": lambda R: within(R, 0.8, "worst"),
    "within, absolute": lambda R: within(R, 0.95, "absolute"),
}

# Table, what is asked; steps, matrices, and the gap, at most.
LIMITS: list[tuple[str, str, int, int, float]] = [
    ("factor", "0, squared", 3, 14000, 1e-13),
    ("factor", "0.9, squared", 69, 39000, 0.054),
    ("factor", "0.99, squared", 62, 15000, 1e-09),
    ("factor", "mixed, squared", 70, 40000, 0.2),
    ("factor", "0.9, worst", 50, 84000, 0.18),
    ("factor", "0.99, worst", 4, 14000, 1e-10),
    ("factor", "0.9, absolute", 97, 72000, 0.37),
    ("factor", "all", 4, 8400, 1e-11),
    ("factor", "composites", 71, 26000, 0.06),
    ("factor", "within, squared", 4, 65000, 0.14),
    ("factor", "within, absolute", 4, 59000, 0.018),
    ("sample", "0.99, squared", 87, 41000, 0.00083),
    ("sample", "all", 4, 8800, 1e-11),
    ("sample", "within, squared", 3, 44000, 1e-13),
    ("autoregressive", "0.99, absolute", 4, 13000, 1e-12),
    ("autoregressive", "composites", 63, 32000, 0.0027),
    ("autoregressive", "within, absolute", 4, 8900, 1e-11),
    ("nearly singular", "0.99, squared", 78, 28000, 0.0038),
    ("nearly singular", "all", 4, 9400, 1e-08),
    ("small", "moments", 91, 38000, 1e-8),
]


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize(("table", "asked", "steps", "matrices", "gap"), LIMITS)
def test_steps_are_few(table: str, asked: str, steps: int, matrices: int, gap: float) -> None:
    work.assert_within(lambda: ASKED[asked](TABLES[table]), matrices=matrices, gap=gap, steps=steps)
