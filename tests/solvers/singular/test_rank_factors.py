"""The bound of the rank in factor form: its formula, outputs that prove themselves, its memory."""

from __future__ import annotations

import sys
import tracemalloc

import numpy as np
import pytest

from skcoral import CORAL
from skcoral.certificates import check
from skcoral.solvers.singular.caps import on_caps
from skcoral.solvers.singular.problem import Answer, FrameProblem
from skcoral.solvers.singular.rank_bound import multipliers_of_outputs

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


@pytest.mark.parametrize("pinned", [False, True])
def test_outputs_prove_themselves(tables, pinned):
    """(★★) leaves 4e-7 open for these forty rows of 200 columns; the outputs are optimal.

    Columns held at their sources have multipliers that are large, not infinite.
    """
    A, floors = tables.factor_of(tables.factors(40, 200, 1)), np.full(200, 0.85)
    floors[::40] = 1.0 if pinned else 0.85
    answer = FrameProblem(A).solve(floors)
    assert answer.certified
    assert answer.certificate.kind == "rank"
    assert pinned or answer.certificate.arrays["kappa"].min() < 0  # no dual point of (★★)
    fresh, elsewhere = Answer(FrameProblem(A), floors), answer.U + 0.05 * np.eye(39, 200)
    fresh.offer(elsewhere)  # not stationary: its multipliers prove nothing of it
    fresh.prove("rank", multipliers_of_outputs(A, fresh.U, floors))
    assert fresh.lower_bound <= answer.objective
    assert not fresh.certified


def test_outputs_that_span_less_prove_nothing_false(tables):
    """All outputs in a plane of four dimensions: their frame operator is singular."""
    A = tables.factor_of(tables.sums(50, 5, 1, 0))
    U = np.zeros_like(A)
    U[:2] = np.random.default_rng(0).normal(size=(2, 5))
    U /= np.linalg.norm(U, axis=0)
    floors = np.minimum(np.einsum("ij,ij->j", A, U), 1.0).clip(0.0)
    answer = FrameProblem(A).solve(floors)
    before = answer.lower_bound
    answer.prove("rank", multipliers_of_outputs(A, on_caps(A, U, floors), floors))
    assert before <= answer.lower_bound <= answer.objective


def loaded(n, p, seed):
    """Five strong factors."""
    rng = np.random.default_rng(seed)
    loadings = rng.normal(size=(5, p))
    return rng.normal(size=(n, 5)) @ loadings + rng.normal(size=(n, p)) * np.sqrt(
        0.3 + rng.uniform(size=p)
    )


@pytest.fixture(scope="module")
def wide():
    """Sixty rows of 400 columns whose frame bound leaves a gap, as a fitted transformer."""
    return CORAL(0.7).fit(loaded(60, 400, 0))


def most_allocated(function):
    """The most bytes that any one line of the library allocates while the function runs."""
    most = before = 0

    def look(frame, *_):
        nonlocal most, before
        if "skcoral" not in frame.f_code.co_filename:
            return None
        most = max(most, tracemalloc.get_traced_memory()[1] - before)
        tracemalloc.reset_peak()
        before = tracemalloc.get_traced_memory()[0]
        return look

    outer = sys.gettrace()
    tracemalloc.start()
    sys.settrace(look)
    try:
        function()
    finally:
        sys.settrace(outer)
        tracemalloc.stop()
    return most


def test_no_array_of_all_pairs_is_made(wide):
    """Neither where the gap of the frame bound is closed, nor where it is checked."""
    X, matrix = loaded(60, 400, 0), 8 * 400**2
    assert wide.result_.certificate.kind == "rank"
    assert most_allocated(lambda: CORAL(0.7).fit(X)) < matrix
    assert most_allocated(lambda: check(wide.result_, wide.correlation_)) < matrix
    shapes = {a.shape for a in wide.result_.certificate.arrays.values()}
    assert shapes == {(59, 400), (400,)}
