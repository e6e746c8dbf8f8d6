"""The bound on each part of the caps against its formula: a tree of cuts, random dual points."""

from __future__ import annotations

from typing import Any

import flint
import numpy as np
import pytest

from skcoral.certificates.frame_claims import leaf_bounds
from skcoral.certificates.products import PRECISION, Balls, Floats
from skcoral.exceptions import CertificateError
from skcoral.results import Certificate

r, p, LEAVES = 3, 4, 5
RNG = np.random.default_rng(2)
A = RNG.normal(size=(r, p))
A /= np.linalg.norm(A, axis=0)
RHO = np.array([0.9, 0.6, 0.8, 0.3])
# The second cut divides the first slab again, the third is in another direction, the fourth is of
# another variable; a leaf k is the child -1 - k.
VARIABLE, CHILDREN = [1, 1, 1, 3], [[1, -1], [-2, 2], [3, -3], [-4, -5]]
SLABS = {0: [0], 1: [0], 2: [0, 2], 3: [0, 2, 3], 4: [0, 2, 3]}  # the first cut of each slab


def across(j: int, turn: float) -> np.ndarray:
    """A unit vector so far from the source j, on its side."""
    v = RNG.normal(size=r)
    v -= (v @ A[:, j]) * A[:, j]
    return np.cos(turn) * A[:, j] + np.sin(turn) * v / np.linalg.norm(v)


FIRST = across(1, 0.4)
DIRECTION = np.array([FIRST, FIRST, across(1, 1.4), across(3, 1.0)])
AT = np.array([0.7, 0.5, 0.1, 0.4])


def spd(seed: int) -> np.ndarray:
    B = np.random.default_rng(seed).normal(size=(r, r))
    return B @ B.T / r + 0.2 * np.eye(r)


DUAL = {
    "N": np.vstack([spd(leaf) for leaf in range(LEAVES)]),
    "multipliers": RNG.uniform(0.1, 1.0, (LEAVES, p)),
    "kappa": RNG.uniform(0.1, 0.5, (LEAVES, p)) * [1, -0.2, 1, 1],  # N and μ make up for it
    "mu": RNG.uniform(0.1, 1.0, (LEAVES, 3)),
    "at": AT,
    "direction": DIRECTION,
    "variable": np.array(VARIABLE, dtype=float),
    "children": np.array(CHILDREN, dtype=float),
}


def certificate(**changes: Any) -> Certificate:
    arrays = {"factor": A, **DUAL, **changes}
    return Certificate("branched", arrays, {"rank": r, "criterion": "squared"})


def cap(cut: int) -> tuple[float, float]:
    """Where a cap lies in a direction: by the angles of the cap and of the direction."""
    turn = np.arccos(np.clip(DIRECTION[cut] @ A[:, VARIABLE[cut]], -1, 1))
    wide = np.arccos(RHO[VARIABLE[cut]])
    return float(np.cos(turn + wide)), float(np.cos(max(turn - wide, 0.0)))


def ends(leaf: int) -> list[tuple[int, float, float]]:
    """The slabs of each leaf, by hand."""
    low, high = cap(0)
    first = {0: (0.7, high), 1: (low, 0.5)}.get(leaf, (0.5, 0.7))
    out = [(0, *first)]
    if leaf >= 2:
        low, high = cap(2)
        out.append((2, *((0.1, high) if leaf == 2 else (low, 0.1))))
    if leaf >= 3:
        low, high = cap(3)
        out.append((3, *((low, 0.4) if leaf == 3 else (0.4, high))))
    return out


def formula(leaf: int) -> float:
    """νp - ½p - ½‖N + νI‖² + Σ_j (2λρ - κ + Σ μ lo·hi - zᵀM⁻¹z)."""
    N = DUAL["N"][r * leaf : r * (leaf + 1)]
    lam, kappa, mu = (DUAL[name][leaf] for name in ("multipliers", "kappa", "mu"))
    nu = (p - np.trace(N)) / r
    value = nu * p - 0.5 * p - 0.5 * np.sum((N + nu * np.eye(r)) ** 2)
    for j in range(p):
        M, z = N + kappa[j] * np.eye(r), lam[j] * A[:, j]
        value += 2 * lam[j] * RHO[j] - kappa[j]
        for weight, (cut, low, high) in zip(mu, ends(leaf), strict=False):
            if VARIABLE[cut] == j:
                v = DIRECTION[cut]
                M, z = M + weight * np.outer(v, v), z + weight * 0.5 * (low + high) * v
                value += weight * low * high
        assert np.linalg.eigvalsh(M)[0] > 0
        value -= z @ np.linalg.solve(M, z)
    return float(value)


@pytest.mark.parametrize("kind", ["two", "three", "balls"])
def test_leaves(kind: str) -> None:
    before, flint.ctx.prec = flint.ctx.prec, PRECISION
    try:
        arithmetic = {"two": Floats(2), "three": Floats(3), "balls": Balls(flint)}[kind]
        found = leaf_bounds(certificate(), RHO, A, arithmetic)
    finally:
        flint.ctx.prec = before
    assert len(found) == LEAVES
    by_multipliers = {lam.tobytes(): bound for bound, lam in found}
    for leaf in range(LEAVES):
        bound, wanted = by_multipliers[DUAL["multipliers"][leaf].tobytes()], formula(leaf)
        assert abs(bound.lower - wanted) < 1e-11
        assert abs(bound.upper - wanted) < 1e-11
        assert bound.lower < bound.upper


@pytest.mark.parametrize("factor", [0.9, 1.1])
def test_a_square_that_is_not_completed_costs_its_distance(
    monkeypatch: pytest.MonkeyPatch, factor: float
) -> None:
    """Solutions that a library gives wrong make the bound of a part weaker, never false."""
    wanted = {DUAL["multipliers"][leaf].tobytes(): formula(leaf) for leaf in range(LEAVES)}
    true = np.linalg.solve
    monkeypatch.setattr(np.linalg, "solve", lambda M, z: factor * true(M, z))
    for bound, lam in leaf_bounds(certificate(), RHO, A, Floats(2)):
        assert bound.lower < wanted[lam.tobytes()] - 1e-3
        assert wanted[lam.tobytes()] <= bound.upper + 1e-11


def test_trees_that_are_none() -> None:
    """Cuts of no variable, that lead nowhere or in a circle, and dual points that do not fit."""
    children = np.array(CHILDREN, dtype=float)
    for changes, words in (
        ({"variable": np.array([1.0, 1, 1, 4])}, "of no variable"),
        ({"variable": np.array([1.0, 1, 1, 0.5])}, "of no variable"),
        ({"children": np.where(children == 3, 4, children)}, "leads nowhere"),
        ({"children": np.where(children == -5, -6, children)}, "leads nowhere"),
        ({"children": np.where(children == 3, 0, children)}, "do not form a tree"),
        ({"children": np.where(children == -5, -4, children)}, "do not form a tree"),
        ({"mu": DUAL["mu"][:, :2]}, "more slabs than multipliers"),
        ({"mu": -DUAL["mu"]}, "negative"),
        ({"multipliers": -DUAL["multipliers"]}, "negative"),
        ({"kappa": DUAL["kappa"] - 9.0 * np.eye(p)[1]}, "not positive definite"),
        ({"at": AT[:, None]}, "list of cuts"),
        ({"mu": DUAL["mu"][0]}, "list of cuts"),
        ({"direction": DIRECTION * (1 + 1e-12)}, "no unit vector"),
        ({"direction": DIRECTION * [[-1], [1], [1], [1]]}, "towards its source"),
        ({"N": DUAL["N"] + np.tile(np.triu(np.ones((r, r)), 1), (LEAVES, 1))}, "not symmetric"),
        (
            {
                "multipliers": 1e100 * DUAL["multipliers"],
                **{name: 1e-100 * DUAL[name] for name in ("N", "kappa", "mu")},
            },
            "proves nothing",
        ),
    ):
        with pytest.raises(CertificateError, match=words), np.errstate(all="ignore"):
            leaf_bounds(certificate(**changes), RHO, A, Floats(2))
    none: dict[str, Any] = {"at": np.zeros(0), "variable": np.zeros(0)}
    none |= {"direction": np.zeros((0, r)), "children": np.zeros((0, 2))}
    with pytest.raises(CertificateError, match="no cut"):
        leaf_bounds(certificate(**none), RHO, A, Floats(2))
