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


def half(R: Any) -> Any:
    """Only pairs among the first half of the variables count."""
    counts = np.arange(len(R)) < len(R) // 2
    return 1.0 * (np.outer(counts, counts) & ~np.eye(len(R), dtype=bool))


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
    "next to the threshold, absolute": lambda R: at(
        R, min(1.0, threshold(R).upper + 1e-6), criterion="absolute"
    ),
    "next to one": lambda R: at(R, 1 - 1e-6),
    "weights": lambda R: at(R, halfway(R), pair_weights=weights(len(R))),
    "weights, mixed": lambda R: at(R, mixed(R), pair_weights=weights(len(R))),
    "groups, squared": lambda R: at(R, mixed(R), pair_weights=half(R)),
    "groups, worst": lambda R: at(R, mixed(R), pair_weights=half(R), criterion="worst"),
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
    ("halfway, squared", 7, 1e-11, [120, 150, 390, 120, 48, 320, 160, 170, 260]),
    ("halfway, squared", 20, 1e-08, [150, 120, 490, 110, 48, 390, 130, 210, 160]),
    ("halfway, worst", 12, 1e-07, [1000, 830, 880, 540, 390, 550, 970, 990, 670]),
    ("halfway, absolute", 12, 1e-08, [570, 530, 420, 490, 400, 640, 490, 480, 470]),
    ("mixed, squared", 7, 1e-09, [480, 130, 380, 370, 330, 150, 300, 390, 340]),
    ("mixed, squared", 20, 1e-09, [420, 150, 420, 450, 430, 410, 620, 360, 140]),
    ("mixed, worst", 12, 1e-07, [1100, 140, 960, 900, 460, 1100, 1200, 720, 440]),
    ("mixed, absolute", 12, 1e-08, [590, 140, 520, 530, 550, 570, 530, 500, 490]),
    ("next to the threshold", 7, 1e-13, [130, 160, 530, 91, 60, 120, 98, 190, 140]),
    ("next to the threshold", 20, 1e-11, [170, 160, 210, 130, 60, 640, 130, 200, 160]),
    ("next to one", 7, 1e-10, [120, 88, 290, 110, 48, 160, 150, 120, 180]),
    ("next to one", 20, 1e-09, [120, 88, 88, 110, 48, 160, 120, 180, 130]),
    ("weights", 7, 1e-13, [160, 980, 770, 170, 160, 420, 320, 410, 360]),
    ("weights", 20, 1e-11, [250, 150, 680, 150, 160, 210, 170, 400, 150]),
    ("weights, mixed", 7, 1e-09, [330, 130, 790, 320, 290, 150, 950, 490, 320]),
    ("weights, mixed", 20, 1e-10, [1100, 150, 1100, 430, 420, 820, 1200, 440, 140]),
    ("groups, squared", 8, 1e-09, [780, 890, 230, 800, 780, 1100, 810, 740, 810]),
    ("groups, worst", 8, 1e-08, [830, 840, 700, 820, 690, 930, 770, 840, 800]),
    ("neighbour", 7, 1e-11, [100, 140, 140, 95, 76, 130, 110, 130, 120]),
    ("neighbour", 20, 1e-08, [120, 120, 160, 95, 90, 240, 95, 150, 120]),
    ("budget, squared", 7, 1e-09, [270, 270, 560, 250, 190, 660, 410, 300, 580]),
    ("budget, squared", 20, 1e-09, [280, 240, 940, 250, 200, 690, 270, 620, 420]),
    ("budget, worst", 6, 1e-08, [2100, 2500, 800, 1200, 1700, 4200, 1300, 2800, 2000]),
    ("budget, absolute", 6, 1e-09, [1800, 1800, 1700, 1400, 1800, 2000, 1800, 1800, 2100]),
    ("budget, vif", 7, 1e-07, [680, 64, 760, 550, 290, 820, 610, 880, 600]),
    ("budget, vif", 20, 1e-07, [760, 60, 1400, 610, 40, 1300, 830, 1500, 700]),
    ("frontier, squared", 6, 1e-08, [200, 200, 300, 170, 120, 930, 290, 440, 300]),
    ("frontier, worst", 6, 1e-08, [1400, 1700, 1100, 890, 850, 1600, 840, 1600, 890]),
    ("frontier, absolute", 6, 1e-08, [900, 840, 670, 760, 880, 970, 910, 1000, 930]),
    ("frontier, weights", 5, 1e-08, [2800, 3300, 3900, 3200, 4000, 5000, 5600, 4100, 5000]),
]


@pytest.mark.parametrize(
    ("asked", "p", "gap", "limits"), LIMITS, ids=[f"{row[0]}-{row[1]}" for row in LIMITS]
)
def test_every_family_takes_few_matrices(asked: str, p: int, gap: float, limits: list[int]) -> None:
    work.assert_families_within(ASKED[asked], p, gap, limits)


# The same for single problems that are large enough for iterated equations or a rough first path.
LARGE: list[tuple[str, Any, int, float, int]] = [
    ("halfway, squared", problems.common, 60, 1e-10, 680),
    ("halfway, worst", problems.factor, 66, 1e-8, 6300),
    ("halfway, absolute", problems.factor, 40, 1e-11, 2100),
    ("next to the threshold, absolute", problems.common, 40, 1e-9, 2100),
    ("budget, vif", problems.nearly_singular, 40, 1e-8, 1300),
]


@pytest.mark.parametrize(("asked", "family", "p", "gap", "limit"), LARGE)
def test_large_problems_take_few_steps(
    asked: str, family: Any, p: int, gap: float, limit: int
) -> None:
    work.assert_within(ASKED[asked](work.matrix(family, p)), matrices=limit, gap=gap)


# The same for three hard problems each, with random floors of one kind.
HARD: list[tuple[str, float, list[int]]] = [
    ("common", 1e-10, [290, 66, 430, 150, 84, 390, 470, 820, 590]),
    ("mixed", 1e-11, [54, 54, 91, 940, 890, 84, 800, 640, 74]),
    ("steps", 1e-06, [1500, 580, 2800, 2000, 1400, 960, 2200, 1100, 2000]),
    ("next to one", 1e-07, [1400, 1600, 1200, 2400, 1000, 1600, 2000, 730, 1700]),
    ("next to the threshold", 1e-13, [2700, 1400, 620, 380, 200, 340, 360, 1500, 410]),
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
