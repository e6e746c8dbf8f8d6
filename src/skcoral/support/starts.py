"""Where to start: structured points first, then random ones."""

from __future__ import annotations

import numpy as np

from skcoral.exact import KeptThreshold, best_exact
from skcoral.results import Array
from skcoral.support.caps import Caps
from skcoral.support.exactness import cholesky_within


def structured_starts(space: Caps, warm: Array, threshold: KeptThreshold) -> Array:
    """Points (S, p, m): warm ones, then the identity and masked exact decorrelators of R.

    In this order: the given transformations; a Cholesky factor of R⁻¹ that fits the support, if
    there is one; the exact decorrelator with the best mean fidelity under the floors, or the one
    with the best common fidelity; the identity; ZCA-cor; Cholesky factors in input order and
    backwards.
    """
    R, p = space.R, space.p
    values, vectors = np.linalg.eigh(R)
    candidates = list(warm)
    fitting = cholesky_within(R, space.mask)
    if fitting is not None:
        candidates.append(fitting[0])
    candidates.append(_dense_exact(R, space.floors, threshold))
    candidates.append(np.eye(p))
    candidates.append((vectors / np.sqrt(values)) @ vectors.T)
    candidates.append(np.linalg.inv(np.linalg.cholesky(R)).T)
    backwards = np.linalg.cholesky(R[::-1, ::-1])[::-1, ::-1]
    candidates.append(np.linalg.inv(backwards).T)
    return space.points(np.stack(candidates))


def random_starts(space: Caps, n: int, rng: np.random.Generator) -> Array:
    """Points (n, p, m) midway between the sources and uniform points on the spheres."""
    sources = np.zeros((1, space.p, space.m))
    sources[..., 0] = 1.0
    return midpoints(space, sources, n, rng)


def midpoints(space: Caps, points: Array, n: int, rng: np.random.Generator) -> Array:
    """Points (n, p, m) midway between given ones, taken in turn, and uniform ones."""
    uniform = _unit(np.where(space.valid, rng.normal(size=(n, space.p, space.m)), 0.0))
    # The factor keeps a midpoint for opposite points, which a column without freedom has often.
    middle = (1.0 + 1e-9) * points[np.arange(n) % len(points)] + uniform
    return _unit(middle)


def _unit(X: Array) -> Array:
    return np.asarray(X / np.linalg.norm(X, axis=2, keepdims=True))


def _dense_exact(R: Array, floors: Array, threshold: KeptThreshold) -> Array:
    below_one = np.minimum(floors, 1.0 - 1e-9)
    best = best_exact(R, below_one)
    if best.feasible:
        return np.asarray(best.T)
    return np.asarray(threshold.solve().T)
