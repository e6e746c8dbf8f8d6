"""What a result means, in sentences."""

from __future__ import annotations

import numpy as np

from skcoral.plotting.frontier import CRITERION_WORDS
from skcoral.results import Decorrelation, Threshold

CRITERIA = CRITERION_WORDS


def guarantee(result: Decorrelation) -> str:
    """The promise that a result makes, in one sentence.

    Examples
    --------
    >>> from skcoral import decorrelate
    >>> print(guarantee(decorrelate([[1.0, 0.6], [0.6, 1.0]], 0.9)))
    Every output keeps a correlation of at least 0.9486 with its own source, and all outputs are
    uncorrelated.
    """
    keeps = _keeps(result)
    if result.status == "exact":
        return f"{keeps}, and all outputs are uncorrelated."
    measure = CRITERIA[result.criterion]
    if result.pair_weights is not None:
        measure = f"weighted {measure}"
    if result.status == "optimal":
        return (
            f"{keeps}, and the {measure} that is left, {result.objective:.6g}, is the least "
            f"possible (certified: no transformation that keeps as much can have less than "
            f"{max(result.lower_bound, 0.0):.6g})."
        )
    return (
        f"{keeps}; the {measure} is {result.objective:.6g}, the least that was found, and it is "
        f"proved that no transformation allowed here can have less than "
        f"{max(result.lower_bound, 0.0):.6g}."
    )


def certificate(result: Decorrelation) -> str:
    """How far the result is from the best possible, in one sentence."""
    if result.status == "exact":
        return f"certified: no residual correlation ({result.objective:.1e}, by rounding)"
    state = {
        "optimal": "certified optimal",
        "best_found": "feasible, optimality not proved",
        "not_converged": "feasible, the solver stopped early",
    }[result.status]
    return (
        f"{state}; residual {result.objective:.6g}, "
        f"lower bound {max(result.lower_bound, 0.0):.6g}, gap {max(result.gap, 0.0):.1e}"
    )


def threshold(th: Threshold) -> str:
    """What the threshold says, in one sentence."""
    return (
        f"Exact decorrelation can keep every output at {th.value:.6f} and no higher "
        f"(ρ★ lies between {th.lower:.9f} and {th.upper:.9f})."
    )


def rounded_down(fidelity: float) -> float:
    """A fidelity to four digits: a promise must not say more than what holds."""
    return float(np.floor(fidelity * 1e4 + 1e-6) / 1e4)


def is_certified(result: Decorrelation) -> bool:
    """Whether the result is proved to be the best possible."""
    return result.status in ("exact", "optimal")


def _keeps(result: Decorrelation) -> str:
    floors = np.asarray(result.rho_min)
    weakest = result.min_fidelity
    if np.ptp(floors) < 1e-12:
        promised = rounded_down(max(weakest, float(floors[0])))
        return f"Every output keeps a correlation of at least {promised:.4f} with its own source"
    return (
        "Every output keeps at least the correlation with its own source that was asked for "
        f"(floors from {floors.min():.4g} to {floors.max():.4g}; the weakest keeps {weakest:.4f})"
    )
