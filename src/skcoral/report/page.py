"""The page: what its template shows, and in which order."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from skcoral import words
from skcoral._lowrank import spread_of_sizes, strongest_pairs
from skcoral.plotting import FrontierDisplay
from skcoral.plotting import interactive as plotly
from skcoral.report import pictures
from skcoral.report.facts import ReportFacts, column_of, top_sources
from skcoral.report.templating import fill
from skcoral.results import Array

MOST_CELLS = 300  # variables whose correlations can be read as a square of cells
MOST_ROWS = 100  # outputs that are listed where there are more
_MARKS = {"ZCA-cor": "diamond", "PCA": "square"}
_PAIRS = 15  # of the many that have no picture
_EDGES = np.array([0.0, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0])
_STANDARDISED = {"ranks": "standardised ranks", "normal": "standardised normal scores"}


def render(facts: ReportFacts, *, interactive: bool = False) -> str:
    """Turn the numbers into one self-contained HTML page.

    Needs the ``report`` extra.

    Parameters
    ----------
    facts : ReportFacts
        From :func:`gather`.
    interactive : bool, default False
        Draw interactive figures with Plotly, which adds its five megabytes of
        script to the page. On paper the page is the same as without.

    Examples
    --------
    >>> import numpy as np
    >>> from skcoral import CORAL, report
    >>> X = np.random.default_rng(0).normal(size=(50, 3))
    >>> facts = report.gather(CORAL().fit(X), title="noise")
    >>> "<script" in report.render(facts)
    False
    """
    result, measured = facts.result, facts.measured
    about_rows = words.is_about_rows(result)
    plain = words.is_certified(result) and about_rows
    listed = _listed(facts)
    return fill(
        "report.html",
        kind="decorrelation report",
        title=facts.title,
        scripts=_scripts() if interactive else (),
        facts=facts,
        result=result,
        measured=measured,
        words=words,
        about_rows=about_rows,
        state=("" if plain else " open") if facts.passed else " failed",
        promise=" ".join(filter(None, (words.certificate(result), words.goal(result)))),
        certificate=_certificate(facts),
        listed=listed,
        marks=_MARKS,
        others=lambda j: [(_MARKS[method], f[j]) for method, f in facts.baselines.items()],
        curve=_curve(facts, interactive),
        standardised=_STANDARDISED.get(measured.margins, "standardised sources"),
        inflation=_inflation(facts),
        made_of=[_made_of(facts, j, name) for j, name in listed],
        population=_population(facts, listed),
        held_out=_held_out(facts, listed),
        floors_kept=_floors_kept(facts),
        **_correlations(facts, interactive),
    )


def _scripts() -> tuple[Any, ...]:
    """Plotly and what draws the figures of this page with it."""
    from importlib.resources import files

    from markupsafe import Markup
    from plotly.offline import get_plotlyjs

    own = files("skcoral.report").joinpath("templates", "live.js").read_text("utf-8")
    return Markup(get_plotlyjs()), Markup(own)


def _listed(facts: ReportFacts) -> list[tuple[int, str]]:
    """The outputs that tables list: all, or of many those with the weakest fidelity."""
    names = facts.result.names
    if len(names) <= MOST_CELLS:
        return list(enumerate(names))
    weakest = np.argsort(facts.measured.fidelity, kind="stable")[:MOST_ROWS]
    return [(int(j), names[int(j)]) for j in weakest]


def _certificate(facts: ReportFacts) -> list[tuple[str, str]]:
    result, th = facts.result, facts.threshold
    known = []
    if th is not None:
        binding = ", ".join(th.binding[:6]) + (" …" if len(th.binding) > 6 else "")
        if result.rank is None:
            bracket = ("threshold ρ★", f"{th.lower:.9f} ≤ ρ★ ≤ {th.upper:.9f}")
        else:
            bracket = ("highest floor of the least residual", f"{th.lower:.9f} to {th.upper:.9f}")
        known.append((bracket[0], f"{bracket[1]}, bound by {binding}"))
    if "rho_upper" in result.details:
        top = float(result.details["rho_upper"])
        known.append(("highest common floor", f"{result.rho_min.min():.9f} to {top:.9f}"))
    if result.rank is not None:
        known.append(("rank", f"{result.rank} of {len(result.names)}"))
        known.append(("least residual of this rank", f"{result.details['least_residual']:.9g}"))
    return [
        ("about", words.subject(result)),
        ("residual", f"{result.objective:.9g}"),
        ("lower bound", f"{max(result.lower_bound, 0.0):.9g}"),
        ("gap", f"{max(result.gap, 0.0):.1e}"),
        ("status", words.status(result)),
        *known,
        *facts.checks,
    ]


def _curve(facts: ReportFacts, interactive: bool) -> dict[str, Any] | None:
    result = facts.result
    if facts.frontier is None:
        return None
    R = facts.R if result.anchors is None and result.rank is None else None
    display = FrontierDisplay.from_result(facts.frontier, R, chosen=result)
    measure = words.CRITERIA[display.criterion]
    return {
        "measure": measure,
        "points": len(display.rho_min),
        "proved": words.proved_points(facts.frontier),
        "still": pictures.frontier(display, f"Trade-off curve: {measure} against the floor"),
        "figure": plotly.frontier(display, now="chosen", whole=True) if interactive else None,
    }


def _correlations(facts: ReportFacts, interactive: bool) -> dict[str, Any]:
    """Two pictures, or of many columns the worst pairs and the distribution of all."""
    result, measured = facts.result, facts.measured
    if max(len(facts.names), len(result.names)) > MOST_CELLS or measured.before is None:
        before = facts.R if measured.before is None else measured.before
        after = result.correlation if measured.after is None else measured.after
        counts = [spread_of_sizes(G, _EDGES) for G in (before, after)]
        return {
            "worst_pairs": {
                "before": _strongest(before, facts.names),
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
            _panel(measured.before, facts.names, "before", "sources", interactive),
            _panel(measured.after, result.names, "after", "outputs", interactive),
        ]
    return {"worst_pairs": None, "panels": panels}


def _panel(
    M: Array, names: Sequence[str], title: str, about: str, interactive: bool
) -> dict[str, Any]:
    p = len(M)
    # Wide enough for the names of the columns, and near to a square.
    room = 24 if p <= plotly.FIGURES_UP_TO else 10
    return {
        "title": title,
        "still": pictures.heat_map(M, names, f"Correlations of the {about}"),
        "figure": plotly.heat_map(M, names, top=1.0, word="correlation", figures=True)
        if interactive
        else None,
        "style": f"min-width:{min(160 + room * p, 800)}px;max-width:{max(800, 15 * p)}px",
        "wide": pictures.is_wide(p),
    }


def _strongest(G: Any, names: Sequence[str]) -> list[tuple[str, str]]:
    found = strongest_pairs(G, _PAIRS)
    return [(f"{names[i]} – {names[j]}", f"{value:+.4f}") for i, j, value in found]


def _inflation(facts: ReportFacts) -> list[list[str]]:
    before, after = facts.measured.vif_before, facts.measured.vif
    one_to_one = len(before) == len(after)
    rows = []
    for j, name in _listed(facts) if one_to_one else enumerate(facts.names):
        cells = [f"{before[j]:.2f}", f"{after[j]:.3f}" if one_to_one else "–"]
        rows.append([name, *(cell.replace("inf", "∞") for cell in cells)])
    return rows


def _made_of(facts: ReportFacts, j: int, name: str) -> tuple[str, list[tuple[str, float]], int]:
    """An output, its largest coefficients, and how many others there are."""
    terms = [(facts.names[i], weight) for i, weight in top_sources(facts.result.T, j)]
    return name, terms, int(np.count_nonzero(column_of(facts.result.T, j))) - len(terms)


def _population(facts: ReportFacts, listed: list[tuple[int, str]]) -> list[list[str]]:
    """Raised floors, what they promise for the population, and what they cost."""
    sure = facts.confidence
    if sure is None:
        return []
    bounds = sure.residual_bound
    bounds = np.full(len(sure.floors), np.nan) if bounds is None else bounds
    figures = (sure.rho_min, sure.floors, sure.lower, bounds)
    return [
        [name, *(f"{figure[j]:.4f}".replace("nan", "–") for figure in figures)]
        for j, name in listed
    ]


def _held_out(facts: ReportFacts, listed: list[tuple[int, str]]) -> list[list[str]]:
    held, sure = facts.holdout, facts.confidence
    if held is None:
        return []
    fitted, new = (f.mean(axis=0).round(4) for f in (held.fidelity_fitted, held.fidelity_new))
    wanted = fitted if sure is None else sure.rho_min
    return [
        [name, f"{fitted[j]:.4f}", f"{new[j]:.4f}{' ▾' if new[j] < wanted[j] else ''}"]
        for j, name in listed
    ]


def _floors_kept(facts: ReportFacts) -> bool:
    """Whether every fold of the hold-out kept the floors of this fit on the rows it was fitted to.

    Fits to a limit, or without floors, find a floor of their own in every fold.
    """
    held = facts.holdout
    return held is not None and bool((held.fidelity_fitted >= facts.result.rho_min - 1e-9).all())
