"""Random problems of every kind that the library solves, from a seed."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

import systems
from skcoral import threshold
from skcoral.core.linalg import correlation_of_covariance

CRITERIA = ("squared", "worst", "absolute")


@dataclass(frozen=True)
class Problem:
    """A correlation matrix with what is asked about it."""

    R: Any
    asked: dict[str, Any] = field(default_factory=dict)


def factor(rng: Any, p: int) -> Any:
    """A few common factors and uniquenesses."""
    loadings = rng.normal(size=(p, int(rng.integers(1, 4)))) * rng.uniform(0.2, 2)
    return correlation_of_covariance(
        loadings @ loadings.T + np.diag(rng.uniform(0.05, 1.5, size=p))
    )


def sample(rng: Any, p: int) -> Any:
    """Rows of a normal table, hardly more than variables or many more."""
    n = p + int(rng.integers(2, 6 * p))
    return correlation_of_covariance(np.cov(rng.normal(size=(n, p)).T))


def blocks(rng: Any, p: int) -> Any:
    """Two groups that know nothing of each other."""
    k = int(rng.integers(1, p))
    R = np.eye(p)
    R[:k, :k], R[k:, k:] = factor(rng, k), factor(rng, p - k)
    return R


def autoregressive(rng: Any, p: int) -> Any:
    """Correlations that fall with the distance, of either sign."""
    r = rng.choice([-1, 1]) * rng.uniform(0.05, 0.98)
    return r ** np.abs(np.subtract.outer(np.arange(p), np.arange(p)))


def equal(rng: Any, p: int) -> Any:
    """One correlation for all pairs."""
    r = rng.uniform(-0.95 / (p - 1), 0.98)
    return (1 - r) * np.eye(p) + r


def nearly_singular(rng: Any, p: int) -> Any:
    """One column that the others nearly determine."""
    X = rng.normal(size=(4 * p, p))
    X[:, -1] = X[:, :-1].sum(axis=1) + 10.0 ** rng.uniform(-4, -1) * rng.normal(size=4 * p)
    return correlation_of_covariance(np.cov(X.T))


def singular(rng: Any, p: int) -> Any:
    """A copy, a total, or fewer rows than variables."""
    X = rng.normal(size=(4 * p, p))
    kind = rng.integers(3)
    if kind == 0:
        X[:, -1] = X[:, 0]
    elif kind == 1:
        X[:, -1] = X[:, :-1].sum(axis=1)
    else:
        X = X[: max(p - 1, 3)]
    return correlation_of_covariance(np.cov(X.T))


def spectrum(rng: Any, p: int) -> Any:
    """Eigenvalues that fall by a factor, over up to seven orders of magnitude."""
    return systems.with_spectrum(
        np.logspace(0, -rng.uniform(0, 7), p), seed=int(rng.integers(1000))
    )


def common(rng: Any, p: int) -> Any:
    """Two factors, and of some variables nearly nothing else."""
    loadings = rng.normal(size=(p, 2))
    return correlation_of_covariance(
        loadings @ loadings.T + np.diag(10.0 ** rng.uniform(-5, 0, size=p))
    )


def collinear(rng: Any, p: int) -> Any:
    """One direction of next to no variance, down to a hundred millionth of the largest."""
    condition = 10.0 ** rng.uniform(1, 8)
    return systems.nearly_singular(p, condition=condition, seed=int(rng.integers(1000)))


FAMILIES = (factor, sample, blocks, autoregressive, equal, nearly_singular, singular)
REGULAR = (*FAMILIES[:-1], spectrum, common, collinear)


def floors(rng: Any, p: int) -> Any:
    """A common floor or mixed ones, from none to exactly one and everything close to one."""
    ends = 1 - 10.0 ** rng.uniform(-15, -3, size=p)
    low = rng.uniform(0, 1, size=p)
    kind = rng.integers(5)
    if kind == 0:
        return None
    if kind == 1:
        return float(rng.choice([0.0, 0.5, 0.9, 0.99, 0.999, 1.0, low[0], ends[0]]))
    if kind == 2:
        return low
    high = np.where(rng.random(p) < 0.5, ends, rng.choice([0.0, 0.85, 0.999, 1.0], size=p))
    return high if kind == 3 else np.where(rng.random(p) < 0.5, low, high)


def dense(rng: Any, family: Any) -> Problem:
    """A problem without a restriction on coefficients."""
    p = int(rng.integers(2, 9))
    asked: dict[str, Any] = {"rho_min": floors(rng, p), "criterion": str(rng.choice(CRITERIA))}
    if rng.random() < 0.25:
        W = rng.uniform(0, 2, size=(p, p)) * (rng.random((p, p)) < 0.6)
        W = np.triu(W, 1)
        if W.any():
            asked["pair_weights"] = W + W.T
    return Problem(family(rng, p), asked)


def restricted(rng: Any) -> Problem:
    """A problem with a random support."""
    p = int(rng.integers(3, 7))
    family = FAMILIES[int(rng.integers(len(FAMILIES) - 2))]
    mask = rng.random((p, p)) < rng.uniform(0.2, 0.95)
    np.fill_diagonal(mask, True)
    asked = {"rho_min": floors(rng, p), "criterion": str(rng.choice(CRITERIA)), "support": mask}
    return Problem(family(rng, p), {**asked, "n_starts": 8})


STEPS = np.array([0.0, 0.5, 0.9, 0.99, 0.999, 1 - 1e-5, 1 - 1e-6, 1 - 1e-8, 1.0])
HARDNESS = ("common", "mixed", "steps", "next to one", "next to the threshold")


def hard(rng: Any, family: Any, floors: str) -> Problem:
    """Floors of one kind, with weights or without, of a regular matrix."""
    p = int(rng.integers(2, 12))
    R = family(rng, p)
    weights = np.triu(rng.uniform(0.05, 2, (p, p)), 1) * (rng.random((p, p)) < 0.6)
    if floors == "common":
        rho = np.full(p, rng.uniform(0.8, 0.9999))
    elif floors == "mixed":
        rho = np.where(rng.random(p) < 0.3, 0.0, rng.uniform(0.2, 0.999, p))
    elif floors == "steps":  # over orders of magnitude, as the weights
        rho = rng.choice(STEPS, p)
        weights *= 10.0 ** rng.uniform(-8, 0, (p, p))
    elif floors == "next to one":
        rho = np.where(rng.random(p) < 0.5, 1 - 10 ** rng.uniform(-12, -1), rng.uniform(0.3, 1, p))
    else:
        rho = np.full(p, min(threshold(R).upper + 10 ** rng.uniform(-12, -3), 1.0))
    asked = {"rho_min": rho} | ({"pair_weights": weights + weights.T} if weights.any() else {})
    if rng.random() < 0.5:
        asked.pop("pair_weights", None)
    return Problem(R, asked)
