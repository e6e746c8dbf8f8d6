"""Trade-offs take few Newton steps for every criterion, in every family, at floors of all kinds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import problems
import work
from skcoral import decorrelate, frontier, maximize_fidelity, threshold


def halfway(R: Any) -> float:
    """A common floor between the threshold and one."""
    return float(1 + threshold(R).lower) / 2


def mixed(R: Any) -> Any:
    """Floors of which some do not bind, and one is one."""
    rng = np.random.default_rng(len(R))
    floors = np.where(rng.random(len(R)) < 0.4, rng.uniform(0.0, 0.9, len(R)), halfway(R))
    floors[0] = 1.0
    return floors


def weights(p: int) -> Any:
    """Weights of pairs over orders of magnitude, some of them zero."""
    rng = np.random.default_rng(p)
    upper = np.triu(10.0 ** rng.uniform(-3, 0, (p, p)) * (rng.random((p, p)) < 0.8), 1)
    return upper + upper.T


def budget(R: Any, criterion: str) -> Callable[[], Any]:
    """A third of what the variables leave."""
    off = np.abs(R[np.triu_indices(len(R), 1)])
    amount = {"squared": (off**2).sum(), "worst": off.max(), "absolute": off.sum(), "vif": 4.5}
    return lambda: maximize_fidelity(R, amount[criterion] / 3, criterion=criterion)


def neighbour(R: Any) -> Callable[[], Any]:
    """From the answer at a lower floor."""
    near = decorrelate(R, halfway(R) - 1e-3)
    return lambda: decorrelate(R, halfway(R), warm=near)


def at(R: Any, rho_min: Any, **asked: Any) -> Callable[[], Any]:
    """The least residual at floors that have been found beforehand."""
    return lambda: decorrelate(R, rho_min, **asked)


def traced(R: Any, **asked: Any) -> Callable[[], Any]:
    """Four points of the frontier."""
    return lambda: frontier(R, n_points=4, **asked)


ASKED: dict[str, Callable[[Any], Callable[[], Any]]] = {
    "halfway, squared": lambda R: at(R, halfway(R)),
    "halfway, worst": lambda R: at(R, halfway(R), criterion="worst"),
    "halfway, absolute": lambda R: at(R, halfway(R), criterion="absolute"),
    "mixed, squared": lambda R: at(R, mixed(R)),
    "mixed, worst": lambda R: at(R, mixed(R), criterion="worst"),
    "mixed, absolute": lambda R: at(R, mixed(R), criterion="absolute"),
    "next to the threshold": lambda R: at(R, min(1.0, threshold(R).upper + 1e-4)),
    "next to one": lambda R: at(R, 1 - 1e-6),
    "weights": lambda R: at(R, halfway(R), pair_weights=weights(len(R))),
    "weights, mixed": lambda R: at(R, mixed(R), pair_weights=weights(len(R))),
    "neighbour": neighbour,
    "budget, squared": lambda R: budget(R, "squared"),
    "budget, worst": lambda R: budget(R, "worst"),
    "budget, absolute": lambda R: budget(R, "absolute"),
    "budget, vif": lambda R: budget(R, "vif"),
    "frontier, squared": lambda R: traced(R),
    "frontier, worst": lambda R: traced(R, criterion="worst"),
    "frontier, absolute": lambda R: traced(R, criterion="absolute"),
    "frontier, weights": lambda R: traced(R, pair_weights=weights(len(R))),
}

# Matrices at most, for the families of ``work.FAMILIES``, and the gap at most.
LIMITS: list[tuple[str, int, float, list[int]]] = [
    ("halfway, squared", 7, 1e-11, [98, 130, 350, 98, 33, 300, 150, 150, 250]),
    ("halfway, squared", 20, 1e-08, [130, 98, 450, 84, 33, 360, 120, 190, 150]),
    ("halfway, worst", 12, 1e-07, [900, 740, 790, 490, 340, 500, 880, 900, 610]),
    ("halfway, absolute", 12, 1e-08, [510, 470, 370, 430, 350, 580, 440, 420, 420]),
    ("mixed, squared", 7, 1e-09, [450, 51, 340, 340, 300, 57, 270, 350, 300]),
    ("mixed, squared", 20, 1e-09, [380, 59, 380, 410, 400, 360, 570, 320, 56]),
    ("mixed, worst", 12, 1e-07, [950, 55, 860, 800, 400, 970, 1100, 640, 390]),
    ("mixed, absolute", 12, 1e-08, [530, 55, 460, 470, 490, 510, 470, 440, 430]),
    ("next to the threshold", 7, 1e-13, [110, 140, 480, 74, 45, 110, 81, 170, 130]),
    ("next to the threshold", 20, 1e-11, [150, 140, 190, 120, 45, 570, 110, 190, 140]),
    ("next to one", 7, 1e-10, [98, 70, 260, 84, 33, 150, 130, 98, 160]),
    ("next to one", 20, 1e-09, [98, 70, 70, 84, 33, 150, 98, 160, 120]),
    ("weights", 7, 1e-13, [150, 890, 680, 160, 150, 380, 280, 360, 330]),
    ("weights", 20, 1e-11, [230, 130, 640, 130, 150, 190, 160, 360, 130]),
    ("weights, mixed", 7, 1e-09, [300, 51, 700, 280, 260, 57, 850, 430, 290]),
    ("weights, mixed", 20, 1e-10, [970, 59, 950, 390, 380, 730, 1100, 400, 56]),
    ("neighbour", 7, 1e-11, [88, 120, 130, 83, 64, 110, 83, 120, 95]),
    ("neighbour", 20, 1e-08, [100, 110, 150, 83, 78, 220, 83, 130, 110]),
    ("budget, squared", 7, 1e-09, [220, 220, 480, 200, 130, 600, 350, 240, 510]),
    ("budget, squared", 20, 1e-09, [230, 190, 850, 200, 140, 610, 220, 550, 360]),
    ("budget, worst", 6, 1e-08, [1900, 2200, 680, 970, 1500, 3700, 1100, 2400, 1800]),
    ("budget, absolute", 6, 1e-09, [1500, 1600, 1400, 1200, 1600, 1800, 1600, 1600, 1900]),
    ("budget, vif", 7, 1e-07, [330, 51, 480, 280, 140, 410, 360, 430, 350]),
    ("budget, vif", 20, 1e-07, [340, 49, 780, 300, 29, 700, 350, 720, 330]),
    ("frontier, squared", 6, 1e-08, [160, 160, 250, 130, 78, 860, 240, 380, 250]),
    ("frontier, worst", 6, 1e-08, [1200, 1500, 890, 770, 740, 1400, 720, 1400, 760]),
    ("frontier, absolute", 6, 1e-08, [780, 730, 560, 640, 760, 840, 780, 860, 790]),
    ("frontier, weights", 5, 1e-08, [2500, 2900, 2300, 2800, 7400, 3600, 4700, 3100, 5600]),
]


@pytest.mark.parametrize(
    ("asked", "p", "gap", "limits"), LIMITS, ids=[f"{row[0]}-{row[1]}" for row in LIMITS]
)
def test_newton_steps_are_few(asked: str, p: int, gap: float, limits: list[int]) -> None:
    for family, limit in zip(work.FAMILIES, limits, strict=True):
        needs = work.needed(ASKED[asked](work.matrix(family, p)))
        assert needs.matrices <= limit, family.__name__
        assert needs.gap <= gap, family.__name__


# The same for three hard problems each, with random floors of one kind.
HARD: list[tuple[str, float, list[int]]] = [
    ("common", 1e-10, [250, 57, 370, 130, 63, 340, 420, 730, 540]),
    ("mixed", 1e-11, [45, 45, 82, 830, 780, 58, 700, 590, 55]),
    ("steps", 1e-06, [1300, 510, 2500, 1800, 1300, 880, 1900, 930, 1700]),
    ("next to one", 1e-07, [1300, 1500, 1100, 2300, 930, 1500, 1800, 650, 1600]),
    ("next to the threshold", 1e-13, [2500, 1300, 550, 320, 150, 280, 290, 1400, 340]),
]


def hard_problems(family: Any, floors: str) -> list[problems.Problem]:
    """Random problems of up to eleven variables."""
    return [problems.hard(np.random.default_rng([seed]), family, floors) for seed in range(3)]


@pytest.mark.parametrize(("floors", "gap", "limits"), HARD, ids=[row[0] for row in HARD])
def test_hard_floors_take_few_steps(floors: str, gap: float, limits: list[int]) -> None:
    for family, limit in zip(work.FAMILIES, limits, strict=True):
        all_needs = [work.needed(at(q.R, **q.asked)) for q in hard_problems(family, floors)]
        assert sum(needs.matrices for needs in all_needs) <= limit, family.__name__
        assert max(needs.gap for needs in all_needs) <= gap, family.__name__
