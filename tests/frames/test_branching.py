"""Branch and bound on the caps: bounds of parts, global optima of small tables, and its proof."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import cvxpy as cp
import numpy as np
import pytest

from skcoral import decorrelate
from skcoral.certificates import check, prove
from skcoral.certificates.branches import _ends, cap_leaves
from skcoral.certificates.products import Floats
from skcoral.certificates.trees import Tree
from skcoral.exceptions import CertificateError
from skcoral.frames.branching import Slab
from skcoral.frames.cap_cuts import cut_caps, limits
from skcoral.frames.caps import on_caps
from skcoral.frames.descent import squares
from skcoral.frames.outcome import certificate_of
from skcoral.frames.parts import Parts
from skcoral.frames.solver import solve_squares
from skcoral.results import Certificate

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


def totals(p, seed):
    """A factor of p - 1 columns and their sum."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(4 * p, p - 1)) @ rng.normal(size=(p - 1, p - 1))
    X = np.column_stack([X, X.sum(axis=1)])
    R = np.corrcoef(X.T)
    values, vectors = np.linalg.eigh(R)
    A = np.sqrt(values[1:])[:, None] * vectors[:, 1:].T
    return A / np.linalg.norm(A, axis=0), R


def slab(A, j, lo, hi, seed):
    v = np.random.default_rng(seed).normal(size=len(A))
    v -= (A[:, j] @ v) * A[:, j]
    return Slab(j, v / np.linalg.norm(v), lo, hi)


def relaxation(A, floors, slabs):
    """½‖ΣY_j‖² - ½p over Y_j ⪰ u_ju_jᵀ of unit trace, with the product of each slab."""
    r, p = A.shape
    # a floor of one leaves no interior: such outputs are constants
    X = {j: cp.Variable((r + 1, r + 1), PSD=True) for j in range(p) if floors[j] < 1}
    constraints = [x[0, 0] == 1 for x in X.values()]
    constraints += [cp.trace(x[1:, 1:]) == 1 for x in X.values()]
    constraints += [A[:, j] @ x[0, 1:] >= floors[j] for j, x in X.items()]
    for s in slabs:
        u, Y, v = X[s.variable][0, 1:], X[s.variable][1:, 1:], s.direction
        constraints.append(v @ Y @ v - (s.lo + s.hi) * (v @ u) + s.lo * s.hi <= 0)
    pinned = A[:, floors >= 1]
    F = pinned @ pinned.T + sum(x[1:, 1:] for x in X.values())
    problem = cp.Problem(cp.Minimize(0.5 * cp.sum_squares(F)), constraints)
    return problem.solve(solver=cp.CLARABEL) - 0.5 * p


@pytest.mark.parametrize("floors", [0.9, [0.5, 0.99, 0.8, 0.9], [0.9, 0.9, 1.0, 0.7]])
def test_bound_of_a_part_is_its_relaxation(floors):
    A, _ = totals(4, 0)
    floors = np.broadcast_to(np.asarray(floors), 4).astype(float)
    parts = (slab(A, 0, 0.05, 0.3, 1), slab(A, 0, -0.2, 0.1, 2), slab(A, 3, -0.4, 0.0, 3))
    stack = [(), parts[:1], parts]
    found = Parts(A, floors, stack).maximise(enough=1e6, share=0.0, goal=1e-9)
    for slabs, point in zip(stack, found, strict=True):
        assert len(point.mu) == len(slabs)
        assert point.bound == pytest.approx(relaxation(A, floors, slabs), abs=1e-6)


def test_derivatives_of_the_merit():
    A, _ = totals(4, 1)
    both = slab(A, 1, -0.1, 0.3, 0), slab(A, 1, 0.0, 0.4, 5)
    parts = Parts(A, np.full(4, 0.9), [both, both[:1]])
    on = np.arange(2)
    x, tau = parts.start(None)
    x = x + 0.05 * np.random.default_rng(0).uniform(size=x.shape)
    gradient, upper = parts._derivatives(on, parts._at(on, x, tau))
    # what fixes N + cI against κ - c, without any effect on the merit
    same = np.r_[np.eye(3)[np.triu_indices(3)], -np.ones(4), np.zeros(6)]
    for k, e in enumerate(1e-5 * np.eye(x.shape[1])):
        ends = [parts._at(on, x + s * e, tau) for s in (1, -1)]
        slopes = [parts._derivatives(on, end)[0] for end in ends]
        expected = (ends[0].merit - ends[1].merit) / 2e-5
        np.testing.assert_allclose(gradient[:, k], expected, atol=1e-6)
        hessian = np.triu(upper[0]) + np.triu(upper[0], 1).T - np.outer(same, same)
        np.testing.assert_allclose(-hessian[k], (slopes[0] - slopes[1])[0] / 2e-5, atol=1e-5)


def best_of_many(A, floors, starts):
    """Plain projected gradients from random places, all at once."""
    r, p = A.shape
    rng = np.random.default_rng(9)
    best = np.inf
    for _ in range(starts):
        U = on_caps(A, rng.normal(size=(r, p)) + rng.uniform(0, 3) * A, floors)
        for _ in range(300):
            U = on_caps(A, U - 0.3 * r / p * (U @ U.T @ U), floors)
        best = min(best, squares(U))
    return best


@pytest.mark.parametrize(("p", "seed", "floor"), [(4, 0, 0.85), (4, 1, 0.9), (4, 2, 0.95)])
def test_small_totals_are_solved(p, seed, floor):
    A, R = totals(p, seed)
    result = decorrelate(R, floor)
    assert result.status == "optimal"
    verdict = check(result, R)
    assert verdict.passed, verdict.problems
    best = best_of_many(A, np.full(p, floor), 15)
    assert result.objective == pytest.approx(best, rel=1e-5)
    assert best >= result.lower_bound


def test_branching_never_passes_a_feasible_value():
    """The parts cover the caps: whatever is feasible lies above the least of their bounds."""
    A, _ = totals(5, 3)
    rng = np.random.default_rng(0)
    floors = np.array([0.5, 0.9, 0.95, 0.99, 1.0])
    start = on_caps(A, A, floors)
    found = cut_caps(A, floors, start, squares(start), goal=1e-3, max_parts=40)
    for _ in range(200):
        U = on_caps(A, A + rng.normal(size=A.shape) * rng.uniform(0, 2), floors)
        assert squares(U) >= found.lower_bound - 1e-9


@pytest.mark.parametrize("floor", [0.0, 0.2, 0.7, 1.0])
def test_limits_of_a_cap_in_any_direction(floor):
    """First slabs hold the whole cap and touch it on both sides, in the search and in the check."""
    rng = np.random.default_rng(1)
    a, cap = np.eye(3)[0], rng.normal(size=(3, 40_000))
    cap[0] = rng.uniform(floor, 1.0, size=cap.shape[1])
    cap[1:] *= np.sqrt(1 - cap[0] ** 2) / np.linalg.norm(cap[1:], axis=0)
    for turn in (0.0, 0.3, 0.8, 1.2, np.pi / 2):
        v = np.array([np.cos(turn), np.sin(turn), 0.0])
        lowest, highest = limits(a, v, floor)
        assert lowest - 1e-12 <= (v @ cap).min() <= lowest + 1e-2
        assert highest - 1e-2 <= (v @ cap).max() <= highest + 1e-12
        arrays = {
            "at": np.zeros(1),
            "mu": np.zeros((2, 1)),
            "direction": v[None, :],
            "variable": np.zeros(1),
            "children": np.array([[-1.0, -2.0]]),
        }
        tree = Tree(arrays, 3, arrays["variable"], 3)
        below, above = _ends(tree, np.full(3, floor), np.eye(3))
        assert lowest - 1e-6 <= below[0] <= lowest
        assert highest <= above[0] <= highest + 1e-6


def test_mirror_images_are_separated():
    """The third output alone is free; its least residual by a search over all its angles."""
    angles = np.radians([0.0, 80.0, 0.0])
    sources = np.array([np.cos(angles), np.sin(angles)])
    R = sources.T @ sources
    turns = np.linspace(-np.arccos(0.2), np.arccos(0.2), 20_001)
    total = np.exp(2j * angles[:2]).sum() + np.exp(2j * turns)
    least = ((9 + np.abs(total).min() ** 2) / 2 - 3) / 2
    result = decorrelate(R, [1.0, 1.0, 0.2])
    assert (result.status, result.certificate.kind) == ("optimal", "branched")
    assert result.objective == pytest.approx(least, abs=1e-6)
    assert check(result, R).passed


def test_a_bound_that_needs_no_cut_is_kept():
    """Beside floors of one, the bound of all caps may come from the search by parts alone."""
    rng = np.random.default_rng(2)
    X = rng.normal(size=(5, 2)) @ rng.normal(size=(2, 6)) + 0.7 * rng.normal(size=(5, 6))
    R, floors = np.corrcoef(X.T), np.array([1.0, 0.3, 0.3, 0.3, 0.95, 1.0])
    values, vectors = np.linalg.eigh(R)
    A = np.sqrt(values[2:])[:, None] * vectors[:, 2:].T
    result = decorrelate(R, floors)
    assert (result.status, result.certificate.kind) == ("optimal", "frame")
    assert result.objective == pytest.approx(relaxation(A, floors, ()), abs=1e-6)
    assert check(result, R).passed


@cache
def branched():
    _, R = totals(4, 1)
    result = decorrelate(R, 0.9)
    assert result.certificate.kind == "branched"
    return result, R


def test_the_tree_is_proved_in_ball_arithmetic():
    pytest.importorskip("flint")
    result, R = branched()
    proof = prove(result, R)
    assert proof.rigorous
    assert proof.passed, proof.problems
    assert proof.gap <= 1e-7


def test_every_leaf_proves_what_the_search_says(tables):
    """Caps of very different widths, where many cuts refine a slab that is there already."""
    A = tables.factor_of(tables.factors(6, 6, 1))
    floors = np.array([0.9, 0.9, 0.99, 1.0, 0.3, 0.5])
    start = solve_squares(A, floors, starts=1)
    answer = cut_caps(A, floors, start.U, start.objective, goal=1e-7, max_parts=300)
    certificate = certificate_of(answer, A, "squared")
    bounds = cap_leaves(certificate.arrays, floors, A, Floats(parts=3))
    least, lam = min(bounds, key=lambda leaf: leaf[0].lower)
    assert least.lower == pytest.approx(answer.lower_bound, rel=1e-7)
    np.testing.assert_allclose(2 * lam, answer.slopes)


def test_altered_trees_are_refused():
    result, R = branched()
    arrays = dict(result.certificate.arrays)
    leaf = int(np.argmax(arrays["children"] < 0))
    elsewhere = arrays["children"].copy()
    elsewhere.flat[leaf] = elsewhere.flat[np.flatnonzero(elsewhere.ravel() < 0)[1]]
    wrong = {
        "at": arrays["at"] + 0.05,
        "direction": np.roll(arrays["direction"], 1, axis=1),
        "children": arrays["children"][:, ::-1],
        "mu": -arrays["mu"],
        "N": 1.01 * arrays["N"],
        "kappa": 0.99 * arrays["kappa"],
        "variable": (arrays["variable"] + 1) % 4,
        "multipliers": 1.01 * arrays["multipliers"],
    }
    for name, value in [*wrong.items(), ("children", elsewhere)]:
        forged = Certificate("branched", {**arrays, name: value}, result.certificate.info)
        try:
            passed = check(replace(result, certificate=forged), R).passed
        except CertificateError:
            passed = False
        assert not passed, name


def test_prices_are_those_of_the_lowest_leaf():
    """A leaf with a higher bound has other multipliers; they are no slope of the bound."""
    result, R = branched()
    lam = result.certificate.arrays["multipliers"]
    far = int(np.argmax(np.abs(lam - result.weights).max(axis=1)))
    assert np.abs(lam[far] - result.weights).max() > 0.1
    lie = replace(result, weights=lam[far], prices=2 * lam[far])
    wrong = {claim.name for claim in check(lie, R).claims if not claim.holds}
    assert wrong == {"prices", "weights"}


@pytest.mark.parametrize("name", ["at", "mu", "variable", "children", "direction", "N", "kappa"])
def test_parts_of_other_shapes_are_refused_with_a_message(name):
    result, R = branched()
    arrays = dict(result.certificate.arrays)
    for wrong in (np.float64(1.0), np.ones(1), np.ones((1, 1)), np.ones((2, 2, 2)), np.zeros(0)):
        forged = Certificate("branched", {**arrays, name: wrong}, result.certificate.info)
        with pytest.raises(CertificateError):
            check(replace(result, certificate=forged), R)


def test_leaves_that_are_not_checked_prove_nothing():
    """An asymmetric N, fewer multipliers than slabs, numbers that are no cuts."""
    result, R = branched()
    arrays = dict(result.certificate.arrays)
    skew = arrays["N"].copy()
    skew[0, 1] += 1e-3
    wrong = [
        ("N", skew, "not symmetric"),
        ("mu", np.ascontiguousarray(arrays["mu"][:, :1]), "more slabs"),
        ("multipliers", -arrays["multipliers"], "negative"),
        ("variable", arrays["variable"] + 0.5, "no variable"),
        ("variable", arrays["variable"] - 10, "no variable"),
        ("children", arrays["children"] + 0.5, "leads nowhere"),
        ("children", np.zeros_like(arrays["children"]), "tree"),
        ("direction", 1.001 * arrays["direction"], "unit vector"),
        ("direction", -arrays["direction"], "towards its source"),
        ("kappa", arrays["kappa"] - 1e3, "definite|negative"),
    ]
    for name, value, words in wrong:
        forged = Certificate("branched", {**arrays, name: value}, result.certificate.info)
        with pytest.raises(CertificateError, match=words):
            check(replace(result, certificate=forged), R)
