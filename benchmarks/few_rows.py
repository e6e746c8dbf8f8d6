"""What confident floors could cost at best where p is about n: raises that know the population.

    python benchmarks/few_rows.py factors,20,25,below mixing,20,25,above

Each cell (a population, p, n, and a floor below or above ρ★) draws normal tables.
``confidence=0.95`` is compared with an oracle: the matrix of Ledoit and Wolf with floors raised so
that 95 % of these very tables keep them in the population, by a common raise on Fisher's scale and
by one for each variable. Residuals are those of the population.
"""

from __future__ import annotations

import sys
import warnings

import numpy as np
from coverage import population
from sklearn.covariance import LedoitWolf

from skcoral import CORAL, decorrelate, threshold

TABLES, LEVEL = 30, 0.95


def correlations(covariance: np.ndarray) -> np.ndarray:
    scale = np.sqrt(np.diag(covariance))
    return covariance / np.outer(scale, scale)


def covariance_of(kind: str, p: int) -> np.ndarray:
    """Three factors, or the mixtures of the coverage study."""
    if kind == "mixing":
        return population(p)[1]
    rng = np.random.default_rng(7)
    loadings = rng.normal(size=(p, 3))
    return loadings @ loadings.T + np.diag(rng.uniform(0.5, 2, p))


def in_population(T: np.ndarray, scale: np.ndarray, C: np.ndarray) -> tuple[np.ndarray, float]:
    """Fidelities on Fisher's scale, and the sum of squared correlations of the outputs."""
    B = T / scale[:, None]
    G = B.T @ C @ B
    spread = np.sqrt(np.diag(G))
    own = np.diag(C @ B) / spread / np.sqrt(np.diag(C))
    residual = (np.sum((G / np.outer(spread, spread)) ** 2) - len(G)) / 2
    return np.arctanh(np.clip(own, -1, 1 - 1e-12)), float(residual)


def cell(kind: str, p: int, n: int, side: str) -> str:
    """One line of the table."""
    C = covariance_of(kind, p)
    star = threshold(correlations(C)).value
    floor = star - 0.03 if side == "below" else 0.5 * (1 + star)
    target, root = np.arctanh(floor), np.linalg.cholesky(C)
    tables = [
        np.random.default_rng([s, p, n, 99]).normal(size=(n, p)) @ root.T for s in range(TABLES)
    ]
    today = []
    for X in tables:
        coral = CORAL(floor, confidence=LEVEL).fit(X)
        today.append(in_population(coral.T_, coral.scale_, C))
    held = np.mean([f.min() >= target for f, _ in today])
    fits = []
    for X in tables:
        scale = X.std(axis=0, ddof=1)
        shrunk = LedoitWolf().fit((X - X.mean(axis=0)) / scale).covariance_
        fits.append((correlations(shrunk), scale))

    def at(raised: np.ndarray) -> tuple[np.ndarray, float]:
        floors = np.clip(np.tanh(target + raised), 0, 1)
        found = [in_population(decorrelate(R, floors).T, scale, C) for R, scale in fits]
        return np.array([f for f, _ in found]) - target, float(np.mean([d for _, d in found]))

    low, high = -1.0, 3.0
    for _ in range(9):  # the least common raise at which the share of tables is reached
        middle = 0.5 * (low + high)
        enough = np.mean(at(np.full(p, middle))[0].min(axis=1) >= 0) >= LEVEL
        low, high = (low, middle) if enough else (middle, high)
    common = at(np.full(p, high))[1]
    own, raised = np.inf, np.full(p, high)
    for _ in range(5):
        errors, residual = at(raised)
        if np.mean(errors.min(axis=1) >= 0) >= 0.93:
            own = min(own, residual)
        spread = errors.std(axis=0)
        worst = np.quantile(((errors.mean(axis=0) - errors) / spread).max(axis=1), LEVEL)
        raised = np.clip(raised - errors.mean(axis=0) + worst * spread, -1, 3)
    cost = float(np.mean([d for _, d in today]))
    raw = (np.sum(correlations(C) ** 2) - p) / 2
    return (
        f"| {kind} | {p} | {n} | {floor:.3f} ({side}) | {raw:.2f} | {cost:.2f} ({100 * held:.0f} %)"
        f" | {common:.2f} ({100 * common / cost:.0f} %) | {own:.2f} ({100 * own / cost:.0f} %) |"
    )


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    for word in sys.argv[1:]:
        kind, p, n, side = word.split(",")
        print(cell(kind, int(p), int(n), side), flush=True)
