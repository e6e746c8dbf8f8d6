"""Choosing a floor: what usual floors give, and one answer for each way of asking."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from skcoral import api
from skcoral._frames import judge, read_common_floors
from skcoral._lowrank import largest_residuals
from skcoral._validation import check_budget
from skcoral.exceptions import (
    InvalidArgumentError,
    NotCertifiedWarning,
    SingularCorrelationWarning,
)
from skcoral.measured import rounded_down
from skcoral.measures import inflation_factors
from skcoral.results import Decorrelation, Threshold
from skcoral.showing import Shown

FLOORS = (0.85, 0.9, 0.95, 0.99)
#: What counts as little correlation for a recommendation.
LITTLE_CORRELATION, LITTLE_VIF = 0.5, 2.0
#: Outputs that keep this much without any residual need no compromise.
NEARLY_ALL = 0.95
_TARGETS = ("rho_min", "budget", "max_vif", "max_correlation")
_SETTINGS = ("pair_weights", "anchors", "tol", "max_iter", "on_singular", "rank_tol")


def check_target(asked: Any, spelled: Callable[[str], str] = str) -> None:
    """Raise an error where more than one of floors, budget and limits is asked for.

    ``spelled`` tells how the reader writes the name of an argument.
    """
    given = [spelled(name) for name in _TARGETS if getattr(asked, name, None) is not None]
    floors, *others, last = map(spelled, _TARGETS)
    if len(given) > 1:
        raise InvalidArgumentError(
            f"Give one of {', '.join([floors, *others])} and {last}, not both {given[0]} and "
            f"{given[1]}: with a budget or a limit, the common floor is what is maximised."
        )
    if given and given[0] != floors and getattr(asked, "support", None) is not None:
        raise InvalidArgumentError(
            f"A support goes with floors ({floors}), not with {given[0]}: drop one of them."
        )
    if given == [last] and asked.criterion == "absolute":
        raise InvalidArgumentError(
            f"{last} limits the largest residual correlation, which is criterion='worst': leave "
            "the criterion out."
        )
    if given == [others[-1]] and asked.criterion in ("worst", "absolute"):
        raise InvalidArgumentError(
            f"{others[-1]} limits the VIFs, and no criterion of residual correlation is minimised: "
            f"leave criterion={asked.criterion!r} out."
        )


def solve_for(
    R: Any, asked: Any, *, floors: Any = None, warm: Decorrelation | None = None
) -> Decorrelation:
    """Solve for floors, a budget or a limit, whichever the settings have: those of a ``CORAL``.

    ``floors`` replace those of the settings; ``warm`` is the answer to a neighbouring problem.
    """
    check_target(asked)
    settings = {name: getattr(asked, name) for name in _SETTINGS}
    floors = asked.rho_min if floors is None else floors
    criterion, budget = asked.criterion, asked.budget
    if asked.max_vif is not None:
        criterion, budget = "vif", asked.max_vif
    elif asked.max_correlation is not None:
        criterion = "worst"
        budget = check_budget(asked.max_correlation, "The largest correlation", most=1.0)
    if floors is None and budget is not None:
        return api.maximize_fidelity(R, budget, criterion=criterion, **settings)
    return api.decorrelate(
        R,
        floors,
        criterion=criterion,
        support=asked.support,
        random_state=asked.random_state,
        warm=warm,
        **settings,
    )


@dataclass(frozen=True)
class Choice:
    """What one common floor gives: ``rho_min`` is None for ρ★, where nothing remains.

    Where variables depend on each other correlation remains at every floor; None is then the
    highest floor of the least residual, and its ``label`` is "lowest".

    Examples
    --------
    >>> compare_floors([[1.0, 0.8], [0.8, 1.0]]).choices[-1].rho_min
    0.99
    """

    rho_min: float | None
    floor: float
    largest_correlation: float
    largest_vif: float
    min_fidelity: float
    mean_fidelity: float
    status: str

    @property
    def label(self) -> str:
        """The floor in a table."""
        if self.rho_min is not None:
            return f"{self.rho_min:g}"
        return "lowest" if np.isinf(self.largest_vif) else "ρ★"


@dataclass(frozen=True, repr=False)
class FloorComparison(Shown):
    """What usual floors give for one matrix, and which of them is recommended.

    Attributes
    ----------
    choices : tuple of Choice
        From ρ★ upwards.
    recommended : Choice or None
        The highest floor at which no correlation exceeds 0.5 and no VIF 2; ρ★ where there is none
        or where it keeps 0.95 of every variable. None where variables depend on each other.
    largest_correlation_before, largest_vif_before : float
        Those of the variables themselves.

    Examples
    --------
    >>> found = compare_floors([[1.0, 0.8], [0.8, 1.0]])
    >>> found.recommended.rho_min, round(found.largest_vif_before, 2)
    (0.95, 2.78)
    """

    choices: tuple[Choice, ...]
    recommended: Choice | None
    largest_correlation_before: float
    largest_vif_before: float

    def sentence(self) -> str:
        """The recommendation, with its reason."""
        if self.recommended is None:
            return (
                "No floor is recommended: some variables are determined by others, or the rows are "
                "too few, so correlation stays at every floor. Leave columns out, or take more "
                "rows, and look again."
            )
        best, limits = self.recommended, f"{LITTLE_CORRELATION:g} and no VIF exceeds {LITTLE_VIF:g}"
        otherwise = "Lower floors leave less, down to none at ρ★; higher ones stay closer."
        if has_little(self.largest_correlation_before, self.largest_vif_before):
            return (
                "The variables hardly correlate: no two by more than "
                f"{limits}. Decorrelate them only where no correlation at all may remain (ρ★)."
            )
        if best.rho_min is not None:
            return (
                f"Recommended: floor {best.rho_min:g}, the highest of these at which no two "
                f"outputs correlate by more than {limits}. {otherwise}"
            )
        if best.min_fidelity >= NEARLY_ALL:
            kept = rounded_down(best.min_fidelity, 2)
            return (
                f"Recommended: ρ★, where every output keeps {kept:.2f} of its variable and no "
                "correlation remains."
            )
        return (
            "Recommended: ρ★. At the higher floors two outputs correlate by more than "
            f"{LITTLE_CORRELATION:g} or a VIF exceeds {LITTLE_VIF:g}."
        )

    summary = sentence

    def _table(self) -> tuple[str, list[str], dict[str, Any]]:
        names = [field.name for field in fields(Choice)]
        columns = {name: [getattr(choice, name) for choice in self.choices] for name in names}
        return "choice", [choice.label for choice in self.choices], columns


def compare_floors(
    R: Any, floors: Any = FLOORS, *, threshold: Threshold | None = None
) -> FloorComparison:
    """Say what usual floors give: largest correlation, largest VIF, weakest fidelity.

    Parameters
    ----------
    R : array-like, DataFrame or estimate of shape (p, p)
        Correlation matrix.
    floors : sequence of float, default=(0.85, 0.9, 0.95, 0.99)
        Floors to compare with ρ★; those below it are left out.
    threshold : Threshold, optional
        That of ``R``, if it is known.

    Returns
    -------
    FloorComparison

    Examples
    --------
    >>> from skcoral.choosing import compare_floors
    >>> from skcoral.datasets import load_wine
    >>> found = compare_floors(load_wine().to_frame().corr())
    >>> found.recommended.rho_min
    0.9
    >>> print(found.sentence())
    Recommended: floor 0.9, the highest of these at which no two outputs correlate by more than 0.5
    and no VIF exceeds 2. Lower floors leave less, down to none at ρ★; higher ones stay closer.
    """
    floors = read_common_floors(floors).tolist() if np.size(floors) else []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotCertifiedWarning)
        warnings.simplefilter("ignore", SingularCorrelationWarning)
        given = judge(R, on_singular="solve")
        th = api.threshold(given) if threshold is None else threshold
        # of a singular matrix the threshold is known by now
        best = api.decorrelate(given, None if th.rank is None else th.lower)
        answers: list[tuple[float | None, Decorrelation]] = [(None, best)]
        for floor in sorted(floors):
            if floor > th.value:
                answers.append((floor, api.decorrelate(given, floor, warm=answers[-1][1])))
    choices = [
        Choice(
            rho_min=rho_min,
            floor=th.value if rho_min is None else rho_min,
            largest_correlation=float(largest_residuals(result.correlation).max(initial=0.0)),
            largest_vif=_largest_vif(result.correlation, result.rank),
            min_fidelity=result.min_fidelity,
            mean_fidelity=result.mean_fidelity,
            status=result.status,
        )
        for rho_min, result in answers
    ]
    return FloorComparison(
        tuple(choices),
        _recommended(choices) if best.rank is None else None,
        float(largest_residuals(given.R).max(initial=0.0)),
        _largest_vif(given.R, best.rank),
    )


def _largest_vif(G: Any, rank: int | None) -> float:
    return float("inf") if rank is not None else float(inflation_factors(G).max())


def _recommended(choices: list[Choice]) -> Choice:
    if choices[0].min_fidelity >= NEARLY_ALL:
        return choices[0]
    fits = [c for c in choices if has_little(c.largest_correlation, c.largest_vif)]
    return fits[-1] if fits else choices[0]


def has_little(correlation: float, vif: float) -> bool:
    """Whether no two variables correlate much."""
    return correlation <= LITTLE_CORRELATION and vif <= LITTLE_VIF
