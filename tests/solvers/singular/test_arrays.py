"""The same algebra in another array library: the strict reference of the array API standard."""

from __future__ import annotations

import numpy as np
import pytest

from skcoral import decorrelate, threshold
from skcoral.solvers.singular.dual import least_squares
from skcoral.solvers.singular.problem import FrameProblem

xp = pytest.importorskip("array_api_strict")

pytestmark = [
    pytest.mark.filterwarnings("ignore::skcoral.exceptions.SingularCorrelationWarning"),
    pytest.mark.filterwarnings("ignore::skcoral.exceptions.NotCertifiedWarning"),
]


@pytest.mark.parametrize("floor", [0.5, 0.95, 0.99, 1.0])
def test_the_solver_stays_in_the_library_of_its_factor(tables, floor):
    A = tables.factor_of(tables.factors(12, 40))
    floors = np.full(40, floor)
    there, here = (FrameProblem(factor).solve(floors) for factor in (xp.asarray(A), A))
    U, _, _ = least_squares(xp.asarray(A), floors, tol=1e-9, max_iter=200)
    assert type(U).__module__.startswith("array_api_strict")
    assert there.objective == pytest.approx(here.objective, rel=1e-8)
    assert there.lower_bound == pytest.approx(here.lower_bound, rel=1e-8)
    assert (A * there.U).sum(axis=0).min() >= floor - 1e-12


def test_singular_matrices_of_another_library(tables):
    R = np.corrcoef(tables.noise(10, 25).T)
    for floor in (0.6, 0.99):
        there, here = decorrelate(xp.asarray(R), floor), decorrelate(R, floor)
        assert isinstance(there.T, np.ndarray)
        assert there.status == here.status == "optimal"
        assert there.objective == pytest.approx(here.objective, rel=1e-8)
    assert threshold(xp.asarray(R)).upper == pytest.approx(threshold(R).upper, abs=1e-7)
