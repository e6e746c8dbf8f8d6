"""The paper's algorithm: an augmented Lagrangian on the oblique manifold from random starts.

Written from section 2 of the paper: ``W = R^{1/2} T`` has unit columns; the objective is
``Σ_{i<j} (w_iᵀw_j)²``; the floors ``g_j = ρ - e_jᵀR^{1/2}w_j ≤ 0`` enter by multipliers and a
penalty that grows; each inner problem is minimised by Riemannian trust-region steps. Of the starts,
the best feasible end is kept. It proves nothing about optimality.
"""

from __future__ import annotations

from dataclasses import dataclass

import autograd.numpy as anp
import numpy as np
import pymanopt
from pymanopt.manifolds import Oblique
from pymanopt.optimizers import TrustRegions


@dataclass(frozen=True)
class Found:
    """Best end of all starts: transformation, objective, and how far its floors are missed."""

    T: np.ndarray
    objective: float
    violation: float


def solve(
    R: np.ndarray,
    rho: float,
    *,
    n_starts: int = 5,
    n_outer: int = 20,
    inner_steps: int = 50,
    tol: float = 1e-4,
    seed: int = 0,
) -> Found:
    """Minimise the residual for a common floor ``rho``."""
    p = len(R)
    values, vectors = np.linalg.eigh(R)
    root = (vectors * np.sqrt(values)) @ vectors.T
    manifold = Oblique(p, p)
    rng = np.random.default_rng(seed)
    ends = []
    for _ in range(n_starts):
        W = rng.normal(size=(p, p))
        W /= np.linalg.norm(W, axis=0)
        W = _one_start(manifold, root, rho, W, n_outer, inner_steps, tol)
        G = W.T @ W
        violation = float(np.max(rho - np.sum(root * W, axis=0)))
        objective = 0.5 * float(np.sum(G**2) - p)
        ends.append(Found(np.linalg.solve(root, W), objective, max(violation, 0.0)))
    feasible = [end for end in ends if end.violation <= tol] or ends
    return min(feasible, key=lambda end: end.objective)


def _one_start(manifold, root, rho, W, n_outer, inner_steps, tol):
    p = len(root)
    multipliers, penalty = np.zeros(p), 10.0
    for _ in range(n_outer):
        lam, eta = multipliers.copy(), penalty

        @pymanopt.function.autograd(manifold)
        def cost(W, lam=lam, eta=eta):
            G = anp.dot(W.T, W)
            short = rho - anp.sum(root * W, axis=0)
            active = anp.maximum(0.0, lam + eta * short)
            return 0.5 * (anp.sum(G**2) - p) + anp.sum(active**2 - lam**2) / (2 * eta)

        problem = pymanopt.Problem(manifold, cost)
        optimizer = TrustRegions(max_iterations=inner_steps, min_gradient_norm=1e-6, verbosity=0)
        W = optimizer.run(problem, initial_point=W).point
        short = rho - np.sum(root * W, axis=0)
        multipliers = np.maximum(0.0, multipliers + penalty * short)
        if np.max(short) <= tol:
            break
        penalty *= 2.0
    return W
