"""Honest results of every kind, each with the matrix that it is about."""

from __future__ import annotations

import warnings
from functools import cache
from typing import Any

import numpy as np

from skcoral import decorrelate
from skcoral.core.lowrank import FactoredCorrelation
from skcoral.datasets import make_system

from . import test_singular, test_singular_budgets, test_wide
from .conftest import MAKERS, R, honest

PAIRS = np.ones((8, 8)) - np.eye(8) + np.eye(8)[::-1]
BESIDE: dict[str, Any] = {
    "rank, weighted": lambda S: decorrelate(S, 0.3, pair_weights=PAIRS),
    "rank, frame, worst": lambda S: decorrelate(S, 0.6, criterion="worst"),
    "rank, absolute": lambda S: decorrelate(S, 0.99, criterion="absolute"),
}
LOW = [*(f"rank, {name}" for name in test_singular.ASKED), *BESIDE, "rank, budget"]
KINDS = [*MAKERS, *LOW, *(f"wide, {name}" for name in test_wide.MADE)]
SYSTEM = 0.1 * make_system(6) + 0.9  # residuals of about ten: the kinds "large, squared" and so on


@cache
def about(kind: str) -> tuple[Any, Any]:
    """A result, and the matrix that it is about."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if kind in MAKERS:
            return honest(kind), R
        family, _, name = kind.partition(", ")
        if family == "large":
            return decorrelate(SYSTEM, 0.999, criterion=name), SYSTEM
        if family == "wide":
            return test_wide.MADE[name], FactoredCorrelation(test_wide.ROWS)
        if name == "budget":
            return test_singular_budgets.made(), test_singular_budgets.R
        S = test_singular.R
        return BESIDE[kind](S) if kind in BESIDE else test_singular.HONEST[name], S
