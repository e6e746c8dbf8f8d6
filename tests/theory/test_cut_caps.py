"""Cuts of the caps of a singular problem: which of them remove the mixtures."""

import itertools

import cvxpy as cp
import numpy as np
import pytest

ANGLES = np.radians([0.0, 80.0, 0.0])
SOURCES = np.array([np.cos(ANGLES), np.sin(ANGLES)])
FLOOR = 0.2
WELCH = (9 / 2 - 3) / 2


def relaxed(slabs):
    """The least residual if the third output is a mixture within ``lo ≤ vᵀu ≤ hi``."""
    moments = cp.Variable((3, 3), PSD=True)
    Y, u = moments[:2, :2], moments[:2, 2]
    constraints = [moments[2, 2] == 1, cp.trace(Y) == 1, SOURCES[:, 2] @ u >= FLOOR]
    for v, lo, hi in slabs:
        constraints.append(cp.trace(np.outer(v, v) @ Y) - (lo + hi) * (v @ u) + lo * hi <= 0)
    fixed = SOURCES[:, :2] @ SOURCES[:, :2].T
    problem = cp.Problem(cp.Minimize(cp.sum_squares(fixed + Y) / 2 - 1.5), constraints)
    problem.solve(solver="CLARABEL")
    return problem.value if problem.status == "optimal" else np.inf


def least_by_grid():
    turns = np.linspace(-np.arccos(FLOOR), np.arccos(FLOOR), 20_001)
    total = np.exp(2j * ANGLES[:2]).sum() + np.exp(2j * turns)
    return float(((9 + np.abs(total).min() ** 2) / 2 - 3) / 2)


def parts(start, end, n):
    ends = np.linspace(start, end, n + 1)
    return list(itertools.pairwise(ends))


@pytest.mark.parametrize("width", [1e-1, 1e-2, 1e-3])
def test_cuts_across_the_source_do_not_converge(width):
    """The two ends of a mixture are mirror images, so that they lie in one slab, however narrow."""
    first = np.exp(2j * ANGLES[:2]).sum()
    middle = np.sin(np.arccos(-first.real) / 2)
    bound = min(
        relaxed([(np.array([0.0, 1.0]), side - width / 2, side + width / 2)])
        for side in (middle, -middle)
    )
    assert bound == pytest.approx(WELCH, abs=1e-6)
    assert least_by_grid() > WELCH + 0.1


def test_cuts_along_the_source_as_well_do():
    across, along = np.array([0.0, 1.0]), np.array([1.0, 0.0])
    reach, least = np.sqrt(1 - FLOOR**2), least_by_grid()
    bounds = [
        min(
            relaxed([(across, *one), (along, *other)])
            for one in parts(-reach, reach, n)
            for other in parts(FLOOR, 1.0, n)
        )
        for n in (2, 5)
    ]
    assert bounds[0] <= bounds[1] <= least + 1e-6
    assert least - bounds[1] < 0.25 * (least - WELCH)
