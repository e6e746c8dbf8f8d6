"""Tables of deficient rank of three kinds, and their factors."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from skcoral.bounds.arithmetic import Floats
from skcoral.bounds.rank import factor_bound
from skcoral.core.solution import Certificate


def noise(n, p, seed=0):
    return np.random.default_rng(seed).normal(size=(n, p))


def factors(n, p, seed=0, k=3):
    rng = np.random.default_rng(seed)
    loadings = 0.6 * rng.normal(size=(k, p))
    return rng.normal(size=(n, k)) @ loadings + rng.normal(size=(n, p)) * np.sqrt(
        0.3 + rng.uniform(size=p)
    )


def sums(n, p, k, seed=0):
    """The last k columns are sums of three others."""
    X = factors(n, p - k, seed)
    rng = np.random.default_rng(seed + 1)
    totals = [X[:, rng.choice(p - k, 3, replace=False)].sum(axis=1) for _ in range(k)]
    return np.column_stack([X, *totals])


def factor_of(X):
    """``A`` with unit columns and ``AᵀA`` the correlation matrix of the rows."""
    Z = X - X.mean(axis=0)
    Z = Z / np.linalg.norm(Z, axis=0)
    _, s, vt = np.linalg.svd(Z, full_matrices=False)
    r = int((s > 1e-8 * s[0]).sum())
    A = s[:r, None] * vt[:r]
    return A / np.linalg.norm(A, axis=0)


def bound_of(kind, arrays, A, floors, criterion="squared"):
    """What a dual point proves."""
    certificate = Certificate(kind, {"factor": A, **arrays}, {"criterion": criterion})
    return float(factor_bound(certificate, criterion, None, floors, A, Floats()).bound.lower)


@pytest.fixture(scope="session")
def tables():
    """Makers of tables and factors."""

    return SimpleNamespace(
        noise=noise, factors=factors, sums=sums, factor_of=factor_of, bound_of=bound_of
    )
