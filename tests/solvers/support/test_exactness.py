"""When a support allows exact decorrelation: patterns, precision matrices and bounds."""

import numpy as np
import pandas as pd
import pytest

from skcoral import decorrelate
from skcoral.solvers.support import exactness


def ar1(p, r=0.7):
    return r ** np.abs(np.subtract.outer(np.arange(p), np.arange(p)))


def from_precision(K):
    S = np.linalg.inv(K)
    d = np.sqrt(np.diag(S))
    return S / np.outer(d, d)


def tree(p, seed=0):
    """A Gaussian tree in random labels: its precision matrix has the edges of the tree."""
    rng = np.random.default_rng(seed)
    order = rng.permutation(p)
    K = np.eye(p) * p
    edges = []
    for k in range(1, p):
        i, j = order[k], order[rng.integers(k)]
        K[i, j] = K[j, i] = rng.choice([-1, 1]) * rng.uniform(0.5, 1.5)
        edges.append((int(i), int(j)))
    return from_precision(K), edges


def assert_proof(R, mask, verdict):
    T = verdict.T
    np.testing.assert_allclose(T.T @ R @ T, np.eye(len(R)), atol=1e-10)
    assert not T[~mask].any()


def test_a_chain_needs_its_neighbours_on_one_side_at_least():
    R = ar1(7)
    mask = np.eye(7, dtype=bool) | np.eye(7, k=1, dtype=bool)
    for half in (mask, mask.T, np.ones_like(mask)):
        verdict = exactness(R, half)
        assert verdict.verdict == "possible"
        assert_proof(R, half, verdict)


@pytest.mark.parametrize("seed", range(5))
def test_trees_are_solved_within_their_edges(seed):
    R, edges = tree(12, seed)
    verdict = exactness(R, edges)
    assert verdict.verdict == "possible"
    mask = np.eye(12, dtype=bool)
    for i, j in edges:
        mask[i, j] = mask[j, i] = True
    assert_proof(R, mask, verdict)


@pytest.mark.parametrize("seed", range(3))
def test_a_tree_without_one_edge_is_impossible(seed):
    R, edges = tree(8, seed)
    leaf_edges = [e for e in edges if sum(e[0] in f or e[1] in f for f in edges) <= 3]
    verdict = exactness(R, [e for e in edges if e != leaf_edges[0]])
    assert verdict.verdict == "impossible"
    assert verdict.bound > 0


def test_an_order_with_fill_in_is_found():
    """A four-cycle is not chordal: one diagonal entry of fill-in must be allowed."""
    K = 4 * np.eye(4)
    for i, j in ((0, 1), (1, 2), (2, 3), (3, 0)):
        K[i, j] = K[j, i] = 1.0
    R = from_precision(K)
    cycle = [(0, 1), (1, 2), (2, 3), (3, 0)]
    assert exactness(R, [*cycle, (1, 3)]).verdict == "possible"
    assert exactness(R, cycle).verdict != "possible"


def test_the_papers_support_is_impossible(paper_system):
    R, mask = paper_system
    verdict = exactness(pd.DataFrame(R), mask)
    assert verdict.verdict == "impossible"
    assert 0.2114 * 0.999 <= verdict.bound <= 0.21141  # the best frame bound is 0.211406
    i, j = (int(name) for name in verdict.pair)
    assert not (mask[i] & mask[j]).any()
    K = np.linalg.inv(R)
    partial = -K[i, j] / np.sqrt(K[i, i] * K[j, j])
    assert verdict.partial_correlation == pytest.approx(partial, abs=1e-12)
    assert verdict.bound >= 0.5 * partial**2
    assert "impossible" in repr(verdict)


def test_two_variables_in_closed_form():
    """With a diagonal support nothing moves: D2 = r², and the frame bound says so."""
    for r in (0.9, -0.3, 1e-3):
        verdict = exactness([[1, r], [r, 1]], np.eye(2, dtype=bool))
        assert verdict.verdict == "impossible"
        assert r**2 / (1 + r**2) * (1 - 1e-12) <= verdict.bound <= r**2 * (1 + 1e-12)
    assert exactness(np.eye(2), np.eye(2, dtype=bool)).verdict == "possible"


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_impossible_supports_have_a_bound_that_no_answer_beats():
    """Whatever is called impossible is so, by a bound below the best that a search finds."""
    mask = np.eye(4, dtype=bool)
    for k in (1, 2, -3):
        mask |= np.eye(4, k=k, dtype=bool)
    verdicts = []
    for seed in range(8):
        A = np.random.default_rng(seed).normal(size=(4, 4)) + 0.8 * np.eye(4)
        R = from_precision(A @ A.T)
        answer = exactness(R, mask)
        verdicts.append(answer.verdict)
        best = decorrelate(R, 0.0, support=mask, n_starts=5).objective
        if answer.verdict == "impossible":
            assert 0 < answer.bound <= best + 1e-9
        elif answer.verdict == "possible":
            np.testing.assert_allclose(answer.T.T @ R @ answer.T, np.eye(4), atol=1e-9)
            assert not answer.T[~mask].any()
    assert "impossible" in verdicts


def test_supports_that_carry_an_exact_transformation_are_never_called_impossible():
    """R is made from T, so T itself is the proof; only its digits are rounded away."""
    rng = np.random.default_rng(0)
    for _ in range(40):
        p = int(rng.integers(4, 8))
        mask = (rng.random((p, p)) < 0.45) | np.eye(p, dtype=bool)
        T = np.where(mask, rng.normal(size=(p, p)), 0.0) + 2 * np.eye(p)
        C = from_precision(T @ T.T)
        assert exactness(C, mask).verdict != "impossible"
