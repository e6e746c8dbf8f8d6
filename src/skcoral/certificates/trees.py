"""Trees of cuts: vectors in slabs, and what a quadratic form is at least for such vectors.

Every cut divides the places of a unit vector x by ``vᵀx ≤ t`` and ``vᵀx ≥ t``, with a unit vector
v. A leaf lies in slabs ``lo ≤ vᵀx ≤ hi``, where ``μ (vᵀx - lo)(vᵀx - hi) ≤ 0`` for ``μ ≥ 0``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from skcoral._arrays import Array
from skcoral.certificates.definiteness import definite, first_definite
from skcoral.certificates.enclosures import Enclosure, up_to
from skcoral.certificates.inequalities import Floors
from skcoral.certificates.products import Arithmetic
from skcoral.certificates.reading import numbers
from skcoral.exceptions import CertificateError

ROUNDING = 1e-13  # of unit lengths and right angles
_SHIFTS = (0.0, 1e-15, 1e-13, 1e-11)


@dataclass(frozen=True)
class Slab:
    """``lo ≤ vᵀx ≤ hi`` for the vector of one variable."""

    variable: int
    direction: Array
    lo: float
    hi: float


class Tree:
    """The cuts of a certificate, judged: ``at``, ``direction``, ``children``, and μ of the leaves.

    ``n`` is the dimension of the vectors, and ``variable`` says whose each cut is.
    """

    def __init__(
        self, arrays: Mapping[str, Array], n: int, variable: Array, variables: int
    ) -> None:
        if np.ndim(arrays["at"]) != 1 or np.ndim(arrays["mu"]) != 2:
            raise CertificateError("`at` is a list of cuts, and `mu` a table with a row per leaf.")
        cuts, self.parts = len(arrays["at"]), len(arrays["mu"])
        if not cuts:
            raise CertificateError("there is no cut.")
        most = np.shape(arrays["mu"])[1]
        self.mu = numbers(arrays["mu"], (self.parts, most), "`mu`", nonnegative=True)
        self.at = numbers(arrays["at"], (cuts,), "`at`")
        self.direction = unit_vectors(arrays["direction"], (cuts, n), "`direction`")
        variable = numbers(variable, (cuts,), "`variable`")
        children = numbers(arrays["children"], (cuts, 2), "`children`")
        if (
            not np.isin(variable, np.arange(variables)).all()
            or not np.isin(children, np.arange(-self.parts, cuts)).all()
        ):
            raise CertificateError("a cut is of no variable, or leads nowhere.")
        self.variable, self.children = variable.astype(int), children.astype(int)

    def leaves(
        self, lowest: Array, highest: Array, start: tuple[Slab, ...] = ()
    ) -> list[tuple[int, list[Slab]]]:
        """Each leaf with its slabs; every part of the tree is visited once.

        ``lowest`` and ``highest`` hold, for each cut, all that ``vᵀx`` can be.
        """
        found, stack, seen = [], [(0, list(start))], set()
        while stack:
            node, slabs = stack.pop()
            if node in seen:
                raise CertificateError("the cuts do not form a tree.")
            seen.add(node)
            if node < 0:
                if len(slabs) > self.mu.shape[1]:
                    raise CertificateError("a leaf has more slabs than multipliers.")
                found.append((-1 - node, slabs))
                continue
            j, v, at = int(self.variable[node]), self.direction[node], float(self.at[node])
            place = next(
                (
                    k
                    for k, slab in enumerate(slabs)
                    if slab.variable == j and np.array_equal(slab.direction, v)
                ),
                len(slabs),
            )
            whole = Slab(j, v, float(lowest[node]), float(highest[node]))
            old = slabs[place] if place < len(slabs) else whole
            for child, ends in zip(self.children[node], ((old.lo, at), (at, old.hi)), strict=True):
                stack.append((int(child), [*slabs[:place], Slab(j, v, *ends), *slabs[place + 1 :]]))
        return found


def unit_vectors(value: Array, shape: tuple[int, ...], what: str) -> Array:
    """Return vectors that are proved to have unit length but for a rounding."""
    vectors = numbers(value, shape, what)
    if np.abs(np.sum(vectors * vectors, axis=-1) - 1).max() > ROUNDING:
        raise CertificateError(f"{what} of a cut is no unit vector.")
    return vectors


def least_in_slabs(
    N: Array,
    kappa: float,
    pull: tuple[float, Array, Floors],
    slabs: list[Slab],
    mu: Array,
    arithmetic: Arithmetic,
) -> Enclosure:
    """The least of ``xᵀNx + κ(‖x‖² - 1) - 2λ(aᵀx - ρ) + Σ μ (vᵀx - lo)(vᵀx - hi)`` over all x.

    ``pull`` holds λ, a and ρ. The square is completed at a float vector w.
    """
    n, (lam, a, floor) = len(N), pull
    V = np.array([slab.direction for slab in slabs])
    lo, hi = np.array([slab.lo for slab in slabs]), np.array([slab.hi for slab in slabs])
    middle = 0.5 * (lo + hi)
    size = float(np.abs(N).max() + mu.sum() + abs(kappa))
    radius = np.full((n, n), 1e-15 * (n + len(mu)) * size)
    shifted = (kappa + shift * size for shift in _SHIFTS)
    trials = ((k, N + k * np.eye(n) + (V.T * mu) @ V) for k in shifted)
    (kappa, M), proof = first_definite(
        ((trial, definite(arithmetic, trial[1], radius)) for trial in trials),
        "a leaf has a matrix that is not positive definite.",
    )
    w = np.linalg.solve(M, lam * a + (mu * middle) @ V)[:, None]
    dots = arithmetic.enclosed(np.vstack([V, a, w.T]), w)[:, 0]
    t, fidelity, length = dots[: len(mu)], dots[len(mu)], dots[len(mu) + 1]
    energy = arithmetic.enclosed(w.T, N, w)[0, 0]
    # z - Mw, which a crude bound will do for
    rest = lam * a + V.T @ (mu * (middle - t.middle)) - (N @ w)[:, 0]
    largest = max(1.0, float(np.abs(w).max()), float(np.abs(middle).max()))
    rounding = 1e-15 * (n + len(mu) + 4) ** 2 * (lam + size) * largest
    crude = np.abs(rest - kappa * w[:, 0]) + rounding
    square = (length - 1.0) * kappa + energy
    force = (fidelity - floor.near - floor.rest) * (2.0 * lam)
    # μ (vᵀw - lo)(vᵀw - hi), with 2m = lo + hi as it is
    slack = ((t - lo) * (t - hi) * mu).total()
    value: Enclosure = square - force + slack
    return value - up_to(proof.inverse_form(crude[:, None]))
