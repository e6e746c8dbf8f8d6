"""The highest common floor at which no variance inflation factor exceeds a limit.

With ``R = LLᵀ``, ``W = LᵀT`` and ``G = WᵀW``, the problem is

    maximise  γ   subject to   (LW)_jj ≥ γ,   ‖w_j‖ = 1,   (G⁻¹)_jj ≤ limit.

``(G⁻¹)_jj`` is convex in ``G``, and the best common fidelity for a given ``G`` is concave in it. In
``T`` there are local maxima (of the other orientation), so the search, by an augmented Lagrangian,
starts on the curve of least squared residuals, and its multipliers give a bound on every other
transformation.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.linalg import solve_triangular
from scipy.optimize import brentq, minimize

from skcoral._arrays import Array, column_dots
from skcoral.certificates.inflation import proved_floor
from skcoral.exact import KeptThreshold, solve_exact
from skcoral.exceptions import InvalidArgumentError
from skcoral.measures import inflation_factors
from skcoral.results import LIMIT_GAP, Criterion, Decorrelation
from skcoral.tradeoff import criteria
from skcoral.tradeoff.feasible import correlation_of
from skcoral.tradeoff.frontier import Node, Path
from skcoral.tradeoff.results import as_result

Callback = Callable[[int, float, float], object]
_LARGEST = 150  # variables beyond which the curve's answer is not improved
_ROUNDS, _STEPS = 16, 600  # of the multipliers, and of the descent in each
_CLOSE = 1e-9


def solve_vif(
    R: Any,
    limit: float,
    *,
    names: Sequence[str],
    criterion: Criterion = "squared",
    pair_weights: Array | None = None,
    tol: float = 1e-9,
    max_iter: int = 200,
    callback: Callback | None = None,
    threshold: KeptThreshold | None = None,
) -> Decorrelation:
    """Find the highest common floor whose largest VIF is at most ``limit``.

    Parameters
    ----------
    R : ndarray of shape (p, p)
        Correlation matrix, positive definite.
    limit : float
        Largest acceptable VIF, at least one.
    names : sequence of str
        The variables.
    criterion, pair_weights
        Squares over all pairs and no others: what the residual in the result is.
    tol, max_iter
        As in :func:`solve_tradeoff`.
    callback : callable, optional
        Called as ``callback(point, objective, lower_bound)`` after each floor tried.
    threshold : KeptThreshold, optional
        Where ρ★ of ``R`` is kept.

    Returns
    -------
    Decorrelation
        The floor is in ``rho_min``; its residual need not be the least, and bound and prices are
        those of the least squared residual at this floor. ``details`` hold the limit
        ``"max_vif"``, the ``"largest_vif"`` reached, and ``"rho_upper"``, a bound on the common
        floor of every transformation within the limit that the certificate proves.

    Examples
    --------
    >>> import numpy as np
    >>> from skcoral.tradeoff import solve_vif
    >>> answer = solve_vif(np.array([[1.0, 0.8], [0.8, 1.0]]), 1.25, names=["a", "b"])
    >>> round(float(answer.rho_min[0]), 6), bool(answer.details["rho_upper"] < 0.9732491)
    (0.973249, True)
    """
    if pair_weights is not None:
        raise InvalidArgumentError(
            "pair_weights cannot be combined with a limit on the VIF: every pair counts in it."
        )
    path = Path(
        R,
        criterion=criterion,
        pair_weights=None,
        tol=tol,
        max_iter=max_iter,
        threshold=threshold,
    )
    if limit <= 1.0:
        exact = solve_exact(
            R, None, names=tuple(names), criterion=criterion, tol=tol, threshold=path.kept
        )
        if isinstance(exact, Decorrelation):
            return _limited(exact, limit, min(path.threshold.upper, 1.0))
    node = _on_the_curve(path, limit, callback)
    p, solved, upper = len(path.R), node.solved, 1.0
    proof: dict[str, Array] = {}
    if node.rho < 1.0 and limit > 1.0:
        upper, proof = _near_exact(path, solved.T, limit)
        upper, proof = (upper, proof) if upper < 1.0 else (1.0, {})
    if node.rho < 1.0 and p <= _LARGEST:
        L: Array = np.asarray(np.linalg.cholesky(path.R), dtype=np.float64)
        W: Array = L.T @ np.asarray(solved.T, dtype=np.float64)
        best, found = node.rho, solved
        for margin in (_CLOSE, 30.0 * _CLOSE, 1000.0 * _CLOSE):  # a further round for the digits
            if upper - best <= 0.1 * LIMIT_GAP or limit * (1.0 - margin) <= 1.0:
                break
            W, lam, mu = _improved(L, W, limit * (1.0 - margin))
            T = _transformation(path.R, L, W)
            floor, G = float(column_dots(path.R, T).min()), correlation_of(path.R, T)
            if floor > best and float(inflation_factors(G).max()) <= limit:
                best, found = floor, replace(solved, T=T, G=G)
            proved = _proof(path.R, L, W, lam, mu, limit)
            upper, proof = proved if proved[0] < upper else (upper, proof)
        if best > node.rho:
            # what is proved about the residual is about this floor, whoever attains it
            node = path.solve(best)
            solved = replace(
                node.solved,
                T=found.T,
                G=found.G,
                fidelity=column_dots(path.R, found.T),
                objective=criteria.value(criterion, found.G, None),
            )
    result = as_result(
        solved,
        np.full(p, node.rho),
        names=names,
        criterion=criterion,
        pair_weights=None,
        max_iter=max_iter,
        warn=False,
    )
    dual = result.certificate
    result = replace(result, certificate=replace(dual, arrays={**dual.arrays, **proof}))
    return _limited(result, limit, max(upper, node.rho))


def _transformation(R: Array, L: Array, W: Array) -> Array:
    """``L⁻ᵀW``, corrected for its rounding, which shows where variables are nearly collinear."""
    T = np.asarray(solve_triangular(L, W, lower=True, trans="T"))
    actual, wanted = (np.linalg.cholesky(G) for G in (correlation_of(R, T), W.T @ W))
    return np.asarray(T @ solve_triangular(actual, wanted.T, lower=True, trans="T"))


def _near_exact(path: Path, T: Array, limit: float) -> tuple[float, dict[str, Array]]:
    """Bound the floor within a limit next to one by the multipliers of the threshold.

    With their S, ``Y = (cI - S)^{1/2}`` and ``s_j = Y_jj / limit``, what the bound exceeds ρ★ by is
    about ``½ ‖off S‖ (p (1 - 1/limit))^{1/2}`` at the best c.
    """
    edge, p = path.threshold, len(path.R)
    on = np.flatnonzero(edge.weights > 0)
    H = 1e-11 * np.eye(p)
    H[np.ix_(on, on)] = 0.5 * (edge.S + edge.S.T)
    values, vectors = np.linalg.eigh(H)
    c = criteria.value("squared", H, None) / (2.0 * p * (1.0 - 1.0 / limit))
    c = max(c**0.5, 1.001 * values[-1])
    Y = (vectors * np.sqrt(c - values)) @ vectors.T
    roots = np.diag(Y) / limit
    arrays = {"vif_weights": edge.weights, "vif_H": H, "vif_roots": roots, "vif_vectors": Y}
    return proved_floor(path.R, T, arrays, limit), arrays


def _proof(
    R: Array, L: Array, W: Array, lam: Array, mu: Array, limit: float
) -> tuple[float, dict[str, Array]]:
    """Bound the common floor within the limit by the multipliers of the solution.

    With weights λ of sum one and ``X = G⁻¹`` they give ``H = D - X diag(μ) Xᵀ``, D diagonal; see
    :mod:`skcoral.certificates.inflation`.
    """
    G = W.T @ W
    X = np.linalg.inv(G)
    T = np.asarray(solve_triangular(L, W, lower=True, trans="T"))
    best: tuple[float, dict[str, Array]] = (np.inf, {})
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
        best = min(best, (proved_floor(R, T, arrays, limit), arrays), key=lambda found: found[0])
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


def _on_the_curve(path: Path, limit: float, callback: Callback | None) -> Node:
    """The highest floor of the curve of least squared residuals that keeps to the limit."""
    visited: dict[float, tuple[Node, float]] = {}

    def excess(rho: float) -> float:
        if rho not in visited:
            node = path.solve(rho)
            visited[rho] = node, float(inflation_factors(node.solved.G).max()) - limit
            if callback is not None:
                callback(len(visited), node.solved.objective, node.solved.lower_bound)
        return visited[rho][1]

    if excess(1.0) > 0.0 and excess(path.edge) < 0.0:
        crossing, step = brentq(excess, path.edge, 1.0, xtol=1e-10), 1e-9
        while excess(crossing) > 0.0:
            crossing, step = max(crossing - step, path.edge), 4.0 * step
    floor = max((rho for rho in visited if excess(rho) <= 0.0), default=path.edge)
    return visited[floor][0]


def _limited(result: Decorrelation, limit: float, upper: float) -> Decorrelation:
    largest = float(inflation_factors(result.correlation).max())
    found = {"max_vif": limit, "largest_vif": largest, "rho_upper": upper}
    return replace(result, details=found)
