"""The numbers of a report, gathered before anything is drawn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING, Any

from sklearn.base import clone

from skcoral import certificates
from skcoral.core.arrays import Array
from skcoral.core.results import Decorrelation, Threshold
from skcoral.data.effects import Measured
from skcoral.exceptions import CoralError
from skcoral.show import sentences
from skcoral.show.pictures.fidelity import baseline_fidelities
from skcoral.show.pictures.frontier import curve_of
from skcoral.show.report.regression import Regressions, regressions

if TYPE_CHECKING:
    from skcoral.core.results import Frontier
    from skcoral.stability import Holdout

#: Points on the curve and parts held out, for up to so many variables; none beyond. Ten times as
#: many variables take hundreds of times as long.
_POINTS = ((100, 25), (300, 11), (400, 7))
_FEW_POINTS = ((16, 11), (400, 7))  # of dependent variables and other criteria, which take longer
_FOLDS = ((100, 5), (300, 2))
_QUICK = 2e6  # r²p up to which dozens of solutions take seconds
_ROWS_PER_VARIABLE = 4  # with fewer, parts of a table say little about the rest of it
_MOST_ROWS = 200_000  # more of them take long to fit again


@dataclass(frozen=True)
class ReportFacts:
    """The numbers behind a report, from :func:`gather` for :func:`render`.

    Examples
    --------
    >>> from skcoral import CORAL
    >>> from skcoral.show import report
    >>> from skcoral.datasets import load_wine
    >>> facts = report.gather(CORAL(rho_min=0.9).fit(load_wine().to_frame()), n_points=0)
    >>> facts.check.passed, facts.check.problems
    (True, ())
    """

    estimator: Any
    title: str
    command: str  # what repeats it
    measured: Measured  # what the outputs show, measured on them
    result: Decorrelation
    threshold: Threshold | None  # None where it takes long
    check: certificates.Check  # the independent one, of the certificate
    baselines: dict[str, Array]  # fidelities of the classical methods, where they apply
    frontier: Frontier | None
    holdout: Holdout | None
    outcome: str  # what the variables are to explain; empty where nothing is
    regressions: Regressions | None  # of the outcome
    notes: list[str]  # what was left out and assumed; shown next to the answer
    origin: list[str]  # file, date, rows used and left out; shown under the title


def gather(
    estimator: Any,
    *,
    X: Any = None,
    known: Mapping[str, Any] | None = None,
    y: Any = None,
    outcome: str = "",
    measured: Measured | None = None,
    check: certificates.Check | None = None,
    title: str = "A decorrelated table",
    file: str = "",
    command: str = "",
    notes: Sequence[str] = (),
    n_points: int | None = None,
    folds: int | None = None,
) -> ReportFacts:
    """Collect the numbers of a report from a fitted :class:`skcoral.CORAL`.

    Parameters
    ----------
    estimator : CORAL
        Fitted.
    X : array-like of shape (n, p), optional
        The rows, for the hold-out table; left out without them.
    known : dict, optional
        ``sample_weight`` and ``groups`` of these rows, where there are any.
    y : array-like of shape (n,), optional
        The outcome of these rows, which is no variable; NaN where it is unknown. The page then
        shows its regression on the variables beside that on the outputs.
    outcome : str
        Name of the outcome.
    measured : Measured, optional
        Figures of the outputs that were written; those of the rows fitted by default.
    check : Check, optional
        The independent check of the certificate, where it was made before.
    title, command : str
        Heading, and the command or call that repeats the work.
    file : str
        Name of the file, shown at the top.
    notes : sequence of str
        Things to know about the data (rows left out, say); listed next to the answer.
    n_points : int, optional
        Points on the frontier; 0 leaves the curve out. By default 25, fewer of many or dependent
        variables.
    folds : int, optional
        Parts for the hold-out table; by default 5, fewer of many variables, and none of very many
        variables, very many rows, or few rows.

    Returns
    -------
    ReportFacts

    Examples
    --------
    >>> from skcoral import CORAL
    >>> from skcoral.show import report
    >>> from skcoral.datasets import load_wine
    >>> coral = CORAL(rho_min=0.8).fit(load_wine().to_frame())
    >>> facts = report.gather(coral, n_points=0, title="Wine")
    >>> facts.title, round(float(facts.baselines["PCA"].min()), 3)
    ('Wine', 0.248)
    """
    result: Decorrelation = estimator.result_
    R: Any = estimator.correlation_
    check = certificates.check(result, R) if check is None else check
    measured = estimator.measured_ if measured is None else measured
    today = f"{date.today().day} {date.today():%B %Y}"
    p = len(result.names)
    if n_points is None:
        n_points = curve_points(p, result.criterion, dependent=bool(result.deficiency))
    known = known or {}
    notes = [*notes, sentences.unfloored(result, estimator.rho_min)]
    if X is not None and folds is None:
        folds, why = holdout_folds(estimator, known.get("groups"))
        notes.append(why)
    holdout = None
    if X is not None and folds:
        try:
            holdout = held_out(estimator, X, folds, known)
        except CoralError as error:  # a column may be constant in a part: the rest is as good
            notes.append(f"No hold-out table. {error}")
    # the classical methods need full rank, and know no composites
    special = result.anchors is not None or result.deficiency
    classical = {} if special else baseline_fidelities(R)
    compared = None
    if X is not None and y is not None:
        compared, why = _regressions(estimator, X, y, outcome, known)
        notes.append(why)
    return ReportFacts(
        estimator=estimator,
        title=title,
        command=command,
        measured=measured,
        result=result,
        threshold=estimator.threshold_ if _is_quick(result) else None,
        check=check,
        baselines=classical,
        frontier=curve_of(estimator, n_points) if n_points and _is_quick(result) else None,
        holdout=holdout,
        outcome=outcome,
        regressions=compared,
        notes=list(dict.fromkeys(filter(None, notes))),  # the command knows some of them, too
        origin=[part for part in (file, today, measured.rows()) if part],
    )


def _regressions(
    estimator: Any, X: Any, y: Any, outcome: str, known: Mapping[str, Any]
) -> tuple[Regressions | None, str]:
    """The outcome on the variables and on the outputs, or why there is no such table."""
    start = f"No regression of {outcome or 'the outcome'}:"
    if known.get("sample_weight") is not None:
        return None, f"{start} rows are weighted."
    both = regressions(estimator, X, y)
    if both is None:
        return None, (
            f"{start} the variables or outputs are linearly dependent, determine it, or have too "
            "few rows."
        )
    return both, ""


def curve_points(p: int, criterion: str, *, dependent: bool) -> int:
    """How many points of the curve take seconds in all; 0 where one takes too long."""
    slow = dependent or criterion != "squared"
    return _affordable(_FEW_POINTS if slow else _POINTS, p)


def holdout_folds(estimator: Any, groups: Any = None) -> tuple[int, str]:
    """How many parts of the rows fitted are held out, and why none is."""
    from skcoral.stability.dependence import FEWEST_UNITS

    p, moments = len(estimator.result_.names), estimator.moments_
    if groups is not None and len(set(groups)) < FEWEST_UNITS:
        return 0, f"No hold-out table: it needs {FEWEST_UNITS} or more groups."
    if moments.n_rows > _MOST_ROWS:
        return 0, f"No hold-out table: there are more than {_MOST_ROWS:,} rows."
    folds = _affordable(_FOLDS, p)
    if not folds:
        return 0, "No hold-out table: so many variables take too long to fit again."
    fewest = max(_ROWS_PER_VARIABLE * p, FEWEST_UNITS * folds)  # of two rows, each |r| is 1
    if round(moments.effective_rows) < fewest:
        rows = "equally weighted rows" if moments.is_weighted else "rows"
        return 0, f"No hold-out table: it needs {fewest:,} or more {rows}."
    return folds, ""


def held_out(estimator: Any, X: Any, folds: int, known: Mapping[str, Any]) -> Holdout:
    """Hold-out at the floors of the fit: raised floors are not computed again in every fold."""
    from skcoral.stability import holdout

    model = clone(estimator)
    if estimator.confidence is not None:
        model.set_params(rho_min=estimator.floors_, confidence=None)
    return holdout(model, X, cv=folds, **known)


def _affordable(steps: Sequence[tuple[int, int]], p: int) -> int:
    """How many solutions of ``p`` variables take a few seconds in all."""
    return next((count for most, count in steps if p <= most), 0)


def _is_quick(result: Decorrelation) -> bool:
    """Whether dozens of further solutions take seconds: not of wide tables."""
    return not result.deficiency or result.rank**2 * len(result.names) < _QUICK
