"""The paper's protocol beside this package: time, and how many starts end in a worse optimum."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from time import perf_counter

import numpy as np

from skcoral.api import decorrelate, threshold
from skcoral.paper.protocol import ProtocolRun, protocol_primal, protocol_threshold
from skcoral.paper.protocol_support import protocol_support
from skcoral.paper.study import Study

#: System, problem and floor of everything that is compared.
PROBLEMS: tuple[tuple[str, str, float], ...] = (
    ("wine", "primal", 0.85),
    ("wine", "threshold", 0.0),
    ("wdi", "primal", 0.85),
    ("wdi", "threshold", 0.0),
    ("p18", "primal", 0.99),
    ("p50", "primal", 0.99),
    ("p50", "threshold", 0.0),
    ("p18", "support", 0.0),
    ("p18", "support", 0.3),
    ("p18", "support", 0.5),
    ("p18", "support", 0.85),
)
_WORDS = {
    "primal": "D2 at ρ_min = {:g}",
    "threshold": "threshold ρ★",
    "support": "D2 at ρ_min = {:g}, restricted support",
}


@dataclass(frozen=True)
class ProtocolComparison:
    """One problem solved by the paper's protocol and by this package.

    Attributes
    ----------
    system, problem : str
        What was solved.
    n_starts : int
        Random starts of the protocol.
    best : float
        The protocol's best feasible value: D2, or the least fidelity.
    ours, gap : float
        This package's value and its proved gap.
    share_worse : float
        Share of the protocol's starts that end more than 1 % worse than ours, or infeasible.
    share_mirrored : float
        Share of starts whose outputs end with the other orientation (sign of the determinant) than
        ours. For the threshold that is the component of the orthogonal group without the solution,
        and no path leaves it. NaN under a support restriction.
    typical_ratio : float
        Median of (end / ours) over the starts that end worse; NaN if none does.
    worst_violation : float
        By how much the protocol's best solution misses a floor at most.
    seconds, our_seconds : float
        All starts together, and one solve of ours.

    Examples
    --------
    >>> from skcoral.paper import compare_with_protocol
    >>> wine = compare_with_protocol()[0]  # doctest: +SKIP
    >>> wine.seconds > wine.our_seconds  # doctest: +SKIP
    True
    """

    system: str
    problem: str
    n_starts: int
    best: float
    ours: float
    gap: float
    share_worse: float
    share_mirrored: float
    typical_ratio: float
    worst_violation: float
    seconds: float
    our_seconds: float


def compare_with_protocol(
    study: Study | None = None, *, n_starts: int = 100, random_state: int = 0
) -> tuple[ProtocolComparison, ...]:
    """Run the paper's protocol on a selection of its problems and compare.

    Parameters
    ----------
    study : Study, optional
        The systems, where they are at hand already.
    n_starts : int, default=100
        Random starts of each problem; a hundred take minutes in all.
    random_state : int, default=0
        Seed of the starts.

    Returns
    -------
    tuple of ProtocolComparison

    Examples
    --------
    >>> from skcoral.paper import compare_with_protocol
    >>> wine = compare_with_protocol()[0]  # doctest: +SKIP
    >>> wine.problem, wine.share_worse, round(wine.typical_ratio, 1)  # doctest: +SKIP
    ('D2 at ρ_min = 0.85', 0.38, 13.9)
    """
    return tuple(_compare(study or Study(), n_starts, random_state))


def _compare(study: Study, n_starts: int, random_state: int) -> Iterator[ProtocolComparison]:
    for system, problem, rho_min in PROBLEMS:
        R = study.matrix(system)
        start = perf_counter()
        if problem == "threshold":
            bound = threshold(R)
            ours, gap, T = bound.lower, bound.gap, bound.T
        else:
            support = study.support(system) if problem == "support" else None
            found = decorrelate(
                R, rho_min, support=support, n_starts=n_starts, random_state=random_state
            )
            ours, gap, T = found.objective, found.gap, found.T
        our_seconds = perf_counter() - start
        run = _protocol(study, system, problem, rho_min, n_starts, random_state)
        yield ProtocolComparison(
            system=system,
            problem=_WORDS[problem].format(rho_min),
            n_starts=n_starts,
            best=run.best,
            ours=ours,
            gap=gap,
            share_worse=run.share_worse(ours),
            # R^{-1/2} has a positive determinant, so T and Q = R^{1/2}T lie on the same side.
            share_mirrored=float(np.mean(run.determinants != np.sign(np.linalg.det(T))))
            if problem != "support"
            else np.nan,
            typical_ratio=_typical_ratio(run, ours),
            worst_violation=float(run.violations[np.abs(run.values - run.best).argmin()]),
            seconds=run.seconds,
            our_seconds=our_seconds,
        )


def _protocol(
    study: Study, system: str, problem: str, rho_min: float, n_starts: int, random_state: int
) -> ProtocolRun:
    R = study.matrix(system)
    if problem == "threshold":
        return protocol_threshold(R, n_starts=n_starts, random_state=random_state)
    if problem == "primal":
        return protocol_primal(R, rho_min, n_starts=n_starts, random_state=random_state)
    return protocol_support(
        R, study.support(system), rho_min, n_starts=n_starts, random_state=random_state
    )


def _typical_ratio(run: ProtocolRun, ours: float) -> float:
    ratio = run.values / ours
    worse = ratio > 1.01 if run.problem == "primal" else ratio < 0.99
    return float(np.median(ratio[worse])) if worse.any() else float("nan")
