"""What a result must satisfy, computed here from the definitions and asked of the checker."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from skcoral.certificates import check
from skcoral.exceptions import CoralError


def residual(G: Any, criterion: str, weights: Any) -> float:
    """The criterion of a correlation matrix, by its definition."""
    i, j = np.triu_indices(len(G), 1)
    values, w = np.abs(G[i, j]), np.ones(len(i)) if weights is None else weights[i, j]
    if criterion == "squared":
        return float((w * values**2).sum())
    scaled = w * values
    return float(scaled.max(initial=0.0) if criterion == "worst" else scaled.sum())


def figures(before: Any, after: Any, weights: Any = None) -> dict[str, float]:
    """The figures of a headline, of rows and of their outputs, by NumPy and inverses."""
    n, p = before.shape
    C = np.cov(before.T, after.T, aweights=weights)
    C /= np.sqrt(np.outer(np.diag(C), np.diag(C)))
    R, G = C[:p, :p], C[p:, p:]
    vifs = [np.diag(np.linalg.inv(M)).max() if n > p else np.inf for M in (R, G)]
    return {
        "largest_correlation_before": np.abs(R - np.eye(p)).max(),
        "largest_correlation": np.abs(G - np.eye(p)).max(),
        "largest_vif_before": vifs[0],
        "largest_vif": vifs[1],
        "min_fidelity": np.diag(C[:p, p:]).min(),
    }


def wrongs(R: Any, result: Any, asked: dict[str, Any]) -> list[str]:
    """What is wrong with a result; empty if nothing is."""
    T = np.asarray(result.T.toarray() if hasattr(result.T, "toarray") else result.T)
    G = T.T @ R @ T
    # Rounding of R is magnified by the coefficients.
    room = 1e-9 + 4e-16 * len(R) * float(np.abs(T).sum(axis=0).max()) ** 2
    wrong = []
    if np.abs(np.diag(G) - 1).max() > room:
        wrong.append(f"variances off by {np.abs(np.diag(G) - 1).max():.1e}")
    fidelity = np.diag(R @ T)
    missed = float((result.rho_min - fidelity).max())
    if missed > room:
        wrong.append(f"a floor is missed by {missed:.1e}")
    value = residual(G, result.criterion, asked.get("pair_weights"))
    if abs(value - result.objective) > room * len(R) ** 2 * max(1.0, value):
        wrong.append(f"the residual is {value:.9g}, not {result.objective:.9g}")
    if "support" in asked and T[~asked["support"]].any():
        wrong.append("coefficients outside the support")
    if not result.lower_bound <= result.objective + 1e-12 * max(1.0, result.objective):
        wrong.append("the bounds are crossed")
    # The variables themselves meet every floor: no bound may exceed their residual.
    if result.lower_bound > residual(R, result.criterion, asked.get("pair_weights")) + room:
        wrong.append("the bound exceeds what the identity attains")
    try:
        verdict = check(result, R)
    except CoralError as error:
        return [*wrong, f"its check ends in {type(error).__name__}: {error}"[:300]]
    if not verdict.passed:
        wrong.append(f"its own check: {'; '.join(verdict.problems)}"[:300])
    return wrong


def forgeries(rng: Any, result: Any) -> list[tuple[str, Any]]:
    """Results that claim something untrue, each next to the one given."""
    p = len(result.names)
    turned = np.array(result.T if isinstance(result.T, np.ndarray) else result.T.toarray())
    turned[:, 0] *= 1 + 10.0 ** rng.uniform(-6, 0)
    out = [
        ("objective", replace(result, objective=result.objective + 10.0 ** rng.uniform(-6, 0))),
        ("fidelity", replace(result, fidelity=np.minimum(result.fidelity + 1e-3, 1.5))),
        ("T", replace(result, T=turned)),
        ("names", replace(result, names=tuple(f"y{j}" for j in range(p)))),
    ]
    if result.objective > 1e-4:
        raised = result.objective * (1 + 10.0 ** rng.uniform(-4, 0))
        out.append(("bound", replace(result, lower_bound=raised)))
        out.append(("exact", replace(result, status="exact")))
        if result.status == "best_found" and result.gap > 1e-3 * result.objective:
            out.append(("status", replace(result, status="optimal")))
    return out
