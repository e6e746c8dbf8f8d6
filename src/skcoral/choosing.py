"""Choosing a floor: what usual floors give, and a recommendation."""

from __future__ import annotations

import warnings
from bisect import bisect
from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import cache
from typing import Any

import numpy as np

from skcoral import api
from skcoral.core.display import Shown, shortened
from skcoral.core.linalg import inflation_factors, largest_residuals
from skcoral.core.problem import Matrix, check_matrix
from skcoral.core.results import Decorrelation
from skcoral.core.validation import check_common_floors, listing
from skcoral.data.effects import Measured, rounded_down, vif_text
from skcoral.exceptions import NotCertifiedWarning, SingularCorrelationWarning

FLOORS = (0.85, 0.9, 0.95, 0.99)
#: The limits of a recommendation: the largest correlation and the largest VIF of the outputs. Every
#: regular R allows a floor of 1/√2 within both: outputs with G = (R + I)/2 have |G_ij| ≤ 1/2, VIFs
#: of at most 2 because G ⪰ I/2, and fidelities diag(R^½ G^½) ≥ diag(R)/√2.
MOST_CORRELATION, MOST_VIF = 0.5, 2.0
#: Below this fidelity an output shares less than half of its variance with its variable.
RECOGNISABLE = 0.7
_STEPS = 1000  # recommended floors have three decimals, and are solved for as they are printed
_ROUNDING = 1e-6  # relative: figures of one floor, solved from different starts, agree within this


@dataclass(frozen=True)
class Choice:
    """What one common floor gives; ``rho_min`` is None for ρ★, where no correlation remains.

    If variables depend on each other, correlation remains at every floor. ``rho_min`` is then None
    for the highest floor with the least residual, and its ``label`` is "lowest".

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

    @property
    def cells(self) -> dict[str, str]:
        """The figures to compare, by column of a table; fidelity is rounded down."""
        return {
            "floor": self.label,
            "largest |r|": f"{self.largest_correlation:.2f}",
            "largest VIF": vif_text(self.largest_vif),
            "weakest": f"{rounded_down(self.min_fidelity, 3):.3f}",
        }

    @property
    def correlates(self) -> bool:
        """Whether two outputs correlate by more than 0.5."""
        return self.largest_correlation > MOST_CORRELATION * (1.0 - _ROUNDING)

    @property
    def inflates(self) -> bool:
        """Whether a VIF exceeds 2; infinite ones do not count, because no floor changes them."""
        return MOST_VIF * (1.0 - _ROUNDING) < self.largest_vif < np.inf


@dataclass(frozen=True, repr=False)
class FloorComparison(Shown):
    """What usual floors give for one matrix, and which floor is recommended.

    Attributes
    ----------
    choices : tuple of Choice
        From ρ★ upwards, the recommended floor among them.
    recommended : Choice or None
        The highest floor, with three decimals, at which no two outputs correlate by more than 0.5
        and no VIF exceeds 2. It is 1 if the variables themselves are within these limits, and None
        if no floor is. If variables depend on each other, every VIF is infinite, and only
        correlations count.
    above : Choice or None
        What a floor higher by 0.001 gives, which exceeds a limit; None if there is no higher floor.
    largest_correlation_before, largest_vif_before : float
        The same figures for the variables themselves.
    dependent : str
        Why every VIF is infinite; empty if they are finite.
    leave_out : tuple of str
        If no floor of at least 0.7 is recommended: columns that others determine, to leave out
        instead.
    floor_without : float or None
        The floor recommended without these columns, at least 0.7.

    Examples
    --------
    >>> compared = compare_floors([[1.0, 0.8], [0.8, 1.0]])
    >>> compared.recommended.rho_min, compared.above.correlates
    (0.979, True)
    """

    choices: tuple[Choice, ...]
    recommended: Choice | None
    above: Choice | None
    largest_correlation_before: float
    largest_vif_before: float
    dependent: str = ""
    leave_out: tuple[str, ...] = ()
    floor_without: float | None = None

    def sentence(self) -> str:
        """The recommendation: its figures, what the next floor would exceed, what else to do."""
        best, above = self.recommended, self.above
        if best is None:
            more = "" if self.dependent else f", or a VIF exceeds {MOST_VIF:g},"
            text = [
                f"No floor is recommended: two outputs correlate by more than {MOST_CORRELATION:g}"
                f"{more} at every floor compared."
            ]
        elif above is None:
            more = "" if self.dependent else f" and no VIF exceeds {MOST_VIF:g}"
            text = [f"No two variables correlate by more than {MOST_CORRELATION:g}{more}."]
            if not self.dependent:
                text.append("Decorrelate them only where no correlation at all may remain (ρ★).")
        else:
            more = f", the largest VIF {vif_text(best.largest_vif)}"
            exceeded = [f"a correlation exceeds {MOST_CORRELATION:g}"] * above.correlates
            exceeded += [f"a VIF exceeds {MOST_VIF:g}"] * above.inflates
            text = [
                f"Recommended: floor {best.label}. The largest correlation left is "
                f"{best.largest_correlation:.2f}{'' if self.dependent else more}.",
                f"At {above.label} {' and '.join(exceeded)}.",
            ]
            if best.min_fidelity < RECOGNISABLE:
                text.append(
                    "Outputs have become other variables there: the weakest shares "
                    f"{best.min_fidelity**2:.0%} of the variance of its source."
                )
        if self.dependent:
            text.append(f"Every VIF is infinite at every floor: {self.dependent}.")
        if best is not None and best.status not in ("exact", "optimal"):
            text.append("The answer at this floor is not certified: less may be possible.")
        if self.floor_without is not None:
            # Without the columns that others determine, the rest may keep a high floor.
            names = listing([shortened(name) for name in self.leave_out], 6, quote="")
            then = f"floor {self.floor_without:g} is recommended"
            if self.floor_without == 1.0:
                then = "the others are within the limits as they are"
            text.append(f"Leave columns out instead: without {names}, {then}.")
        return " ".join(text)

    summary = sentence

    def _table(self) -> tuple[str, list[str], dict[str, Any]]:
        names = [field.name for field in fields(Choice)]
        columns = {name: [getattr(choice, name) for choice in self.choices] for name in names}
        return "choice", [choice.label for choice in self.choices], columns


def compare_floors(
    R: Any,
    floors: Any = FLOORS,
    *,
    measure: Callable[[Decorrelation], Measured] | None = None,
) -> FloorComparison:
    """Say what usual floors give, and recommend the highest one that leaves little correlation.

    Parameters
    ----------
    R : array-like, DataFrame or estimate of shape (p, p)
        Correlation matrix.
    floors : sequence of float, default=(0.85, 0.9, 0.95, 0.99)
        Floors to compare with ρ★; those below it are left out.
    measure : callable, optional
        Measures a result on rows, where ``R`` is not their plain correlation matrix. By default
        figures are those for ``R``.

    Returns
    -------
    FloorComparison

    Examples
    --------
    >>> from skcoral.choosing import compare_floors
    >>> from skcoral.datasets import load_wine
    >>> compared = compare_floors(load_wine().to_frame().corr())
    >>> print(compared.sentence())
    Recommended: floor 0.94. The largest correlation left is 0.50, the largest VIF 1.6. At 0.941 a
    correlation exceeds 0.5.
    """
    floors = check_common_floors(floors).tolist() if np.size(floors) else []
    # The sentence says both, once for all floors.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotCertifiedWarning)
        warnings.simplefilter("ignore", SingularCorrelationWarning)
        matrix = check_matrix(R, on_singular="solve")
        choice_at = _choices(matrix, measure)
        lowest = choice_at(None)
        choices = [lowest, *(choice_at(floor) for floor in floors if floor > lowest.floor)]
        recommended, above = _recommended(choice_at, [choice.floor for choice in choices])
        doubtful = recommended is None or recommended.min_fidelity < RECOGNISABLE
        offer = _leave_out(matrix) if doubtful and measure is None else ((), None)
    if recommended is not None and recommended not in choices:
        choices.append(recommended)
    before, dependent = choice_at(1.0), ""
    if matrix.deficiency is not None:
        dependent = "some columns are determined by others"
        if matrix.deficiency.has_few_rows:
            dependent = "there are no more rows than columns"
    return FloorComparison(
        tuple(sorted(choices, key=lambda choice: (choice.rho_min is not None, choice.floor))),
        recommended,
        above,
        before.largest_correlation,
        before.largest_vif,
        dependent,
        *offer,
    )


def _choices(
    matrix: Matrix, measure: Callable[[Decorrelation], Measured] | None
) -> Callable[[float | None], Choice]:
    """A function that solves for a floor, by ``decorrelate`` as the command does, once for each."""
    nearest: Decorrelation | None = None

    @cache
    def choice_at(rho_min: float | None) -> Choice:
        nonlocal nearest
        # A singular matrix may have several optima, between which the start would decide.
        warm = nearest if matrix.deficiency is None and rho_min is not None else None
        result = nearest = api.decorrelate(matrix, rho_min, warm=warm)
        correlation = float(largest_residuals(result.correlation).max(initial=0.0))
        vif = np.inf if result.deficiency else inflation_factors(result.correlation).max()
        fidelity = result.fidelity
        if measure is not None:
            measured = measure(result)
            correlation, vif = measured.largest_correlation, measured.largest_vif
            fidelity = measured.fidelity
        return Choice(
            rho_min=rho_min,
            floor=float(result.rho_min.min()),
            largest_correlation=correlation,
            largest_vif=float(vif),
            min_fidelity=float(fidelity.min()),
            mean_fidelity=float(fidelity.mean()),
            status=result.status,
        )

    return choice_at


def _recommended(
    choice_at: Callable[[float | None], Choice], floors: list[float]
) -> tuple[Choice | None, Choice | None]:
    """The last floor within the limits and the next one, by bisection between those compared."""

    def exceeds(step: int) -> bool:
        choice = choice_at(step / _STEPS)
        return choice.correlates or choice.inflates

    steps = sorted({_STEPS, *(round(rounded_down(floor, 3) * _STEPS) for floor in floors)})
    within = [step for step in steps if not exceeds(step)]
    if not within:
        return None, None
    if within[-1] == _STEPS:
        return choice_at(1.0), None
    above = next(step for step in steps if step > within[-1])
    between = range(within[-1] + 1, above)
    low = within[-1] + bisect(between, False, key=exceeds)
    return choice_at(low / _STEPS), choice_at((low + 1) / _STEPS)


def _leave_out(matrix: Matrix) -> tuple[tuple[str, ...], float | None]:
    """The columns that others determine, and the floor recommended without them."""
    redundant = [] if matrix.deficiency is None else matrix.deficiency.redundant
    if not redundant or not matrix.dense:  # too few rows are no fault of single columns
        return (), None
    others = [j for j, name in enumerate(matrix.names) if name not in redundant]
    best = compare_floors(matrix.R[np.ix_(others, others)], ()).recommended
    if best is None or best.floor < RECOGNISABLE:
        return (), None
    return tuple(redundant), best.floor


def floors_within(R: Any) -> dict[str, float]:
    """The highest floor with no correlation above 0.5, and the highest with no VIF above 2.

    Neither is below the recommended floor, which is within both limits and leaves the least sum of
    squares instead.

    Examples
    --------
    >>> {name: round(floor, 3) for name, floor in floors_within([[1.0, 0.8], [0.8, 1.0]]).items()}
    {'max_correlation': 0.98, 'max_vif': 0.997}
    """
    matrix = check_matrix(R)
    limits = {"max_correlation": ("worst", MOST_CORRELATION), "max_vif": ("vif", MOST_VIF)}
    return {
        name: float(api.maximize_fidelity(matrix, limit, criterion=criterion).rho_min.min())
        for name, (criterion, limit) in limits.items()
    }
