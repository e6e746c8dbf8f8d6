"""The bound of a frame on parts of the caps: a tree of cuts, with a dual point for each leaf.

A cut of the output u of a source a has its direction v on the side of a. With ``c = aᵀv ≥ 0`` and
``s = ‖v - ca‖`` the whole cap lies between ``cρ - s√(1 - ρ²)`` and ``cρ + s√(1 - ρ²)``, or 1 where
``c ≥ ρ``. With ``M_j = N + κ_j I + Σ μ vvᵀ`` and ``z_j = λ_j a_j + Σ μ ½(lo + hi) v``, the bound of
a leaf has

    2λ_jρ_j - κ_j + Σ μ lo·hi - z_jᵀM_j⁻¹z_j

for variable j. The least bound of all leaves holds for all U.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from operator import add

import numpy as np

from skcoral._arrays import Array
from skcoral.certificates.enclosures import Enclosure
from skcoral.certificates.frame_bounds import floors_of_columns, from_dual, spent
from skcoral.certificates.products import Arithmetic
from skcoral.certificates.reading import numbers
from skcoral.certificates.trees import ROUNDING, Slab, Tree, least_in_slabs
from skcoral.exceptions import CertificateError


def cap_leaves(
    arrays: Mapping[str, Array], rho_min: Array, A: Array, arithmetic: Arithmetic
) -> list[tuple[Enclosure, Array]]:
    """Lower bounds of D2 on the leaves that a certificate of kind "branched" proves, each with λ.

    Higher floors leave smaller caps, so a bound grows by ``2λ`` in the floors on its leaf.
    """
    r, p = A.shape
    tree = Tree(arrays, r, arrays["variable"], p)
    parts = tree.parts
    N = numbers(arrays["N"], (parts * r, r), "`N`").reshape(parts, r, r)
    lam = numbers(arrays["multipliers"], (parts, p), "`multipliers`", nonnegative=True)
    kappa = numbers(arrays["kappa"], (parts, p), "`kappa`")
    found = []
    for leaf, slabs in tree.leaves(*_ends(tree, rho_min, A)):
        dual = {"N": N[leaf], "multipliers": lam[leaf], "kappa": kappa[leaf]}
        bound = _bound(dual, slabs, tree.mu[leaf], rho_min, A, arithmetic)
        found.append((bound, lam[leaf]))
    return found


def _ends(tree: Tree, rho_min: Array, A: Array) -> tuple[Array, Array]:
    """The whole cap of each cut, along its direction."""
    sources = A.T[tree.variable]
    cosine = np.einsum("ij,ij->i", tree.direction, sources)
    if cosine.min() < -ROUNDING:
        raise CertificateError("a direction of a cut does not point towards its source.")
    # The column may miss unit length, the direction unit length, and c is rounded.
    off = (np.abs(np.einsum("ij,ij->j", A, A) - 1.0) + ROUNDING)[tree.variable]
    rho, pad = rho_min[tree.variable], 4.0 * (ROUNDING + off)
    sine = np.linalg.norm(tree.direction - cosine[:, None] * sources, axis=1)
    turned = (sine + ROUNDING) * np.sqrt((1.0 - rho) * (1.0 + rho) + 4.0 * off)
    highest = np.where(cosine >= rho, 1.0, cosine * rho + turned) + pad
    return cosine * rho - turned - pad, highest


def _bound(
    dual: Mapping[str, Array],
    slabs: list[Slab],
    mu: Array,
    rho_min: Array,
    A: Array,
    arithmetic: Arithmetic,
) -> Enclosure:
    """The bound of one leaf."""
    p, N = len(rho_min), dual["N"]
    if not np.array_equal(N, N.T):
        raise CertificateError("`N` of a leaf is not symmetric.")
    of = np.array([slab.variable for slab in slabs])
    floors = floors_of_columns(A, rho_min, arithmetic)
    terms = []
    for j in np.unique(of):
        own = np.flatnonzero(of == j)
        pull = float(dual["multipliers"][j]), A[:, j], floors[j]
        held = [slabs[k] for k in own]
        kappa = float(dual["kappa"][j])
        terms.append(least_in_slabs(N, kappa, pull, held, mu[own], arithmetic))
    whole = np.setdiff1d(np.arange(p), of)
    if len(whole):
        arrays = {"N": N, **{key: dual[key][whole] for key in ("multipliers", "kappa")}}
        terms.append(spent(arrays, "multipliers", rho_min[whole], A[:, whole], arithmetic)[0])
    return from_dual(reduce(add, terms), N, p)
