"""What a result means, in sentences: the same ones in the command, the report and the app."""

from __future__ import annotations

import numpy as np

from .measured import rounded_down, shortened
from .results import Decorrelation, Threshold

#: What each criterion adds up.
CRITERIA = {
    "squared": "sum of squared residual correlations",
    "worst": "largest residual correlation",
    "absolute": "sum of absolute residual correlations",
}


def summary(result: Decorrelation) -> str:
    """Measured figures, what the certificate says, and details: one line each.

    Examples
    --------
    >>> from skcoral import decorrelate
    >>> print(summary(decorrelate([[1.0, 0.8], [0.8, 1.0]], 0.95, criterion="worst")))
    Largest correlation 0.80 → 0.29, largest VIF 2.8 → 1.1, every variable keeps at least 0.95
    (weakest: x0 0.950).
    Certified for the matrix given: no transformation with these floors has a smaller largest
    residual correlation than 0.288035 (proved lower bound 0.288035).
    Floor 0.95 for every variable, mean fidelity 0.9500, status optimal.
    """
    measured = result.measured
    lines = [] if measured is None else [measured.headline()]
    more = [rank(result), str(result.details.get("new_rows", ""))]
    said = [*lines, certificate(result), details(result), *more]
    return "\n".join(line for line in said if line)


def certificate(result: Decorrelation) -> str:
    """What is proved, and about what, in one sentence.

    Examples
    --------
    >>> from skcoral import decorrelate
    >>> print(certificate(decorrelate([[1.0, 0.6], [0.6, 1.0]], 0.9)))
    Certified for the matrix given: the outputs are uncorrelated up to rounding.
    """
    claim = _claim(result)
    if is_about_rows(result):
        start = "Certified for" if is_certified(result) else "Not certified for"
        return f"{start} {subject(result)}: {claim}."
    weakest = rounded_down(result.min_fidelity, 4)
    return (
        f"The certificate is about {subject(result)}, not about the plain rows: there, every "
        f"fidelity is at least {weakest:.4f}, and {claim}."
    )


def details(result: Decorrelation) -> str:
    """Floors, mean fidelity and status in one line."""
    status = {"best_found": "best found", "not_converged": "not converged"}.get(
        result.status, result.status
    )
    rank = "" if result.rank is None else f", rank {result.rank} of {len(result.names)}"
    return f"{floors(result)}, mean fidelity {result.mean_fidelity:.4f}, status {status}{rank}."


def rank(result: Decorrelation) -> str:
    """Which problem was solved, where the rank is below the number of variables; else nothing."""
    if result.rank is None:
        return ""
    return (
        f"{result.details['deficiency']} The largest coefficient of the transformation is "
        f"{float(result.details['amplification']):.3g}: rounding, and what new rows have in weak "
        "directions, grow by as much."
    )


def floors(result: Decorrelation) -> str:
    """Which floors were in force, in a few words."""
    floor = np.asarray(result.rho_min)
    if np.ptp(floor) < 1e-12:
        return f"Floor {float(floor[0]):.6g} for every variable"
    return f"Floors from {floor.min():.4g} to {floor.max():.4g}"


def unfloored(result: Decorrelation, asked: object) -> str:
    """A sentence where floors by name leave other variables without one; else nothing.

    Examples
    --------
    >>> from skcoral import decorrelate
    >>> print(unfloored(decorrelate([[1.0, 0.6], [0.6, 1.0]], {"x0": 0.9}), {"x0": 0.9}))
    1 of 2 variables has a floor; the others have none (0): x1.
    """
    if not hasattr(asked, "keys") or len(asked) >= len(result.names):  # type: ignore[arg-type]
        return ""
    named = {str(name) for name in asked.keys()}  # noqa: SIM118 - a Series iterates its values
    others = [name for name in result.names if name not in named]
    if not others:
        return ""
    shown = ", ".join(map(shortened, others[:6]))
    shown += f" and {len(others) - 6} more" if len(others) > 6 else ""
    count = f"{len(named)} of {len(result.names)} variables"
    have = "has" if len(named) == 1 else "have"
    return f"{count} {have} a floor; the others have none (0): {shown}."


def threshold(th: Threshold, about: str = "") -> str:
    """What the threshold says, in one sentence."""
    if th.rank is not None:
        start = f"For {about}, the" if about else "The"
        return (
            f"{start} variables span {th.rank} dimensions, so their {len(th.names)} outputs cannot "
            "all be uncorrelated: the least sum of squared correlations is "
            f"{th.least_residual:.6g}, and the common fidelity that is possible with it lies "
            f"between {th.lower:.6f} and {th.upper:.6f}."
        )
    start = f"For {about}, exact" if about else "Exact"
    return (
        f"{start} decorrelation can keep every output at {th.value:.6f} and no higher "
        f"(ρ★ lies between {th.lower:.9f} and {th.upper:.9f})."
    )


def is_certified(result: Decorrelation) -> bool:
    """Whether the result is proved to be the best possible for the matrix that was solved for."""
    return result.status in ("exact", "optimal")


def is_about_rows(result: Decorrelation) -> bool:
    """Whether the matrix that was solved for is that of the rows (or the one) given."""
    return bool(result.details.get("is_about_rows", True))


def subject(result: Decorrelation) -> str:
    """What the certificate is about."""
    known = result.details.get("about")
    return str(known) if known else "the matrix given"


def _claim(result: Decorrelation) -> str:
    if result.status == "exact":
        return "the outputs are uncorrelated up to rounding"
    measure = CRITERIA[result.criterion]
    if result.pair_weights is not None:
        measure = f"weighted {measure}"
    bound = max(result.lower_bound, 0.0)
    if result.status == "optimal":
        return (
            f"no transformation with these floors has a smaller {measure} than "
            f"{result.objective:.6g} (proved lower bound {bound:.6g})"
        )
    stopped = "the solver stopped early" if result.status == "not_converged" else "best found"
    return (
        f"the {measure} is {result.objective:.6g} ({stopped}), and no transformation allowed here "
        f"can have less than {bound:.6g}"
    )
