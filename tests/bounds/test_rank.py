"""The bound of the rank against its formula: random dual points and factors."""

from __future__ import annotations

from fractions import Fraction
from operator import mul
from typing import Any

import numpy as np
import pytest

from skcoral.bounds.rank import rank_bound
from skcoral.exceptions import CertificateError

p = 5
RNG = np.random.default_rng(4)
RHO = np.array([0.9, 0.6, 1.0, 0.3, 0.99])


def unit(a: np.ndarray) -> np.ndarray:
    return a / np.linalg.norm(a, axis=0)


def factor(r: int) -> np.ndarray:
    return unit(RNG.normal(size=(r, p)))


def point() -> dict[str, np.ndarray]:
    """An arbitrary dual point: H ≻ 0, and S indefinite."""
    B = RNG.normal(size=(p, p + 1))
    return {
        "H": B @ B.T / p + 0.3 * np.eye(p),
        "multipliers": RNG.uniform(0.1, 1.0, p),
        "diagonal": RNG.normal(size=p),
    }


def without_penalty(A: np.ndarray, dual: dict[str, Any]) -> tuple[float, np.ndarray]:
    H, lam, C = dual["H"], dual["multipliers"], A * dual["multipliers"]
    S = H - np.diag(np.diag(H) - dual["diagonal"])
    lost = np.trace(H - S) + p / 2 + np.trace(C @ np.linalg.inv(H) @ C.T)
    return float(2 * RHO @ lam - lost), S


@pytest.mark.parametrize("r", [1, 2, 4])
def test_the_bound_is_its_formula(arithmetic: Any, r: int) -> None:
    for _ in range(5):
        A, dual = factor(r), point()
        value, S = without_penalty(A, dual)
        wanted = value - 0.5 * np.sort(np.linalg.eigvalsh(S) ** 2)[-r:].sum()
        bound = rank_bound(dual, RHO, A, arithmetic)
        assert bound.lower <= wanted + 1e-13
        assert abs(bound.lower - wanted) < 1e-8
        assert abs(bound.upper - wanted) < 1e-8


@pytest.mark.parametrize("r", [1, 2, 4])
def test_the_factor_form_is_that_of_its_matrix(arithmetic: Any, r: int) -> None:
    """With one κ below zero; S is νI + VᵀV, and ν is zero where V is large."""
    for size in (0.2, 1.0, 3.0):
        A, V, kappa = factor(r), size * RNG.normal(size=(r, p)), RNG.uniform(0.2, 1.0, p)
        kappa[0] = 0.0
        kappa[0] = -0.999 / np.linalg.inv(V.T @ V + np.diag(kappa))[0, 0]
        nu = max(0.0, (p - np.sum(V * V)) / r)
        dual = {"V": V, "kappa": kappa, "multipliers": RNG.uniform(0.1, 1.0, p)}
        dual |= {"H": V.T @ V + np.diag(kappa), "diagonal": np.sum(V * V, axis=0) + nu}
        value, S = without_penalty(A, dual)
        wanted = value - 0.5 * np.sort(np.linalg.eigvalsh(S) ** 2)[-r:].sum()
        bound = rank_bound(dual, RHO, A, arithmetic)
        close = 1e-9 * abs(value)
        assert wanted - close <= bound.lower <= bound.upper <= wanted + close


def is_definite(V: np.ndarray, kappa: np.ndarray) -> bool:
    """Whether ``VᵀV + diag(κ)`` is positive definite, by elimination in fractions."""
    rows = [[Fraction(v) for v in row] for row in V.T.tolist()]
    H = [[sum(map(mul, a, b), Fraction(0)) for b in rows] for a in rows]
    for j, k in enumerate(kappa.tolist()):
        H[j][j] += Fraction(k)
    while H and H[0][0] > 0:
        first = H[0]
        H = [[h - row[0] / first[0] * f for h, f in zip(row, first, strict=True)] for row in H]
        H = [row[1:] for row in H[1:]]
    return not H


def test_no_matrix_that_is_not_definite_is_accepted(arithmetic: Any) -> None:
    """Least eigenvalues of either sign, from some 1e-7 to less than a rounding."""
    # its own draws: those of other tests in this process do not change them
    rng, accepted = np.random.default_rng(11), 0
    for trial in range(120):
        r, m = 2 + trial % 2, 1 + trial % 2
        A, V, kappa = factor(r), rng.normal(size=(r, p)), rng.uniform(0.1, 1.0, p)
        kappa[:m] = 0.0
        inverse = np.linalg.inv(V.T @ V + np.diag(kappa))[:m, :m]
        off = (-1) ** (trial // 2) * 10.0 ** rng.uniform(-17, -7)
        kappa[:m] -= (1 + off) / np.linalg.norm(inverse, 2)
        dual = {"V": V, "kappa": kappa, "multipliers": np.ones(p)}
        try:
            rank_bound(dual, RHO, A, arithmetic)
        except CertificateError:
            continue
        accepted += 1
        assert is_definite(V, kappa)
    assert accepted > 10
