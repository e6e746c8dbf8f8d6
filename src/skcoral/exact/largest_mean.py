"""The best exact decorrelator: largest mean fidelity among those that meet the floors.

    maximise Σ f_j(T)  subject to  TᵀCT = I,  f_j ≥ ρ_j

is the dual of the convex problem ``min_{μ ≥ 0} tr(D C D)^{1/2} - Σ μ_j ρ_j`` with
``D = Diag(1 + μ)``, and the optimal ``T = D S⁻¹`` is unique. Weights never fall below one, so the
problem does not degenerate; μ_j > 0 only where the floor binds.

A floor that asks for the whole variable (one, for a correlation matrix) pins its output. Its weight
would have to be infinite, so the others are solved in what the pinned variables leave of them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skcoral._arrays import (
    Array,
    cholesky,
    column_dots,
    diagonal,
    norm,
    submatrix,
    to_device,
    to_host,
)
from skcoral._linalg import gram_defect, make_exact, precise_column_dots
from skcoral.exact.completion import assemble, complement
from skcoral.exact.newton import Problem, minimise, newton_direction, stretch
from skcoral.exact.weighted import WeightedRoot, trace_excess

Index = NDArray[np.intp]
Callback = Callable[[int, float, float], object]

_EPS = float(np.finfo(np.float64).eps)
# Beyond this weight the others are lost in the rounding of the trace.
_WEIGHT_LIMIT = 1e12


@dataclass(frozen=True)
class BestExact:
    """Result of :func:`best_exact`.

    Attributes
    ----------
    T, fidelity : ndarray
        The decorrelator and its fidelities.
    weights : ndarray
        ``1 + μ``; where ``feasible`` is false, weights λ that prove it: ``tr S < λᵀρ``.
    S : ndarray
        ``(D C D)^{1/2}`` at ``weights``.
    feasible : bool
        Whether the floors are met (to ``tol``).
    trace_margin : float
        ``(tr S - λᵀρ) / Σλ`` at ``weights``; below zero it proves the floors out of reach.
    n_iter : int
        Newton steps.
    """

    T: Array
    fidelity: Array
    weights: Array
    S: Array
    feasible: bool
    trace_margin: float
    n_iter: int


def best_exact(
    C: Any,
    floors: Array,
    *,
    tol: float = 1e-10,
    max_iter: int = 100,
    callback: Callback | None = None,
) -> BestExact:
    """Find the exact decorrelator of largest mean fidelity with ``f_j ≥ floors_j``.

    Parameters
    ----------
    C : array of shape (p, p)
        Positive definite matrix; its diagonal need not be one. The work is done where it lies, and
        the result is in NumPy.
    floors : ndarray of shape (p,)
        The least fidelity of each variable.
    tol : float
        Largest violation of a floor that counts as met.
    max_iter : int
        Largest number of Newton steps.
    callback : callable, optional
        Called as ``callback(iteration, mean fidelity bound, weakest margin)``.
    """
    p = C.shape[0]
    whole = floors >= np.sqrt(diagonal(C)) * (1 - 4 * _EPS)
    if whole.any() and not whole.all():
        pinned = _best_beside_pinned(C, floors, whole, tol, max_iter, callback)
        if pinned is not None:
            return pinned
    problem = _AtLeastOne(C, floors, tol, callback)
    root = minimise(problem, problem.at(np.ones(p)), max_iter)
    T, fidelity, feasible = root.transform(), root.fidelity, False
    if not problem.refuted(root):
        T, defect = make_exact(C, T)
        fidelity = column_dots(C, T)
        feasible = bool(np.all(fidelity >= floors - tol)) and norm(defect) < 1e-6
    return _result(root, floors, T, fidelity, feasible, problem.n_iter)


def _result(
    root: WeightedRoot, floors: Array, T: Any, fidelity: Array, feasible: bool, n_iter: int
) -> BestExact:
    weights = root.weights
    return BestExact(
        T=to_host(T),
        fidelity=fidelity,
        weights=weights,
        S=to_host(root.root()),
        feasible=feasible,
        trace_margin=(root.trace - float(weights @ floors)) / float(weights.sum()),
        n_iter=n_iter,
    )


class _AtLeastOne(Problem):
    """Minimise ``tr S - λᵀρ`` over ``λ ≥ 1``, by projection."""

    def __init__(self, C: Any, floors: Array, tol: float, callback: Callback | None) -> None:
        super().__init__(C, goal=1e-14, close=tol)
        self.floors = floors
        self.callback = callback

    def value(self, root: WeightedRoot) -> float:
        return root.trace - float(root.weights @ self.floors)

    def gradient(self, root: WeightedRoot) -> Array:
        return np.asarray(root.weights * (root.fidelity - self.floors))

    def residual(self, root: WeightedRoot) -> float:
        """Return the violation of ``min(μ_j, f_j - ρ_j) = 0``."""
        return float(np.abs(np.minimum(root.weights - 1, root.fidelity - self.floors)).max())

    def refuted(self, root: WeightedRoot) -> bool:
        """Whether ``tr S < λᵀρ``: the trace bounds ``Σ λ_j f_j`` of every exact decorrelator."""
        return root.trace < float(root.weights @ self.floors) * (1 - 1e-14)

    def finished(self, root: WeightedRoot) -> bool:
        if self.callback is not None:
            mean_bound = (root.trace - float((root.weights - 1) @ self.floors)) / len(self.floors)
            slack = float((root.fidelity - self.floors).min())
            self.callback(self.n_iter, mean_bound, slack)
        largest = float(root.weights.max())
        # What is missing at a floor counts in the mean by its weight.
        solved = self.residual(root) <= min(1e-12, 1e-10 / largest)
        return solved or self.refuted(root) or largest > _WEIGHT_LIMIT

    def move(self, weights: Array, d: Array) -> Array:
        return np.maximum(1.0, weights * stretch(d))

    def direction(self, root: WeightedRoot) -> Array | None:
        gradient = self.gradient(root)
        # Weights next to their bound that want to fall go there, apart from the Newton step: it
        # would be cut short by them (Bertsekas, 1982).
        bound = 1.0 + min(0.1, self.residual(root))
        free = (root.weights > bound) | (gradient < 0)
        falling = ~free & (root.weights > 1.0)
        if not (free.any() or falling.any()):
            return None
        d = np.where(falling, -1.0, 0.0)
        if free.any():
            size = float(np.max(np.abs(gradient[free]) / root.diagonal[free]))
            # The trace is homogeneous: it has no curvature in the common scale of all weights.
            bend = np.maximum(gradient, 0.0)
            accuracy = min(0.1, max(size, 1e-6))
            d = d + newton_direction(root, gradient, bend, free=free, rtol=accuracy)
        return d


def mean_excess(C: Any, floors: Array, weights: Array, S: Any, T: Any) -> float:
    """Return by how much another decorrelator that meets the floors can exceed ``T`` in the mean.

    For any ``d ≥ 1`` and ``S ≻ 0`` it is :func:`trace_excess` and ``Σ (d_j - 1) (f_j - ρ_j)``: both
    keep their digits when weights are large, with floors at the edge of the possible.

    Parameters
    ----------
    C, floors
        The problem, as in :func:`best_exact`.
    weights, S
        The dual point: ``d`` and a positive definite matrix.
    T : array of shape (p, p)
        A decorrelator, exact but for rounding.

    Raises
    ------
    numpy.linalg.LinAlgError
        ``S`` is not positive definite.
    """
    excess = trace_excess(C, weights, S, T, gram_defect(C, T, precise=True))
    slack = float((weights - 1) @ (precise_column_dots(C, T) - floors))
    return (excess + slack) / len(weights)


def _best_beside_pinned(
    C: Any,
    floors: Array,
    whole: NDArray[np.bool_],
    tol: float,
    max_iter: int,
    callback: Callback | None,
) -> BestExact | None:
    """Best decorrelator whose ``whole`` outputs are their sources; None if there is none."""
    kept, rest = np.flatnonzero(whole), np.flatnonzero(~whole)
    size = np.sqrt(diagonal(C))
    among = to_host(submatrix(C, kept, kept)) / np.outer(size[kept], size[kept])
    if np.abs(among - np.eye(len(kept))).max() > tol:
        return None  # correlated as they are, they cannot all stay
    residual, mix = complement(C, kept, rest)
    inner = best_exact(residual, floors[rest], tol=tol, max_iter=max_iter, callback=callback)
    if not inner.feasible:
        return None
    whole_outputs = to_device(np.diag(1 / size[kept]), C)
    T, defect = make_exact(C, assemble(kept, rest, whole_outputs, to_device(inner.T, C), mix))
    fidelity = column_dots(C, T)
    if norm(defect) >= 1e-6 or np.any(fidelity < floors - tol):
        return None
    # A pinned variable proves its case in the limit of infinite weight. Large weights come near it
    # until rounding takes over; where that happens is a matter of trying.
    factor = cholesky(C)
    weights = np.ones(C.shape[0])
    weights[rest] = inner.weights
    gap, best = np.inf, WeightedRoot(C, weights, factor)
    for large in 10.0 ** np.arange(4, 9.1, 0.5):
        trial = weights.copy()
        trial[kept] = large * inner.weights.max()
        root = WeightedRoot(C, trial, factor)
        try:
            trial_gap = abs(mean_excess(C, floors, trial, root.root(), T))
        except np.linalg.LinAlgError:
            break
        if trial_gap < gap:
            gap, best = trial_gap, root
        if gap < 1e-10:
            break
    return _result(best, floors, T, fidelity, True, inner.n_iter)
