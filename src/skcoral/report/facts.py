"""The numbers of a report, gathered before anything is drawn."""

from __future__ import annotations

import platform
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from importlib import metadata
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import clone

from skcoral import certificates, words
from skcoral._lowrank import LowRankTransform
from skcoral.estimator.rows import column_names
from skcoral.measured import Measured
from skcoral.plotting.fidelity import baseline_fidelities
from skcoral.plotting.frontier import curve_of
from skcoral.results import Array, Decorrelation, Threshold

if TYPE_CHECKING:
    from skcoral.results import Frontier
    from skcoral.stability import ConfidentFloors, Holdout

#: Points on the curve and parts held out, for up to so many variables; none beyond.
_POINTS = ((100, 25), (300, 11), (400, 7))
_DEPENDENT = 7  # points of the frontier of dependent variables, which take longer
_FOLDS = ((100, 5), (300, 2))
_QUICK = 2e6  # r²p up to which dozens of solutions take seconds
_REPORTED_VERSIONS = ("scikit-coral", "numpy", "scipy", "scikit-learn")


@dataclass(frozen=True)
class ReportFacts:
    """Everything that a report shows.

    Attributes
    ----------
    title : str
        What the report is about.
    origin : list of str
        Where the numbers come from: file, date, rows used and left out; shown under the title.
    measured : Measured
        What the outputs show, measured on them.
    result, threshold : Decorrelation, Threshold
        The answer and what exact decorrelation could do.
    R : ndarray of shape (p, p)
        The correlation matrix that was solved for.
    names : tuple of str
        The sources.
    asked : list of (str, str)
        What was asked, as label and value.
    checks : list of (str, str)
        Outcome of the independent check of the certificate.
    passed : bool
        Whether it passed.
    baselines : dict of str to ndarray
        Fidelities of the classical methods; empty when composites are anchored.
    frontier : Frontier or None
        The curve, where it was computed.
    holdout : Holdout or None
        Fidelity and residual on rows held out.
    confidence : ConfidentFloors or None
        What holds for the population, where it was asked for.
    notes : list of str
        What was left out of the table and what was assumed; shown next to the answer.
    warnings, versions : list
        Things to know, and the versions that made the numbers.
    command : str
        What repeats it.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from skcoral import CORAL, report
    >>> X = load_wine(as_frame=True).data
    >>> facts = report.gather(CORAL(rho_min=0.9).fit(X), title="Wine")
    >>> facts.title, facts.passed
    ('Wine', True)
    """

    title: str
    measured: Measured
    result: Decorrelation
    threshold: Threshold | None
    R: Any
    names: tuple[str, ...]
    asked: list[tuple[str, str]]
    checks: list[tuple[str, str]]
    baselines: dict[str, Array]
    frontier: Frontier | None = None
    holdout: Holdout | None = None
    confidence: ConfidentFloors | None = None
    notes: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    versions: list[tuple[str, str]] = field(default_factory=list)
    command: str = ""
    origin: list[str] = field(default_factory=list)
    passed: bool = True


def gather(
    estimator: Any,
    *,
    X: Any = None,
    known: Mapping[str, Any] | None = None,
    measured: Measured | None = None,
    title: str = "A decorrelated table",
    file: str = "",
    dropped: str = "",
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
    measured : Measured, optional
        Figures of the outputs that were written; those of the rows fitted by default.
    title, command : str
        Heading, and the command or call that repeats the work.
    file, dropped : str
        Name of the file, and which rows were left out, shown at the top.
    notes : sequence of str
        Things to know about the data (rows left out, say); listed next to the answer.
    n_points : int, optional
        Points on the frontier; 0 leaves the curve out. By default 25, fewer of many or dependent
        variables.
    folds : int, optional
        Parts for the hold-out table; by default 5, fewer of many variables and at last none.

    Returns
    -------
    ReportFacts

    Examples
    --------
    >>> from skcoral import CORAL, report
    >>> from skcoral.datasets import load_wine
    >>> coral = CORAL(rho_min=0.8).fit(load_wine().to_frame())
    >>> facts = report.gather(coral, n_points=0, title="Wine")
    >>> facts.title, round(float(facts.baselines["PCA"].min()), 3)
    ('Wine', 0.248)
    """
    result: Decorrelation = estimator.result_
    R: Any = estimator.correlation_
    check = certificates.check(result, R)
    verdict = "passed" if check.passed else "FAILED: " + "; ".join(check.problems)
    measured = estimator.measured_ if measured is None else measured
    today = f"{date.today().day} {date.today():%B %Y}"
    p = len(result.names)
    if n_points is None:
        n_points = _affordable(_POINTS, p)
        n_points = min(n_points, _DEPENDENT) if result.rank else n_points
    folds = _affordable(_FOLDS, p) if folds is None else folds
    notes = [*notes]
    if X is not None and not folds:
        notes.append("So many variables take long to fit again: no hold-out table was made.")
    return ReportFacts(
        title=title,
        measured=measured,
        result=result,
        threshold=estimator.threshold_ if _is_quick(result) else None,
        R=R,
        names=column_names(estimator),
        asked=_asked(estimator, result),
        checks=[("independent check", verdict)],
        passed=check.passed,
        baselines=baseline_fidelities(R) if result.anchors is None and not result.rank else {},
        frontier=curve_of(estimator, n_points) if n_points and _is_quick(result) else None,
        holdout=held_out(estimator, X, folds, known or {}) if X is not None and folds else None,
        confidence=getattr(estimator, "confidence_", None),
        notes=[note for note in (*notes, words.unfloored(result, estimator.rho_min)) if note],
        warnings=_warnings(estimator, result),
        versions=_versions(),
        command=command,
        origin=[part for part in (file, today, measured.rows(), dropped) if part],
    )


def held_out(estimator: Any, X: Any, folds: int, known: Mapping[str, Any]) -> Holdout:
    """Hold-out at the floors of the fit: raised floors are not computed again in every fold."""
    from skcoral.stability import holdout

    model = clone(estimator)
    if estimator.confidence is not None:
        model.set_params(rho_min=estimator.floors_, confidence=None)
    return holdout(model, X, cv=folds, block_length=estimator.block_length, **known)


def _affordable(steps: Sequence[tuple[int, int]], p: int) -> int:
    """How many solutions of ``p`` variables take a few seconds in all."""
    return next((count for most, count in steps if p <= most), 0)


def _is_quick(result: Decorrelation) -> bool:
    """Whether dozens of further solutions take seconds: not of wide tables."""
    return result.rank is None or result.rank**2 * len(result.names) < _QUICK


def column_of(T: Any, j: int) -> Array:
    """One column of a transformation, also of one that is kept as factors."""
    if not isinstance(T, LowRankTransform):
        return np.asarray(T[:, j])
    column = T.left @ T.right[:, j]
    column[j] += 1.0
    return np.asarray(column)


def top_sources(T: Any, j: int, limit: int = 4) -> list[tuple[int, float]]:
    """The sources with the largest coefficients in output j, largest first."""
    column = column_of(T, j)
    order = np.argsort(-np.abs(column), kind="stable")[:limit]
    return [(int(i), float(column[i])) for i in order if column[i] != 0.0]


def _asked(estimator: Any, result: Decorrelation) -> list[tuple[str, str]]:
    sure = getattr(estimator, "confidence_", None)
    floors = result.rho_min if sure is None else sure.rho_min
    if getattr(estimator, "max_vif", None) is not None:
        goal = f"the highest common fidelity with no VIF above {estimator.max_vif:g}"
    elif getattr(estimator, "max_correlation", None) is not None:
        goal = f"the highest common fidelity with no |r| above {estimator.max_correlation:g}"
    elif estimator.budget is not None:
        goal = f"the highest common fidelity with at most {estimator.budget:g} residual"
    elif estimator.rho_min is None:
        goal = f"{_without_floors(estimator, result)} (no floor given)"
    elif np.ptp(floors) < 1e-12:
        goal = f"the least residual with fidelity at least {floors[0]:g} for every variable"
    else:
        goal = (
            f"the least residual with a floor for each variable, {min(floors):g} to {max(floors):g}"
        )
    asked = [("goal", goal), ("residual measured by", words.CRITERIA[result.criterion])]
    if estimator.n_samples_seen_:  # 0 where a matrix was given
        asked.append(("rows", f"{estimator.n_samples_seen_:,}"))
    asked.append(("variables", str(len(estimator.correlation_))))
    if estimator.support is not None:
        zeros = int((result.T == 0.0).sum())
        asked.append(("support", f"{zeros} coefficients fixed at zero"))
    if estimator.shrinkage_:
        asked.append(("shrinkage", f"{estimator.shrinkage_:.4g} towards the identity"))
    if estimator.estimate_.source:
        asked.append(("correlations", f"estimated by {estimator.estimate_.source}"))
    if sure is not None:
        asked.append(("confidence", f"{sure.confidence:g} that the population keeps the floors"))
    if estimator.margins_ is not None:
        asked.append(("margins", f"{estimator.margins_.noun} of the columns"))
    if estimator.estimate_.weights != "none":
        asked.append(("weights", f"rows are weighted ({estimator.estimate_.weights} weights)"))
    asked.append(("outputs", words.units(result, estimator.output_scale)))
    return asked


def _without_floors(estimator: Any, result: Decorrelation) -> str:
    """What is sought where no floor is given."""
    if estimator.support is not None:
        return "the least residual within the support"
    if result.rank is not None:
        return "the least residual of this rank with the highest common fidelity"
    return "exact decorrelation with the highest common fidelity"


def _warnings(estimator: Any, result: Decorrelation) -> list[str]:
    out: list[str] = []
    if not words.is_certified(result):
        out.append(
            f"Optimality is not proved: the residual is {result.objective:.6g} and the best lower "
            f"bound is {result.lower_bound:.6g}."
        )
    details = (str(result.details.get(key, "")) for key in ("new_rows", "guarantee"))
    out += [said for said in (words.rank(result), *details) if said]
    n, p = estimator.n_samples_seen_, len(estimator.correlation_)
    if 0 < n < 10 * p:
        out.append(
            f"There are {n} rows for {p} variables: correlations are uncertain, so expect other "
            "fidelities on new rows."
        )
    return out


def _versions() -> list[tuple[str, str]]:
    packages = [(package, metadata.version(package)) for package in _REPORTED_VERSIONS]
    system = f"{platform.system()} {platform.machine()}, {sys.byteorder} endian"
    return [("Python", platform.python_version()), *packages, ("system", system)]
