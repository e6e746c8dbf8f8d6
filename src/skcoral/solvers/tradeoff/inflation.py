"""The highest common floor at which no variance inflation factor exceeds a limit.

With ``R = LLᵀ``, ``W = LᵀT`` and ``G = WᵀW``, the problem is

    maximise  γ   subject to   (LW)_jj ≥ γ,   ‖w_j‖ = 1,   (G⁻¹)_jj ≤ limit.

``(G⁻¹)_jj`` is convex in ``G``, and the best common fidelity for a given ``G`` is concave in it. In
``T`` there are local maxima (of the other orientation), so the search, by an augmented Lagrangian,
starts on the curve of least squared residuals, and its multipliers give a bound on every other
transformation.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from scipy.linalg import solve_triangular
from scipy.optimize import minimize

from skcoral.bounds.vif import proved_floor
from skcoral.core import criteria
from skcoral.core.arrays import Array, column_dots, to_host
from skcoral.core.measures import inflation_factors
from skcoral.core.results import LIMIT_GAP, Decorrelation
from skcoral.exceptions import InvalidArgumentError
from skcoral.solvers.exact import Options, threshold_result
from skcoral.solvers.tradeoff.feasible import correlation_of
from skcoral.solvers.tradeoff.frontier import Node, Path
from skcoral.solvers.tradeoff.results import Solved, as_result

_LARGEST = 150  # variables beyond which the curve's answer is not improved
_ROUNDS, _STEPS = 16, 600  # of the multipliers, and of the descent in each
_CLOSE = 1e-9

Proof = tuple[float, dict[str, Array]]  # a bound on the floor, and what proves it


def solve_vif(R: Any, limit: float, options: Options) -> Decorrelation:
    """Find the highest common floor whose largest VIF is at most ``limit``.

    The criterion says what the residual in the result is; every pair counts. The callback is called
    as ``callback(point, objective, lower_bound)`` after each floor tried.

    The floor is in ``rho_min`` of the result. Its residual need not be the least: bound and prices
    are those of the least squared residual at this floor. ``details`` hold the limit ``"max_vif"``,
    the ``"largest_vif"`` reached, and ``"rho_upper"``, a bound on the common floor of every
    transformation within the limit that the certificate proves.
    """
    if options.pair_weights is not None:
        raise InvalidArgumentError(
            "pair_weights cannot be combined with a limit on the VIF: every pair counts in it."
        )
    path = Path(R, options)
    if limit <= 1.0:
        exact = threshold_result(R, path.threshold, options)
        return _limited(exact, limit, min(path.threshold.upper, 1.0))
    node = path.highest(
        lambda node: float(inflation_factors(node.solved.G).max()) - limit, xtol=1e-10
    )
    solved = node.solved
    bound: Proof = (1.0, {})
    if node.rho < 1.0:
        bound = min(bound, _near_exact(path, solved.T, limit), key=_floor)
    if node.rho < 1.0 and len(path.R) <= _LARGEST:
        node, solved, bound = _improve(path, node, limit, bound)
    upper, proof = bound
    floors = np.full(len(path.R), node.rho)
    result = as_result(solved, floors, options, warn=False)
    dual = result.certificate
    result = replace(result, certificate=replace(dual, arrays={**dual.arrays, **proof}))
    return _limited(result, limit, max(upper, node.rho))


def _floor(proof: Proof) -> float:
    return proof[0]


def _improve(path: Path, node: Node, limit: float, bound: Proof) -> tuple[Node, Solved, Proof]:
    """Raise the floor of a point of the curve; also return the transformation and the bound."""
    R, best, found = path.R, node.rho, node.solved
    L: Array = np.asarray(np.linalg.cholesky(R), dtype=np.float64)
    W: Array = L.T @ np.asarray(found.T, dtype=np.float64)
    for margin in (_CLOSE, 30.0 * _CLOSE, 1000.0 * _CLOSE):  # a further round for the digits
        if bound[0] - best <= 0.1 * LIMIT_GAP or limit * (1.0 - margin) <= 1.0:
            break
        W, lam, mu = _improved(L, W, limit * (1.0 - margin))
        T = _transformation(R, L, W)
        floor, G = float(column_dots(R, T).min()), correlation_of(R, T)
        if floor > best and float(inflation_factors(G).max()) <= limit:
            best, found = floor, replace(found, T=T, G=G)
        bound = min(bound, _proof(R, L, W, lam, mu, limit), key=_floor)
    if best > node.rho:
        # The bound on the residual is that of this floor.
        node = path.solve(best)
        found = replace(
            node.solved,
            T=found.T,
            G=found.G,
            fidelity=column_dots(R, found.T),
            objective=criteria.value(path.options.criterion, found.G),
        )
    return node, found, bound


def _transformation(R: Array, L: Array, W: Array) -> Array:
    """``L⁻ᵀW``, corrected for its rounding, which shows where variables are nearly collinear."""
    T = np.asarray(solve_triangular(L, W, lower=True, trans="T"))
    actual, wanted = (np.linalg.cholesky(G) for G in (correlation_of(R, T), W.T @ W))
    return np.asarray(T @ solve_triangular(actual, wanted.T, lower=True, trans="T"))


def _near_exact(path: Path, T: Array, limit: float) -> Proof:
    """Bound the floor within a limit next to one by the multipliers of the threshold.

    With their S, ``Y = (cI - S)^{1/2}`` and ``s_j = Y_jj / limit``, what the bound exceeds ρ★ by is
    about ``½ ‖off S‖ (p (1 - 1/limit))^{1/2}`` at the best c.
    """
    edge, p = path.threshold, len(path.R)
    on = np.flatnonzero(edge.weights > 0)
    H = 1e-11 * np.eye(p)
    H[np.ix_(on, on)] = to_host(edge.S)
    values, vectors = np.linalg.eigh(H)
    c = criteria.value("squared", H, None) / (2.0 * p * (1.0 - 1.0 / limit))
    c = max(c**0.5, 1.001 * values[-1])
    Y = (vectors * np.sqrt(c - values)) @ vectors.T
    roots = np.diag(Y) / limit
    arrays = {"vif_weights": edge.weights, "vif_H": H, "vif_roots": roots, "vif_vectors": Y}
    return proved_floor(path.R, T, arrays, limit), arrays


def _proof(R: Array, L: Array, W: Array, lam: Array, mu: Array, limit: float) -> Proof:
    """Bound the common floor within the limit by the multipliers of the solution.

    With weights λ of sum one and ``X = G⁻¹`` they give ``H = D - X diag(μ) Xᵀ``, D diagonal; see
    :mod:`skcoral.bounds.vif`.
    """
    G = W.T @ W
    X = np.linalg.inv(G)
    T = np.asarray(solve_triangular(L, W, lower=True, trans="T"))
    best: Proof = (np.inf, {})
    for floor in (1e-5, 1e-7, 1e-9, 1e-11):  # weights of variables whose floor does not bind
        weights = lam + floor / len(lam)
        scale = 1.0 / weights.sum()
        roots = np.sqrt(2.0 * mu * scale)
        Y = X * roots
        H = -Y @ Y.T
        np.fill_diagonal(H, np.einsum("ij,ji,i->i", X @ W.T, L.T, weights * scale) + floor)
        arrays = {
            "vif_weights": weights * scale,
            "vif_H": H,
            "vif_roots": roots,
            "vif_vectors": Y,
        }
        best = min(best, (proved_floor(R, T, arrays, limit), arrays), key=_floor)
    return best


def _improved(L: Array, W: Array, limit: float) -> tuple[Array, Array, Array]:
    """Raise the weakest fidelity within the limit; the outputs and their multipliers."""
    p = len(L)
    lam, mu = np.full(p, 1.0 / p), np.zeros(p)
    penalty, last = 10.0, np.inf
    x = np.append(W.ravel(), np.einsum("ji,ij->j", L, W).min())

    def parts(x: Array) -> tuple[Array, Array, Array, Array]:
        V = x[:-1].reshape(p, p)
        lengths = np.linalg.norm(V, axis=0)
        W = V / lengths
        inverse = np.linalg.inv(W.T @ W)
        return lengths, W, inverse, np.einsum("ji,ij->j", L, W)

    def lagrangian(x: Array) -> tuple[float, Array]:
        lengths, W, inverse, fidelity = parts(x)
        short = np.maximum(0.0, lam + penalty * (x[-1] - fidelity))
        over = np.maximum(0.0, mu + penalty * (np.diag(inverse) / limit - 1.0))
        value = -x[-1] + (short @ short - lam @ lam + over @ over - mu @ mu) / (2.0 * penalty)
        slope = -L.T * short - (2.0 / limit) * (W @ inverse * over) @ inverse
        slope = (slope - W * np.einsum("ij,ij->j", W, slope)) / lengths
        return float(value), np.append(slope.ravel(), short.sum() - 1.0)

    for _ in range(_ROUNDS):
        options = {"maxiter": _STEPS, "maxcor": 30, "ftol": 1e-15, "gtol": 1e-10}
        x = minimize(lagrangian, x, jac=True, method="L-BFGS-B", options=options).x
        _, W, inverse, fidelity = parts(x)
        room, excess = fidelity - x[-1], np.diag(inverse) / limit - 1.0
        lam = np.maximum(0.0, lam - penalty * room)
        mu = np.maximum(0.0, mu + penalty * excess)
        off = max(np.abs(np.minimum(lam, room)).max(), np.abs(np.minimum(mu, -excess)).max())
        x = np.append(W.ravel(), x[-1])
        if off < _CLOSE:
            break
        penalty *= 4.0 if off > 0.3 * last else 1.0
        last = off
    return W, lam, mu / limit


def _limited(result: Decorrelation, limit: float, upper: float) -> Decorrelation:
    largest = float(inflation_factors(result.correlation).max())
    found = {"max_vif": limit, "largest_vif": largest, "rho_upper": upper}
    return replace(result, details=found)
