"""The paper's protocol beside this package: time, and how many starts end in a worse optimum."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np

from skcoral.api import decorrelate, threshold
from skcoral.paper.protocol import run_protocol
from skcoral.paper.study import Study

#: System, floor (None: the threshold) and whether the support is restricted.
PROBLEMS: tuple[tuple[str, float | None, bool], ...] = (
    ("wine", 0.85, False),
    ("wine", None, False),
    ("wdi", 0.85, False),
    ("wdi", None, False),
    ("p18", 0.99, False),
    ("p50", 0.99, False),
    ("p50", None, False),
    ("p18", 0.0, True),
    ("p18", 0.3, True),
    ("p18", 0.5, True),
    ("p18", 0.85, True),
)


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
    >>> from skcoral.paper import Study, compare_with_protocol
    >>> (wdi,) = compare_with_protocol(Study(n_starts=2), problems=[("wdi", None, False)])
    >>> wdi.system, wdi.problem, wdi.n_starts
    ('wdi', 'threshold ρ★', 2)
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
    study: Study | None = None,
    *,
    problems: Sequence[tuple[str, float | None, bool]] = PROBLEMS,
) -> tuple[ProtocolComparison, ...]:
    """Run the paper's protocol on a selection of its problems and compare.

    Parameters
    ----------
    study : Study, optional
        The systems, and the number and the seed of the random starts: 100 and 0 by default, which
        take minutes in all.
    problems : sequence of (str, float or None, bool), optional
        System, floor (None: the threshold) and whether the support is restricted, of each problem.

    Returns
    -------
    tuple of ProtocolComparison

    Examples
    --------
    >>> from skcoral.paper import Study, compare_with_protocol
    >>> (wine,) = compare_with_protocol(Study(n_starts=5), problems=[("wine", 0.85, False)])
    >>> wine.problem, wine.share_worse, round(wine.typical_ratio)  # worse ends are 14 times worse
    ('D2 at ρ_min = 0.85', 0.2, 14)
    """
    study = study or Study()
    return tuple(_compare(study, *problem) for problem in problems)


def _compare(
    study: Study, system: str, rho_min: float | None, restricted: bool
) -> ProtocolComparison:
    R = study.matrix(system)
    support = study.support(system) if restricted else None
    starts: dict[str, Any] = {"n_starts": study.n_starts, "random_state": study.random_state}
    begun = perf_counter()
    if rho_min is None:
        bound = threshold(R)
        problem, ours, gap, T = "threshold ρ★", bound.lower, bound.gap, bound.T
    else:
        found = decorrelate(R, rho_min, support=support, **starts)
        problem, ours, gap, T = f"D2 at ρ_min = {rho_min:g}", found.objective, found.gap, found.T
    our_seconds = perf_counter() - begun
    run = run_protocol(R, rho_min, support=support, **starts)
    worse = run.worse(ours)
    # R^{-1/2} has a positive determinant, so T and Q = R^{1/2}T have determinants of the same sign.
    mirrored = np.mean(run.determinants != np.sign(np.linalg.det(T)))
    return ProtocolComparison(
        system=system,
        problem=f"{problem}, restricted support" if restricted else problem,
        n_starts=study.n_starts,
        best=run.best,
        ours=ours,
        gap=gap,
        share_worse=run.share_worse(ours),
        share_mirrored=np.nan if restricted else float(mirrored),
        typical_ratio=float(np.median(run.values[worse] / ours)) if worse.any() else np.nan,
        worst_violation=float(run.violations[np.abs(run.values - run.best).argmin()]),
        seconds=run.seconds,
        our_seconds=our_seconds,
    )
