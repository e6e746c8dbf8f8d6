"""The best exact decorrelator: largest mean fidelity among those that meet the floors.

    maximise Σ f_j(T)  subject to  TᵀCT = I,  f_j ≥ ρ_j

is the dual of the convex problem ``min_{μ ≥ 0} tr(D C D)^{1/2} - Σ μ_j ρ_j`` with
``D = Diag(1 + μ)``, and the optimal ``T = D S⁻¹`` is unique. Weights never fall below one, so the
problem does not degenerate; μ_j > 0 only where the floor binds.

A floor that only the variable itself can meet (one, for a correlation matrix) fixes its output. Its
weight would have to be infinite, so the others are solved in what the fixed variables leave.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from skcoral.core.arrays import (
    EPS,
    Array,
    Index,
    blocks,
    cholesky,
    column_dots,
    diagonal,
    diagonal_matrix,
    identity,
    joined,
    norm,
    solve_positive,
    submatrix,
    to_device,
    zeros,
)
from skcoral.core.linalg import gram_defect, make_exact, precise_column_dots
from skcoral.solvers.exact.newton import (
    Callback,
    NewtonSystem,
    Problem,
    WeightedRoot,
    minimise,
    trace_excess,
)

# Beyond this weight the others are lost in the rounding of the trace.
_WEIGHT_LIMIT = 1e12


@dataclass(frozen=True)
class BestExact:
    """Result of :func:`best_exact`; the matrices lie where ``C`` does.

    Where the floors are out of reach, ``weights`` are λ that prove it: ``tr S < λᵀρ``.
    """

    T: Any
    fidelity: Array
    weights: Array  # 1 + μ
    S: Any  # (D C D)^{1/2} at these weights
    feasible: bool  # whether the floors are met, to the tolerance
    trace_margin: float  # (tr S - λᵀρ) / Σλ
    n_iter: int


def best_exact(
    C: Any,
    floors: Array,
    *,
    tol: float = 1e-10,
    max_iter: int = 100,
    callback: Callback | None = None,
    separated: float = 1.0,
) -> BestExact:
    """Find the exact decorrelator of largest mean fidelity with ``f_j ≥ floors_j``.

    ``C`` is positive definite; its diagonal need not be one. The work is done where it lies.
    ``tol`` is the largest violation of a floor that counts as met. The callback is called as
    ``callback(iteration, mean fidelity bound, weakest margin)``. Where the floors are out of reach,
    the search ends with a proof and a largest weight of at least ``separated``: weights grow
    without bound where a floor is to blame.
    """
    beside_fixed = _best_beside_fixed(C, floors, tol, max_iter, callback)
    if beside_fixed is not None:
        return beside_fixed
    problem = _AtLeastOne(C, floors, tol, callback, separated)
    root = minimise(problem, problem.at(np.ones(len(floors))), max_iter)
    T, fidelity, feasible = root.transform(), root.fidelity, False
    if not problem.refuted(root):
        T, fidelity, feasible = _judged(C, T, floors, tol)
    return _result(root, floors, T, fidelity, feasible, problem.n_iter)


def _judged(C: Any, T: Any, floors: Array, tol: float) -> tuple[Any, Array, bool]:
    """``T`` made exact, its fidelities, and whether they meet the floors."""
    T, defect = make_exact(C, T)
    fidelity = column_dots(C, T)
    return T, fidelity, bool(np.all(fidelity >= floors - tol)) and norm(defect) < 1e-6


def _result(
    root: WeightedRoot, floors: Array, T: Any, fidelity: Array, feasible: bool, n_iter: int
) -> BestExact:
    weights = root.weights
    margin = (root.trace - float(weights @ floors)) / float(weights.sum())
    return BestExact(T, fidelity, weights, root.root(), feasible, margin, n_iter)


class _AtLeastOne(Problem):
    """Minimise ``tr S - λᵀρ`` over ``λ ≥ 1``, by projection."""

    def __init__(
        self,
        C: Any,
        floors: Array,
        tol: float,
        callback: Callback | None,
        separated: float = 1.0,
    ) -> None:
        super().__init__(C, goal=1e-14, close=tol, callback=callback)
        self.floors, self.separated = floors, separated

    def gradient(self, root: WeightedRoot) -> Array:
        return root.diagonal - root.weights * self.floors

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
        refuted = largest >= self.separated and self.refuted(root)
        return solved or refuted or largest > _WEIGHT_LIMIT

    def move(self, weights: Array, d: Array) -> Array:
        return np.maximum(1.0, weights * stretch(d))

    def direction(self, root: WeightedRoot) -> Array | None:
        """Newton's relative changes, with the weights that would fall below one set to it."""
        gradient = self.gradient(root)
        # The trace is homogeneous: it has no curvature in the common scale of all weights.
        bend = np.maximum(gradient, 0.0)
        d, slope = np.zeros(len(gradient)), gradient
        at_one = (root.weights <= 1.0) & (gradient >= 0.0)
        size = float(np.max(np.abs(gradient / root.diagonal), where=~at_one, initial=0.0))
        while not at_one.all():
            system = NewtonSystem(root, bend, np.flatnonzero(~at_one))
            step = system.solve(slope, min(0.1, max(size, 1e-6)))
            # The part of the way to one after which each would be below it.
            down = np.flatnonzero(~at_one & (step < 0.0))
            reach = (1.0 / root.weights[down] - 1.0) / step[down]
            if not np.any(reach < 1.0):
                return d + step
            falls = down[reach <= reach.min()]
            d[falls] = 1.0 / root.weights[falls] - 1.0
            at_one[falls] = True
            slope = gradient + root.curvature(d)
        return d if d.any() else None


def stretch(d: Array) -> Array:
    """Factors that change by ``d`` to first order and stay within [1/20, 20].

    Weights that grow without bound do so like ``1/(1-d)``: their gradients fall like ``1/λ``.
    """
    return np.where(d < 0, 1.0 + np.maximum(d, -0.95), 1.0 / (1.0 - np.minimum(d, 0.95)))


def complement(C: Any, kept: Index, rest: Index) -> tuple[Any, Any]:
    """Return what the variables ``kept`` leave of the ``rest``, and the mix that takes them out.

    With B = ``kept`` these are ``C̃ = C_cc - C_cB C_BB⁻¹ C_Bc`` and ``C_BB⁻¹ C_Bc``. The outputs
    ``[-C_BB⁻¹ C_Bc; I] T̃`` are orthogonal to every output made of the kept variables, and their
    fidelities are those of ``T̃`` for ``C̃``.
    """
    if not len(kept):
        return C, zeros((0, len(rest)), C)
    mix = solve_positive(submatrix(C, kept, kept), submatrix(C, kept, rest))
    residual = submatrix(C, rest, rest) - submatrix(C, rest, kept) @ mix
    return (residual + residual.T) / 2, mix


def complete_exactly(
    C: Any,
    floors: Array,
    kept: Index,
    T_kept: Any,
    **options: Any,
) -> tuple[Any, BestExact]:
    """Extend the outputs of ``kept`` by the best ones for the others, uncorrelated with them.

    ``T_kept`` has a row for every variable, or only for the kept ones. Returns the outputs of all
    variables, and the best decorrelator of what the kept ones leave of the others; ``options`` are
    those of :func:`best_exact`.
    """
    every = np.arange(len(floors))
    rest = np.setdiff1d(every, kept)
    if len(kept) and T_kept.shape[0] > len(kept):
        # Outputs of all variables: what they leave of a source is its part orthogonal to them.
        along = T_kept.T @ submatrix(C, every, rest)
        mix = solve_positive(gram_defect(C, T_kept) + identity(len(kept), C), along)
        residual = submatrix(C, rest, rest) - along.T @ mix
        best = best_exact((residual + residual.T) / 2, floors[rest], **options)
        T = submatrix(identity(len(every), C), every, rest) - T_kept @ mix
        order = np.argsort(np.concatenate([kept, rest]))
        return submatrix(joined([T_kept, T @ best.T]), every, order), best
    residual, mix = complement(C, kept, rest)
    best = best_exact(residual, floors[rest], **options)
    if not len(kept):
        return best.T, best
    order = np.argsort(np.concatenate([kept, rest]))
    T = blocks(T_kept, -mix @ best.T, None, best.T)
    return submatrix(T, order, order), best


def mean_excess(
    C: Any, floors: Array, weights: Array, S: Any, T: Any, *, precise: bool = True
) -> float:
    """Return by how much another decorrelator that meets the floors can exceed ``T`` in the mean.

    For any ``d ≥ 1`` and ``S ≻ 0`` it is :func:`trace_excess` and ``Σ (d_j - 1) (f_j - ρ_j)``: both
    keep their digits when weights are large, with floors at the edge of the possible; other weights
    need no ``precise`` products. Raises ``LinAlgError`` where ``S`` is not positive definite.
    """
    excess = trace_excess(C, weights, S, T, gram_defect(C, T, precise=precise))
    dots = precise_column_dots if precise else column_dots
    slack = float((weights - 1) @ (dots(C, T) - floors))
    return (excess + slack) / len(weights)


def _best_beside_fixed(
    C: Any, floors: Array, tol: float, max_iter: int, callback: Callback | None
) -> BestExact | None:
    """Best decorrelator beside outputs that can only be their sources; None if there is none.

    What such sources leave of the others may fix further ones: they are completed by the same rule.
    """
    reach = np.sqrt(np.maximum(diagonal(C), 0.0))  # rounding leaves less than nothing to copies
    fixed = np.flatnonzero((floors >= reach * (1 - 4 * EPS)) & (reach > 0.0))
    if np.any(floors > reach + tol) or len(fixed) in (0, len(floors)):
        return None  # out of reach, which the weights have to prove; or nothing to complete
    sources = diagonal_matrix(to_device(1.0 / reach[fixed], C))
    options: dict[str, Any] = {"tol": tol, "max_iter": max_iter, "callback": callback}
    T, rest = complete_exactly(C, floors, fixed, sources, **options)
    T, fidelity, feasible = _judged(C, T, floors, tol)
    if not feasible:
        return None
    others = np.setdiff1d(np.arange(len(floors)), fixed)
    weights = np.full(len(floors), min(1e8 * float(rest.weights.max()), _WEIGHT_LIMIT))
    weights[others] = rest.weights
    root = WeightedRoot(C, weights, cholesky(C))
    return _result(root, floors, T, fidelity, True, rest.n_iter)
