"""The bound of a frame on parts of the caps: a tree of cuts, with a dual point for each leaf.

Every cut divides the places of one output u by ``vᵀu ≤ t`` and ``vᵀu ≥ t``, with v a unit vector
on the side of the source a. With ``c = aᵀv ≥ 0`` and ``s = ‖v - ca‖`` the whole cap lies between
``cρ - s√(1 - ρ²)`` and ``cρ + s√(1 - ρ²)``, or 1 where ``c ≥ ρ``. A leaf lies in slabs
``lo ≤ vᵀu_j ≤ hi``, and with ``M_j = N + κ_j I + Σ μ vvᵀ`` and ``z_j = λ_j a_j + Σ μ m v``,
``m = ½(lo + hi)``, its bound has

    2λ_jρ_j - κ_j + Σ μ lo·hi - z_jᵀM_j⁻¹z_j

for variable j, by ``μ (vᵀu_j - lo)(vᵀu_j - hi) ≤ 0``. The least bound of all leaves holds for all
U.

A leaf may have shares ``0 < ω_j ≤ 1``. As ``ω_iω_j ≤ 1``, twice the sum of squares is at least
``‖Σ ω_j u_j u_jᵀ‖² - Σ ω_j²``, so that variable j has ``ω_j N`` in place of N, and the terms of all
variables are added to ``νΣω_j - ½Σω_j² - ½‖N + νI‖²``.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from operator import add
from typing import Any

import numpy as np

from skcoral._arrays import Array
from skcoral.certificates.definiteness import definite, first_definite
from skcoral.certificates.enclosures import Enclosure, up_to
from skcoral.certificates.frame_bounds import from_dual, spent
from skcoral.certificates.products import Arithmetic
from skcoral.certificates.reading import numbers
from skcoral.exceptions import CertificateError
from skcoral.results import Certificate

_ROUNDING = 1e-13  # of unit lengths and right angles
_SHIFTS = (0.0, 1e-15, 1e-13, 1e-11)


def leaf_bounds(
    certificate: Certificate, rho_min: Array, A: Array, arithmetic: Arithmetic
) -> list[tuple[Enclosure, Array]]:
    """Lower bounds of D2 on the leaves that a certificate of kind "branched" proves, each with λ.

    Higher floors leave smaller caps, so a bound grows by ``2λ`` in the floors on its leaf.
    """
    tree = _Tree(certificate.arrays, rho_min, A)
    found = [(tree.bound(leaf, slabs, arithmetic), tree.lam[leaf]) for leaf, slabs in tree.leaves()]
    if not all(np.isfinite([bound.lower, bound.upper]).all() for bound, _ in found):
        raise CertificateError("a leaf proves nothing.")
    return found


class _Tree:
    """The arrays of a certificate, judged."""

    def __init__(self, arrays: Mapping[str, Array], rho_min: Array, A: Array) -> None:
        r, p = A.shape
        self.A, self.rho_min = A, rho_min
        if np.ndim(arrays["at"]) != 1 or np.ndim(arrays["mu"]) != 2:
            raise CertificateError("`at` is a list of cuts, and `mu` a table with a row per leaf.")
        cuts, parts, most = len(arrays["at"]), len(arrays["mu"]), np.shape(arrays["mu"])[1]
        self.N = numbers(arrays["N"], (parts * r, r), "`N`").reshape(parts, r, r)
        shape = (parts, p)
        self.lam = numbers(arrays["multipliers"], shape, "`multipliers`", nonnegative=True)
        self.kappa = numbers(arrays["kappa"], shape, "`kappa`")
        self.shares = np.ones(shape)
        if "shares" in arrays:
            self.shares = numbers(arrays["shares"], shape, "`shares`", nonnegative=True)
        if not ((self.shares > 0.0) & (self.shares <= 1.0)).all():
            raise CertificateError("`shares` are above zero and at most one.")
        self.mu = numbers(arrays["mu"], (parts, most), "`mu`", nonnegative=True)
        self.at = numbers(arrays["at"], (cuts,), "`at`")
        self.direction = numbers(arrays["direction"], (cuts, r), "`direction`")
        variable = numbers(arrays["variable"], (cuts,), "`variable`")
        children = numbers(arrays["children"], (cuts, 2), "`children`")
        if (
            not np.isin(variable, np.arange(p)).all()
            or not np.isin(children, np.arange(-parts, cuts)).all()
        ):
            raise CertificateError("a cut is of no variable, or leads nowhere.")
        self.variable, self.children = variable.astype(int), children.astype(int)
        if not cuts:
            raise CertificateError("there is no cut.")
        sources = A.T[self.variable]
        lengths = np.einsum("ij,ij->i", self.direction, self.direction)
        cosine = np.einsum("ij,ij->i", self.direction, sources)
        if np.abs(lengths - 1).max() > _ROUNDING or cosine.min() < -_ROUNDING:
            raise CertificateError("a direction of a cut is no unit vector towards its source.")
        # The column may miss unit length, the direction unit length, and c is rounded.
        off = (np.abs(np.einsum("ij,ij->j", A, A) - 1.0) + _ROUNDING)[self.variable]
        rho, pad = rho_min[self.variable], 4.0 * (_ROUNDING + off)
        sine = np.linalg.norm(self.direction - cosine[:, None] * sources, axis=1)
        turned = (sine + _ROUNDING) * np.sqrt((1.0 - rho) * (1.0 + rho) + 4.0 * off)
        self.lowest = cosine * rho - turned - pad
        self.highest = np.where(cosine >= rho, 1.0, cosine * rho + turned) + pad

    def leaves(self) -> list[tuple[int, list[tuple[int, float, float]]]]:
        """Each leaf with its slabs (a cut, lo, hi); every part of the tree is visited once."""
        found, stack, seen = [], [(0, [])], set()  # type: ignore[var-annotated]
        while stack:
            node, slabs = stack.pop()
            if node in seen:
                raise CertificateError("the cuts do not form a tree.")
            seen.add(node)
            if node < 0:
                found.append((-1 - node, slabs))
                continue
            j = self.variable[node]
            place = next(
                (
                    k
                    for k, (cut, _, _) in enumerate(slabs)
                    if self.variable[cut] == j
                    and np.array_equal(self.direction[cut], self.direction[node])
                ),
                len(slabs),
            )
            ends = (node, float(self.lowest[node]), float(self.highest[node]))
            cut, lo, hi = slabs[place] if place < len(slabs) else ends
            at = float(self.at[node])
            for child, side in zip(self.children[node], ((lo, at), (at, hi)), strict=True):
                stack.append((int(child), [*slabs[:place], (cut, *side), *slabs[place + 1 :]]))
        return found

    def bound(
        self, leaf: int, slabs: list[tuple[int, float, float]], arithmetic: Arithmetic
    ) -> Enclosure:
        """The bound of one leaf."""
        p = len(self.rho_min)
        N, shares = self.N[leaf], self.shares[leaf]
        if len(slabs) > self.mu.shape[1] or not np.array_equal(N, N.T):
            raise CertificateError("a leaf has more slabs than multipliers, or N is not symmetric.")
        cut = sorted({int(self.variable[k]) for k, _, _ in slabs})
        whole = np.setdiff1d(np.arange(p), cut)
        terms = []
        for j in cut:
            own = [k for k, (number, _, _) in enumerate(slabs) if self.variable[number] == j]
            terms.append(self._column(leaf, j, [slabs[k] for k in own], own, arithmetic))
        if len(whole):
            names = {"multipliers": self.lam, "kappa": self.kappa}
            arrays = {"N": N, **{name: a[leaf, whole] for name, a in names.items()}}
            given = self.rho_min[whole], self.A[:, whole], arithmetic
            weighted = None if (shares == 1.0).all() else shares[whole]
            terms.append(spent(arrays, "multipliers", *given, weighted)[0])
        return from_dual(reduce(add, terms), N, shares)

    def _column(
        self, leaf: int, j: int, slabs: list[Any], own: list[int], arithmetic: Arithmetic
    ) -> Enclosure:
        """The term of a variable in slabs: a square completed at a float vector w."""
        r = len(self.A)
        V, mu = self.direction[[cut for cut, _, _ in slabs]], self.mu[leaf, own]
        lo, hi = np.array([s[1] for s in slabs]), np.array([s[2] for s in slabs])
        middle = 0.5 * (lo + hi)
        share, lam, a = float(self.shares[leaf, j]), float(self.lam[leaf, j]), self.A[:, j]
        N = share * self.N[leaf]  # up to rounding, which radius and crude bound allow for
        size = float(np.abs(N).max() + mu.sum() + abs(self.kappa[leaf, j]))
        radius = np.full((r, r), 1e-15 * (r + len(mu)) * size)
        shifted = (float(self.kappa[leaf, j]) + shift * size for shift in _SHIFTS)
        trials = ((kappa, N + kappa * np.eye(r) + (V.T * mu) @ V) for kappa in shifted)
        (kappa, M), proof = first_definite(
            ((trial, definite(arithmetic, trial[1], radius)) for trial in trials),
            "a leaf has a matrix that is not positive definite.",
        )
        w = np.linalg.solve(M, lam * a + (mu * middle) @ V)[:, None]
        dots = arithmetic.enclosed(np.vstack([V, a, w.T]), w)[:, 0]
        t, fidelity, length = dots[: len(mu)], dots[len(mu)], dots[len(mu) + 1]
        energy = arithmetic.enclosed(w.T, self.N[leaf], w)[0, 0] * share
        # z - Mw, which a crude bound will do for
        rest = lam * a + V.T @ (mu * (middle - t.middle)) - (N @ w)[:, 0]
        crude = np.abs(rest - kappa * w[:, 0]) + 1e-14 * (r + len(mu)) * (lam + size) * max(
            1.0, float(np.abs(w).max())
        )
        square = (length - 1.0) * kappa + energy
        pull = (fidelity - float(self.rho_min[j])) * (2.0 * lam)
        # μ (vᵀw - lo)(vᵀw - hi), with 2m = lo + hi as it is
        slack = ((t - lo) * (t - hi) * mu).total()
        value: Enclosure = square - pull + slack
        return value - up_to(proof.inverse_form(crude[:, None]))
