"""Floors up to one: caps that shrink to a point must neither crash nor give a false bound."""

import numpy as np
import pytest

from skcoral import decorrelate
from skcoral.bounds.support import proved_bound
from skcoral.certificates import check
from skcoral.solvers.support.caps import feasible_set
from skcoral.solvers.support.frame_relaxation import frame_bound

from .certified import assert_feasible

FLOORS = np.array([0.85, 0.999, 0.9999, 1 - 1e-7, 1 - 1e-10, 1.0])
CRITERIA = ("squared", "worst", "absolute")


def problem(seed):
    """A small matrix, mixed floors and a random support."""
    rng = np.random.default_rng(seed)
    p = int(rng.integers(3, 7))
    R = np.corrcoef(rng.normal(size=(p + int(rng.integers(2, 10)), p)), rowvar=False)
    # Multipliers of 1e5 feel the last bit of R: leave nothing to be symmetrised.
    R = 0.5 * (R + R.T)
    np.fill_diagonal(R, 1.0)
    mask = rng.random((p, p)) < rng.uniform(0.2, 0.9)
    np.fill_diagonal(mask, True)
    return R, rng.choice(FLOORS, size=p), mask


def judge(seed, criterion):
    R, floors, mask = problem(seed)
    answer = decorrelate(R, floors, support=mask, criterion=criterion, n_starts=8)
    assert_feasible(R, mask, answer)
    # The certificate's own bound, not cut off at the value that was reached.
    proved = proved_bound(R, answer.rho_min, answer.certificate)
    assert proved <= answer.objective + 1e-12 * max(1.0, answer.objective)
    assert answer.lower_bound <= proved + 1e-15
    assert check(answer, R).passed


@pytest.mark.filterwarnings("ignore::skcoral.exceptions.NotCertifiedWarning")
@pytest.mark.parametrize("seed", range(12))
def test_mixed_high_floors(seed):
    judge(seed, CRITERIA[seed % 3])


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::skcoral.exceptions.NotCertifiedWarning")
def test_three_hundred_problems():
    for seed in range(12, 312):
        judge(seed, CRITERIA[seed % 3])


@pytest.mark.filterwarnings("ignore::skcoral.exceptions.NotCertifiedWarning")
@pytest.mark.parametrize(
    "floors", [[0.999, 0.999, 0.85], [1 - 1e-10, 0.85, 0.85], [1 - 1e-15, 0.85, 0.999]]
)
def test_equicorrelation_with_one_column_restricted(floors):
    R = 0.7 * np.eye(3) + 0.3
    support = np.array([[1, 1, 1], [1, 1, 0], [0, 0, 1]])
    answer = decorrelate(R, floors, support=support)
    assert 0 < answer.lower_bound <= answer.objective
    assert check(answer, R).passed


@pytest.mark.parametrize("distance", [1e-3, 1e-6, 1e-9, 1e-12, 1e-15])
def test_the_frame_bound_of_one_free_column_is_a_closed_form(distance):
    """Two variables, the second fixed: the output of the first leans away as far as it may."""
    r, floor = 0.6, 1 - distance
    R = np.array([[1, r], [r, 1]])
    space = feasible_set(R, np.array([[1, 0], [1, 1]], dtype=bool), np.array([floor, 1.0]))
    # cos of the sum of both angles: floor = cos a, r = cos b, and the least square is cos²(a + b).
    least = (r * floor - np.sqrt((1 - r * r) * (1 - floor) * (1 + floor))) ** 2
    bound = frame_bound(space, tol=1e-12)
    assert bound.value == pytest.approx(least, rel=1e-9)
    assert bound.value <= least * (1 + 1e-14)
