"""The page: what its template shows, and in which order."""

from __future__ import annotations

import platform
import sys
from collections.abc import Sequence
from importlib import metadata
from itertools import pairwise
from typing import Any

import numpy as np

from skcoral.core.arrays import Array
from skcoral.core.display import number, printable, short
from skcoral.core.lowrank import LowRankTransform
from skcoral.core.results import Decorrelation
from skcoral.core.solution import Budget, VifLimit
from skcoral.core.validation import listing
from skcoral.data.effects import spread_of_sizes, strongest_pairs
from skcoral.estimator.rows import column_names
from skcoral.show import sentences, svg
from skcoral.show.pictures import FrontierDisplay
from skcoral.show.report.facts import ReportFacts

MOST_CELLS = 300  # variables whose correlations can be read as a square of cells
MOST_ROWS = 100  # outputs that are listed where there are more
_MARKS = {"ZCA-cor": "diamond", "PCA": "square"}
_PAIRS = 15  # of the many that have no picture
_TERMS = 4  # coefficients of an output that are written out
_EDGES = np.array([0.0, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0])
_VERSIONS = ("scikit-coral", "numpy", "scipy", "scikit-learn")


def render(facts: ReportFacts) -> str:
    """Turn the numbers into one self-contained HTML page.

    Needs the ``report`` extra.

    Parameters
    ----------
    facts : ReportFacts
        From :func:`gather`.

    Examples
    --------
    >>> import numpy as np
    >>> from skcoral import CORAL
    >>> from skcoral.show import report
    >>> X = np.random.default_rng(0).normal(size=(50, 3))
    >>> facts = report.gather(CORAL().fit(X), title="noise")
    >>> "<script" in report.render(facts)
    False
    """
    result, measured, holdout = facts.result, facts.measured, facts.holdout
    sources = column_names(facts.estimator)
    plain = result.is_certified and result.notes.is_about_rows
    listed = _listed(facts)
    tables: dict[str, Any] = {}
    if holdout is not None:
        # Fits to a limit, or without floors, find a floor of their own in every fold.
        tables["floors_kept"] = (holdout.fidelity_fitted >= result.rho_min - 1e-9).all()
        tables["fitted"] = holdout.fidelity_fitted.mean(axis=0).round(4)
        tables["new"] = holdout.fidelity_new.mean(axis=0).round(4)
    return _template().render(
        facts=facts,
        result=result,
        measured=measured,
        sure=getattr(facts.estimator, "confidence_", None),
        price=sentences.price,
        priced=sentences.minimises_residual(result),
        state=("" if plain else " open") if facts.check.passed else " failed",
        promise=" ".join(filter(None, sentences.proved(result)[:2])),
        asked=_asked(facts, facts.estimator, result),
        certificate=_certificate(facts),
        warnings=_warnings(facts.estimator, result),
        listed=listed,
        sources=list(enumerate(sources)),
        one_to_one=len(measured.vif_before) == len(measured.vif),
        marks=_MARKS,
        others=lambda j: [(_MARKS[method], f[j]) for method, f in facts.baselines.items()],
        curve=_curve(facts),
        made_of=[_made_of(facts, sources, j, name) for j, name in listed],
        versions=_versions(),
        **tables,
        **_correlations(facts, sources),
    )


def _template() -> Any:
    """The page to be filled in; no text from the data can become an element."""
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("skcoral.show.report"),
        autoescape=True,
        finalize=_shown,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"number": number, "percent": _percent}
    return environment.get_template("report.html")


def _shown(value: Any) -> Any:
    """Text without the control characters that it may have; markup as it is."""
    return printable(value, keep="\n") if type(value) is str else value


def _percent(share: float) -> str:
    return f"{100 * min(max(share, 0.0), 1.0):.1f}%"


def _listed(facts: ReportFacts) -> list[tuple[int, str]]:
    """The outputs that tables list: all, or of many those with the weakest fidelity."""
    names = facts.result.names
    if len(names) <= MOST_CELLS:
        return list(enumerate(names))
    weakest = np.argsort(facts.measured.fidelity, kind="stable")[:MOST_ROWS]
    return [(int(j), names[int(j)]) for j in weakest]


def _certificate(facts: ReportFacts) -> list[tuple[str, str]]:
    result, th, check = facts.result, facts.threshold, facts.check
    known = [("status", sentences.status(result))]
    if sentences.minimises_residual(result):
        known.insert(0, ("lower bound", short(max(result.lower_bound, 0.0), digits=9)))
        known.insert(1, ("gap", short(max(result.gap, 0.0), digits=2)))
    if th is not None:
        what = f"threshold ρ★{sentences.of_threshold(result)}"
        if result.deficiency:
            what = "highest floor with the least residual"
        binding = listing(th.binding, 6, quote="")
        known.append((what, f"{th.lower:.9f} to {th.upper:.9f}, bound by {binding}"))
    if isinstance(result.goal, Budget | VifLimit):
        top = result.goal.rho_upper
        known.append(("highest common floor", f"{result.rho_min.min():.9f} to {top:.9f}"))
    if result.deficiency:
        known.append(("rank", f"{result.rank} of {len(result.names)}"))
        known.append(("least residual of this rank", f"{result.least_residual:.9g}"))
    return [
        ("about", result.notes.about),
        ("residual", short(result.objective, digits=9)),
        *known,
        (
            "independent check",
            f"FAILED: {'; '.join(check.problems)}" if check.problems else "passed",
        ),
    ]


def _curve(facts: ReportFacts) -> dict[str, Any] | None:
    result = facts.result
    if facts.frontier is None:
        return None
    R = facts.estimator.correlation_ if result.anchors is None and not result.deficiency else None
    display = FrontierDisplay.from_result(facts.frontier, R, chosen=result)
    measure = sentences.CRITERIA[display.criterion]
    return {
        "measure": measure,
        "points": len(display.rho_min),
        "about": sentences.about_curve(result),
        "proved": sentences.proved_points(facts.frontier),
        "picture": svg.frontier(display, f"Trade-off curve: {measure} against the floor"),
    }


def _correlations(facts: ReportFacts, sources: Sequence[str]) -> dict[str, Any]:
    """Two pictures, or of many columns the worst pairs and the distribution of all."""
    result, measured = facts.result, facts.measured
    if max(len(sources), len(result.names)) > MOST_CELLS or measured.before is None:
        before = facts.estimator.correlation_ if measured.before is None else measured.before
        after = result.correlation if measured.after is None else measured.after
        counts = [spread_of_sizes(G, _EDGES) for G in (before, after)]
        return {
            "worst_pairs": {
                "before": _strongest(before, sources),
                "after": _strongest(after, result.names),
            },
            "most": max(1.0, *(float(count.max()) for count in counts)),
            "distribution": [
                (f"{low:g} – {high:g}", [int(count[k]) for count in counts])
                for k, (low, high) in enumerate(pairwise(_EDGES))
            ],
        }
    panels = []
    if measured.after is not None:
        panels = [
            _panel(measured.before, sources, "before", "sources"),
            _panel(measured.after, result.names, "after", "outputs"),
        ]
    return {"worst_pairs": None, "panels": panels}


def _panel(M: Array, names: Sequence[str], title: str, about: str) -> dict[str, Any]:
    return {
        "title": title,
        "picture": svg.heat_map(M, names, f"Correlations of the {about}"),
        "wide": svg.is_wide(len(M)),
    }


def _strongest(G: Any, names: Sequence[str]) -> list[tuple[float, str]]:
    return [(r, f"{names[i]} – {names[j]}") for i, j, r in strongest_pairs(G, _PAIRS)]


def _made_of(
    facts: ReportFacts, sources: Sequence[str], j: int, name: str
) -> tuple[str, list[tuple[str, float]], int]:
    """An output, its largest coefficients, and how many others there are."""
    T = facts.result.T
    if isinstance(T, LowRankTransform):
        column = T.left @ T.right[:, j]
        column[j] += 1.0
    else:
        column = np.asarray(T[:, j])
    used = int(np.count_nonzero(column))
    largest = np.argsort(-np.abs(column), kind="stable")[: min(used, _TERMS)]
    terms = [(sources[int(i)], float(column[i])) for i in largest]
    return name, terms, used - len(terms)


def _asked(facts: ReportFacts, estimator: Any, result: Decorrelation) -> list[tuple[str, str]]:
    sure = getattr(estimator, "confidence_", None)
    floors = result.rho_min if sure is None else sure.rho_min
    if estimator.max_vif is not None:
        goal = f"the highest common fidelity with no VIF above {estimator.max_vif:g}"
    elif estimator.max_correlation is not None:
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
    asked = [("goal", goal), ("residual measured by", sentences.CRITERIA[result.criterion])]
    if estimator.n_samples_seen_:  # 0 where a matrix was given
        asked.append(("rows", f"{estimator.n_samples_seen_:,}"))
    asked.append(("variables", str(len(estimator.correlation_))))
    if estimator.support is not None:
        zeros = int((result.T == 0.0).sum())
        asked.append(("support", f"{zeros} coefficients fixed at zero"))
    if estimator.estimate_.source:
        asked.append(("correlations", f"estimated by {estimator.estimate_.source}"))
    if sure is not None:
        promise = f"approximately {sure.confidence:g} that the population keeps the floors"
        asked.append(("confidence", promise))
    if estimator.estimate_.weighted:
        asked.append(("weights", "rows are weighted"))
    asked.append(("outputs", sentences.units(estimator)))
    if facts.outcome:
        asked.append(("outcome", f"{facts.outcome}, not among the variables"))
    return asked


def _without_floors(estimator: Any, result: Decorrelation) -> str:
    """What is sought where no floor is given."""
    if estimator.support is not None:
        return "the least residual within the support"
    if result.deficiency:
        return "the least residual of this rank with the highest common fidelity"
    return "exact decorrelation with the highest common fidelity"


def _warnings(estimator: Any, result: Decorrelation) -> list[str]:
    """What limits the answer: the rank, what the guarantee is about, how few the rows are."""
    remarks = [sentences.rank(result), result.notes.guarantee]
    n, p = estimator.moments_.effective_rows, len(estimator.correlation_)
    if 0 < n < 10 * p:
        rows = f"There are {n:,.0f} rows"
        if estimator.estimate_.weighted:
            rows = f"The rows tell as much as {n:,.0f} equally weighted ones"
        remarks.append(
            f"{rows}, for {p} variables: correlations are uncertain, and fidelities on new rows "
            "will differ."
        )
    return list(filter(None, remarks))


def _versions() -> list[tuple[str, str]]:
    packages = [(package, metadata.version(package)) for package in _VERSIONS]
    system = f"{platform.system()} {platform.machine()}, {sys.byteorder} endian"
    return [("Python", platform.python_version()), *packages, ("system", system)]
