"""What a result means, in sentences: the same ones in the command, the report and the app."""

from __future__ import annotations

from typing import Any

import numpy as np

from skcoral.core.criteria import CRITERIA as CRITERIA
from skcoral.core.display import short, shortened
from skcoral.core.results import Decorrelation, Frontier, Threshold
from skcoral.core.solution import Budget, VifLimit
from skcoral.core.tolerances import OPTIMAL_GAP
from skcoral.core.validation import listing
from skcoral.data.effects import rounded_down

#: Residuals and prices up to this are zero but for rounding.
_ZERO = 1e-9


def summary(result: Decorrelation) -> str:
    """Measured figures, what the certificate says, and details: one line each.

    Examples
    --------
    >>> from skcoral import decorrelate
    >>> print(summary(decorrelate([[1.0, 0.8], [0.8, 1.0]], 0.95, criterion="worst")))
    Largest correlation 0.80 → 0.29, largest VIF 2.8 → 1.1, both variables keep 0.950.
    Certified for the matrix given: no transformation with these floors has a smaller largest
    residual correlation than 0.288035 (proved lower bound 0.288035).
    Floor 0.95 for every variable, mean fidelity 0.9500, status optimal.
    """
    measured = result.measured
    headline = "" if measured is None else measured.headline()
    lines = [headline, *proved(result), details(result), rank(result)]
    return "\n".join(line for line in lines if line)


def proved(result: Decorrelation) -> list[str]:
    """What is certified, how good the floor is, and what holds for the population."""
    return [certificate(result), goal(result), result.notes.confidence]


def minimises_residual(result: Decorrelation) -> bool:
    """Whether bound, gap and prices are about the answer; a limit on the VIF minimises none."""
    return not isinstance(result.goal, VifLimit)


def windows(before: object, after: object, fidelity: object, threshold: object) -> str:
    """The figures of many windows, in one sentence; nothing where no window has a model."""
    figures = (np.asarray(x, dtype=float).ravel() for x in (before, after, fidelity, threshold))
    was, left, fidelities, lower = (x[np.isfinite(x)] for x in figures)
    if not fidelities.size:
        return ""
    least = rounded_down(lower.min(), 4) if lower.size else np.nan
    known = f"; ρ★ from {least:.4f} to {lower.max():.4f}" if lower.size else ""
    return (
        f"Largest correlation {was.max():.2f} → {left.max():.2f}, every variable keeps at least "
        f"{rounded_down(fidelities.min(), 4):g} in its window{known}."
    )


def certificate(result: Decorrelation) -> str:
    """What is proved, and about what, in one sentence."""
    claim = _claim(result)
    start = "Certified for" if result.is_certified else "Not certified for"
    if result.notes.is_about_rows:
        return f"{start} {result.notes.about}: {claim}."
    weakest = rounded_down(result.min_fidelity, 4)
    plain = "the matrix given" if result.notes.about.startswith("the matrix") else "the plain rows"
    return (
        f"{start} {result.notes.about}: by these correlations every fidelity is at "
        f"least {weakest:.4f}, and {claim}. Nothing is certified for {plain}."
    )


def goal(result: Decorrelation) -> str:
    """How good the floor is where it was looked for: within a budget or a limit; else nothing."""
    asked = result.goal
    if not isinstance(asked, Budget | VifLimit):
        return ""
    if result.min_fidelity >= 1.0 - 1e-12:
        if isinstance(asked, VifLimit):
            within = f"No VIF exceeds {asked.max_vif:g}"
        else:
            within = f"The {CRITERIA[result.criterion]} is at most {asked.budget:g}"
        unchanged = "" if result.anchors is not None else ": nothing was changed"
        return f"{within} even at a floor of 1{unchanged}."
    if isinstance(asked, VifLimit):
        return ""
    known, proved = "", "proved"
    if not result.is_certified:
        known, proved = " found", f"proved: none above {asked.rho_upper:.6g} is possible"
    return (
        f"The floor {float(np.min(result.rho_min)):.6g} is the highest{known} at which the "
        f"{CRITERIA[result.criterion]} is at most {asked.budget:g} ({proved})."
    )


def details(result: Decorrelation) -> str:
    """Floors, mean fidelity and status in one line."""
    low, high = np.min(result.rho_min), np.max(result.rho_min)
    floors = f"Floors from {low:.4g} to {high:.4g}"
    if high - low < 1e-12:
        floors = f"Floor {low:.6g} for every variable"
    rank = f", rank {result.rank} of {len(result.names)}" if result.deficiency else ""
    mean = f"mean fidelity {result.mean_fidelity:.4f}"
    return f"{floors}, {mean}, status {status(result)}{rank}."


def rank(result: Decorrelation) -> str:
    """Which problem was solved, where the rank is below the number of variables; else nothing."""
    if not result.deficiency:
        return ""
    return (
        f"{result.deficiency} The largest coefficient of the transformation is "
        f"{result.amplification:.3g}; rounding errors can grow by this factor."
    )


def unfloored(result: Decorrelation, asked: object) -> str:
    """A sentence where variables have no floor: floors by name, or restricted coefficients."""
    if asked is None and not np.any(result.rho_min):
        return "No variable has a floor: none is given, and with a support there is no default."
    if not hasattr(asked, "keys") or len(asked) >= len(result.names):  # type: ignore[arg-type]
        return ""
    named = {str(name) for name in asked.keys()}  # noqa: SIM118 - a Series iterates its values
    others = [name for name in result.names if name not in named]
    if not others:
        return ""
    shown = listing([shortened(name) for name in others], 6, quote="")
    count = f"{len(named)} of {len(result.names)} variables"
    have = "has" if len(named) == 1 else "have"
    return f"{count} {have} a floor; the others have none (0): {shown}."


def threshold(th: Threshold, result: Decorrelation | None = None) -> str:
    """What the threshold says, in one sentence; beside a result, of which problem it is."""
    about = "" if result is None or result.notes.is_about_rows else result.notes.about
    if th.rank < len(th.names):
        start = f"For {about}, the" if about else "The"
        return (
            f"{start} variables span {th.rank} dimensions, so their {len(th.names)} outputs cannot "
            "all be uncorrelated: the least sum of squared correlations is "
            f"{th.least_residual:.6g}, and the common fidelity that is possible with it lies "
            f"between {th.lower:.6f} and {th.upper:.6f}."
        )
    start = f"For {about}, exact" if about else "Exact"
    of = "" if result is None else of_threshold(result)
    return (
        f"{start} decorrelation{of} can keep every fidelity at {th.value:.9f} and no higher (ρ★, "
        f"proved to within {th.gap:.1g})."
    )


def of_threshold(result: Decorrelation) -> str:
    """What the threshold is of, where that is another problem than the one that was solved."""
    if result.anchors is not None:
        return " of the variables themselves"
    return " with unrestricted coefficients" if result.is_restricted else ""


def threshold_summary(th: Threshold) -> str:
    """What the threshold says, what binds it, and its status: one line each."""
    shown = listing([shortened(name) for name in th.binding], 3, quote="")
    status = "optimal" if th.status == "optimal" else "best found"
    binding = f"Bound by {shown}; mean" if shown else "Mean"
    return (
        f"{threshold(th)}\n{binding} fidelity {float(np.mean(th.fidelity)):.4f}, status {status}."
    )


def frontier_summary(curve: Frontier) -> str:
    """Where the curve starts and ends, and what is proved: one line each."""
    order = np.argsort(curve.rho_min, kind="stable")
    low, high = (float(curve.rho_min[order[k]]) for k in (0, -1))
    least, most = (float(curve.objective[order[k]]) for k in (0, -1))
    floors = f"{len(curve)} floors from {low:.6g} to {high:.6g}"
    floors = floors if len(curve) > 1 else f"a floor of {high:.6g}"
    zero = f"0 up to ρ★ = {curve.threshold:.6g}"
    if most <= _ZERO:
        value = f"{zero}, and so at {'all of them' if len(curve) > 1 else 'it'}"
    elif len(curve) == 1:
        value = f"{most:.6g}"
    else:
        start = zero if least <= _ZERO else f"{least:.6g} at a floor of {low:.6g}"
        value = f"{start} and {most:.6g} at a floor of {high:.6g}"
    return (
        f"The least {CRITERIA[curve.criterion]} of {len(curve.names)} variables for {floors}.\n"
        f"It is {value}.\n{proved_points(curve)}"
    )


def about_curve(result: Decorrelation) -> str:
    """What the curve of a common floor is about, where that is not what was asked for."""
    remarks = []
    if not result.notes.is_about_rows:
        remarks.append(f"The curve is about {result.notes.about}, not about the plain rows.")
    other = ["one floor for all variables"] * bool(np.ptp(result.rho_min) > 1e-12)
    other += ["unrestricted coefficients"] * result.is_restricted
    other += ["VIFs without a limit"] * (not minimises_residual(result))
    if other:
        remarks.append(f"The curve is for {' and '.join(other)}; the answer can lie above it.")
    return " ".join(remarks)


def proved_points(curve: Frontier) -> str:
    """How many points of the curve are certified."""
    open_gap = curve.gap > OPTIMAL_GAP * np.maximum(1.0, curve.objective)
    if not open_gap.any():
        return "All points are certified." if len(curve) > 1 else "The point is certified."
    count = int(open_gap.sum())
    return (
        f"{count} of {len(curve)} points {'is' if count == 1 else 'are'} not certified; the "
        f"widest gap is {float(curve.gap.max()):.2g}."
    )


def clusters(suggested: tuple[str, int] | None, how: str) -> str:
    """Suggest the column whose repeated labels may name clusters; nothing without one."""
    if suggested is None:
        return ""
    return (
        f"{shortened(suggested[0])} has {suggested[1]} labels that repeat. If rows with the same "
        f"label are not independent, {how}."
    )


def status(result: Decorrelation) -> str:
    """The status in words; within a limit on the VIF it is about the floor, not the residual."""
    if isinstance(result.goal, VifLimit) and result.status == "optimal":
        return "optimal within the limit"
    in_words = {"best_found": "best found", "not_converged": "not converged"}
    return in_words.get(result.status, result.status)


def aim(result: Decorrelation) -> str:
    """What the status is about: the quantity that was made as small or as large as possible."""
    if isinstance(result.goal, VifLimit):
        return "the highest common floor within the limit on the VIF"
    return f"the least {CRITERIA[result.criterion]} with these floors"


def price(value: float) -> str:
    """What more of a floor costs; what is left of an interior point is 0."""
    return short(value, _ZERO)


def units(model: Any) -> str:
    """Mean and standard deviation of a fitted model's outputs, and for which matrix they hold."""
    result = model.result_
    scale = "standardised: mean 0, standard deviation 1"
    if model.output_scale == "original":
        scale = "in the units of their sources, with the same mean and standard deviation"
    if result.notes.is_about_rows:
        measured = result.measured
        weighted = measured is not None and measured.weighted
        return f"{scale} by the weights of the rows" if weighted else scale
    differ = "standard deviations differ"
    if model.n_samples_seen_:
        # An estimator may have another centre than the mean, as MinCovDet has.
        moved = np.abs(model.mean_ - model.moments_.mean) > 1e-9 * model.scale_
        differ = "means and standard deviations differ" if moved.any() else differ
    return f"{scale} by {result.notes.about} (on the rows, {differ} from that)"


def _claim(result: Decorrelation) -> str:
    if result.status == "exact":
        return "the outputs are uncorrelated up to rounding"
    if isinstance(result.goal, VifLimit):
        limit, top = result.goal.max_vif, result.goal.rho_upper
        above = -rounded_down(-top, 6)
        proved = f"no transformation within this limit can keep more than {above:.6f}"
        if top >= 1.0 > result.min_fidelity:
            proved = "that no other transformation keeps more is not proved"
        floor = rounded_down(float(result.rho_min.min()), 6)
        return f"every variable keeps {floor:.6f} with no VIF above {limit:g}, and {proved}"
    measure = CRITERIA[result.criterion]
    if result.pair_weights is not None:
        measure = f"weighted {measure}"
    bound = max(result.lower_bound, 0.0)
    if result.status == "optimal":
        asked = "these floors" + " and restrictions" * result.is_restricted
        return (
            f"no transformation with {asked} has a smaller {measure} than "
            f"{result.objective:.6g} (proved lower bound {bound:.6g})"
        )
    stopped = "the solver stopped early" if result.status == "not_converged" else "best found"
    return (
        f"the {measure} is {result.objective:.6g} ({stopped}){_closeness(result.objective, bound)} "
        f"no transformation under the same conditions has less than {bound:.6g}"
    )


def _closeness(objective: float, bound: float) -> str:
    """How far above the least value an objective can be, in per cent, rounded upwards."""
    if not bound < objective < 2.0 * bound:
        return ", and"
    share = 100.0 * (objective - bound) / bound
    share = -rounded_down(-share, 1 - int(np.floor(np.log10(share))))  # two digits
    return f", proved to be within {share:.2g} % of the least:"
