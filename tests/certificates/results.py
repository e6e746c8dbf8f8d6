"""Honest results of every kind, each with the matrix that it is about."""

from __future__ import annotations

import warnings
from functools import cache
from typing import Any

import numpy as np

from skcoral import decorrelate, maximize_fidelity
from skcoral.core.lowrank import FactoredCorrelation
from skcoral.datasets import make_system

from . import test_moments, test_singular, test_wide
from .conftest import MAKERS, R, honest

PAIRS = np.ones((8, 8)) - np.eye(8) + np.eye(8)[::-1]
BESIDE: dict[str, Any] = {
    "rank, weighted": lambda S: decorrelate(S, 0.3, pair_weights=PAIRS),
    "rank, frame, worst": lambda S: decorrelate(S, 0.6, criterion="worst"),
    "rank, absolute": lambda S: decorrelate(S, 0.99, criterion="absolute"),
}
LOW = [*(f"rank, {name}" for name in test_singular.ASKED), *BESIDE, "rank, budget"]
KINDS = [*MAKERS, "support, moments", *LOW, *(f"wide, {name}" for name in test_wide.MADE)]
SYSTEM = 0.1 * make_system(6) + 0.9  # residuals of about ten: the kinds "large, squared" and so on


@cache
def about(kind: str) -> tuple[Any, Any]:
    """A result, and the matrix that it is about."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if kind in MAKERS:
            return honest(kind), R
        if kind == "support, moments":
            return test_moments.with_bound(("squared", 0.8))
        family, _, name = kind.partition(", ")
        if family == "large":
            return decorrelate(SYSTEM, 0.999, criterion=name), SYSTEM
        if family == "wide":
            return test_wide.MADE[name], FactoredCorrelation(test_wide.ROWS)
        if name == "budget":
            few = np.corrcoef(np.random.default_rng(3).normal(size=(3, 4)).T)
            return maximize_fidelity(few, decorrelate(few, 0.999).objective), few
        S = test_singular.R
        return BESIDE[kind](S) if kind in BESIDE else test_singular.HONEST[name], S
