"""The page: sections of HTML in which every word from the data is escaped."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.resources import files

import numpy as np

from skcoral import words
from skcoral.plotting import FrontierDisplay
from skcoral.plotting import interactive as plotly
from skcoral.report import drawing, live, many
from skcoral.report.drawing import clean
from skcoral.report.facts import ReportFacts, column_of, top_sources
from skcoral.results import Array

# The page may use its own styles and pictures, and nothing else: no script, no request.
_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; "
    "form-action 'none'"
)
MOST_CELLS = 300  # variables whose correlations can be read as a square of cells
MOST_ROWS = 100  # outputs that are listed where there are more
_SHAPES = {"ZCA-cor": "diamond", "PCA": "square"}


def render(facts: ReportFacts, *, interactive: bool = False) -> str:
    """Turn the numbers into one self-contained HTML page.

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
    style = files("skcoral.report").joinpath("page.css").read_text("utf-8")
    draw, scripts, policy = live.still, "", _POLICY
    if interactive:
        scripts, allowed = live.scripts()
        draw, policy = live.answering, f"{_POLICY}; {allowed}"
    sections = [
        _section("What was asked", _pairs(facts.asked)),
        _section("Certificate", _certificate(facts)),
        _section("Fidelity and prices", _fidelity(facts)),
    ]
    if facts.frontier is not None:
        sections.append(_section("The trade-off", _frontier(facts, draw)))
    sections += [
        _section("Correlations before and after", _correlations(facts, draw)),
        _section("Variance inflation", _vif(facts)),
        _section("What each output is made of", _made_of(facts)),
    ]
    if facts.confidence is not None:
        sections.append(_section("For the population", _population(facts)))
    if facts.holdout is not None:
        sections.append(_section("On rows not used for fitting", _holdout(facts)))
    if facts.warnings:
        items = "".join(f"<li>{clean(warning)}</li>" for warning in facts.warnings)
        sections.append(_section("Good to know", f'<ul class="warnings">{items}</ul>'))
    if facts.command:
        sections.append(_section("To repeat it", f"<pre>{clean(facts.command)}</pre>"))
    versions = " · ".join(f"{clean(name)} {clean(version)}" for name, version in facts.versions)
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{clean(facts.title)} – decorrelation report</title>\n"
        f"<style>\n{style}</style>\n</head>\n<body>\n<header>"
        '<p class="kind">Decorrelation report: Constrained Oblique Rotation with Anchored '
        f"Loadings</p>\n<h1>{clean(facts.title)}</h1>\n{_origin(facts)}{_promise(facts)}</header>\n"
        "<main>\n"
        + "\n".join(sections)
        + f"\n</main>\n<footer>{versions}</footer>\n{scripts}</body>\n</html>\n"
    )


def _section(title: str, body: str) -> str:
    return f"<section>\n<h2>{clean(title)}</h2>\n{body}\n</section>"


def _origin(facts: ReportFacts) -> str:
    items = "".join(f"<li>{clean(item)}</li>" for item in facts.origin)
    return f'<ul class="origin">{items}</ul>\n' if items else ""


def _promise(facts: ReportFacts) -> str:
    plain = words.is_certified(facts.result) and words.is_about_rows(facts.result)
    state = "" if plain else " open"
    notes = "".join(f"<li>{clean(note)}</li>" for note in facts.notes)
    said = " ".join(filter(None, (words.certificate(facts.result), words.goal(facts.result))))
    return (
        f'<p class="promise{state if facts.passed else " failed"}">'
        f"{clean(facts.measured.headline())}<small>{clean(said)}</small></p>\n"
        + (f'<ul class="notes">{notes}</ul>\n' if notes else "")
    )


def _pairs(pairs: Sequence[tuple[str, str]]) -> str:
    items = "".join(f"<dt>{clean(name)}</dt><dd>{clean(value)}</dd>" for name, value in pairs)
    return f"<dl>{items}</dl>"


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table of cells that are already safe."""
    head = "".join(f"<th>{cell}</th>" for cell in header)
    body = "".join("<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in rows)
    return (
        f'<div class="scroll"><table><thead><tr>{head}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>"
    )


def _certificate(facts: ReportFacts) -> str:
    result, th = facts.result, facts.threshold
    known = []
    if th is not None:
        binding = ", ".join(th.binding[:6]) + (" …" if len(th.binding) > 6 else "")
        bracket = f"{th.lower:.9f} ≤ ρ★ ≤ {th.upper:.9f}, bound by {binding}"
        known.append(("threshold ρ★", bracket))
    if result.rank is not None:
        known.append(("rank", f"{result.rank} of {len(result.names)}"))
        known.append(("least residual of this rank", f"{result.details['least_residual']:.9g}"))
    return _pairs(
        [
            ("about", words.subject(result)),
            ("residual", f"{result.objective:.9g}"),
            ("lower bound", f"{max(result.lower_bound, 0.0):.9g}"),
            ("gap", f"{max(result.gap, 0.0):.1e}"),
            ("status", words.status(result)),
            *known,
            *facts.checks,
        ]
    )


def _listed(facts: ReportFacts) -> list[tuple[int, str]]:
    """The outputs that tables list: all, or of many those with the weakest fidelity."""
    names = facts.result.names
    if len(names) <= MOST_CELLS:
        return list(enumerate(names))
    weakest = np.argsort(facts.measured.fidelity, kind="stable")[:MOST_ROWS]
    return [(int(j), names[int(j)]) for j in weakest]


def _fidelity(facts: ReportFacts) -> str:
    result, measured = facts.result, facts.measured
    legend = '<span><b style="color:var(--blue)">▬</b>CORAL</span><span>┃ floor</span>' + "".join(
        f"<span>{drawing.key(_SHAPES[name])}{clean(name)}</span>" for name in facts.baselines
    )
    rows = []
    for j, name in _listed(facts):
        others = [(_SHAPES[key], float(f[j])) for key, f in facts.baselines.items()]
        rows.append(
            [
                _name(name),
                f"{measured.fidelity[j]:.4f}",
                drawing.fidelity_bar(float(measured.fidelity[j]), float(result.rho_min[j]), others),
                f"{result.rho_min[j]:.4f}",
                f"{result.prices[j]:.4g}",
                f"{measured.residual[j]:.4f}",
            ]
        )
    weakest = (
        f"The weakest output keeps {measured.min_fidelity:.4f}, the mean is "
        f"{measured.fidelity.mean():.4f}, measured on the outputs. A price is what one more unit "
        "of that variable's floor would add to the residual."
    )
    header = ["variable", "fidelity", "", "floor", "price", "largest residual"]
    return (
        f'<p>{weakest}</p><div class="fidelity">{_table(header, rows)}</div>'
        f'<p class="legend">{legend}</p>'
    )


def _frontier(facts: ReportFacts, draw: live.Draw) -> str:
    if facts.frontier is None:
        return ""
    R = facts.R if facts.result.anchors is None and facts.result.rank is None else None
    display = FrontierDisplay.from_result(facts.frontier, R, chosen=facts.result)
    measure = words.CRITERIA[display.criterion]
    level = "; zero up to ρ★" if facts.result.rank is None else ""
    about = ""
    if not words.is_about_rows(facts.result):
        about = f". Computed for {clean(words.subject(facts.result))}, not for the plain rows"
    legend = f"<span>{drawing.key('chosen')}chosen</span>" + "".join(
        f"<span>{drawing.key(shape)}{name}</span>"
        for name, shape in (*_SHAPES.items(), ("untransformed", "triangle"))
        if name in display.points
    )
    picture = f'{drawing.frontier(display, measure)}<div class="legend">{legend}</div>'
    return (
        f"<figure><figcaption>Least possible {clean(measure)} for every floor, solved at "
        f"{len(display.rho_min)} floors{level}{about}.</figcaption>"
        + draw(
            picture,
            lambda: plotly.frontier(
                facts.frontier,
                display.points,
                facts.result,
                threshold=display.threshold,
                now="chosen",
                whole=True,
            ),
        )
        + "</figure>"
    )


def _correlations(facts: ReportFacts, draw: live.Draw) -> str:
    def panel(M: Array, names: Sequence[str], title: str, about: str) -> str:
        picture = drawing.heat_map(M, names, names, top=1.0, title=about)
        # Wide enough for the names of the columns, and near to a square.
        room = 24 if len(M) <= plotly.FIGURES_UP_TO else 10
        style = f"min-width:{min(160 + room * len(M), 800)}px;max-width:{max(800, 15 * len(M))}px"
        shown = draw(
            picture,
            lambda: plotly.heat_map(M, names, top=1.0, word="correlation", figures=True),
            style,
        )
        return f'<figure><figcaption>{title}</figcaption><div class="scroll">{shown}</div></figure>'

    result, measured = facts.result, facts.measured
    if max(len(facts.names), len(result.names)) > MOST_CELLS or measured.before is None:
        return many.correlations(facts)
    if measured.after is None:
        return ""
    before = panel(measured.before, facts.names, "before", "Correlations of the sources")
    after = panel(measured.after, result.names, "after", "Correlations of the outputs")
    kind = "pair stacked" if drawing.is_wide(max(len(facts.names), len(result.names))) else "pair"
    scale = drawing.scale_bar(1.0, "correlation")
    return f'<div class="{kind}">{before}{after}</div><div class="still">{scale}</div>'


def _vif(facts: ReportFacts) -> str:
    before, after = facts.measured.vif_before, facts.measured.vif
    one_to_one = len(before) == len(after)
    rows = []
    listed = _listed(facts) if one_to_one else list(enumerate(facts.names))
    for j, name in listed:
        cells = [f"{before[j]:.2f}", f"{after[j]:.3f}" if one_to_one else "–"]
        rows.append([_name(name), *(cell.replace("inf", "∞") for cell in cells)])
    return (
        "<p>How many times correlation with the others inflates the variance of a regression "
        "coefficient; 1 is none, ∞ means that the columns are linearly dependent.</p>"
        + _table(["variable", "before", "after"], rows)
    )


def _made_of(facts: ReportFacts) -> str:
    T = facts.result.T
    kinds = {"ranks": "standardised ranks", "normal": "standardised normal scores"}
    what = kinds.get(facts.measured.margins, "standardised sources")
    rows = []
    shown = _listed(facts)
    for j, name in shown:
        terms = []
        for k, (i, weight) in enumerate(top_sources(T, j)):
            sign = "−" if weight < 0 else ("+" if k else "")
            terms.append(f"{sign} {abs(weight):.3f}&nbsp;{_name(facts.names[i])}".strip())
        more = int(np.count_nonzero(column_of(T, j))) - len(terms)
        tail = f" and {more} smaller" if more > 0 else ""
        rows.append(
            f'<tr><td>{_name(name)}</td><td class="prose">{" ".join(terms)}{tail}</td></tr>'
        )
    return (
        f"<p>Coefficients act on {what}, the largest first.</p>"
        '<div class="scroll"><table><thead><tr><th>output</th><th class="left">made of</th></tr>'
        f"</thead><tbody>{''.join(rows)}</tbody></table></div>"
    )


def _population(facts: ReportFacts) -> str:
    """Raised floors, what they promise for the population, and what they cost."""
    sure = facts.confidence
    if sure is None:
        return ""
    bounds = sure.residual_bound
    rows = [
        [
            _name(name),
            f"{sure.rho_min[j]:.4f}",
            f"{sure.floors[j]:.4f}",
            f"{sure.lower[j]:.4f}",
            "–" if bounds is None else f"{bounds[j]:.4f}",
        ]
        for j, name in _listed(facts)
    ]
    header = ["variable", "floor asked", "floor raised", "fidelity at least", "residual at most"]
    return f"<p>{clean(sure.sentence())}</p>{_table(header, rows)}"


def _holdout(facts: ReportFacts) -> str:
    held = facts.holdout
    if held is None:
        return ""
    rows = []
    fitted, new = held.fidelity_fitted.mean(axis=0), held.fidelity_new.mean(axis=0)
    sure = facts.confidence
    floors = facts.result.rho_min if sure is None else sure.rho_min
    expected = (
        "Floors are kept on the rows fitted; ▾ marks a fidelity that is lower on the others, as is "
        "to be expected."
        if sure is None
        else "▾ marks a fidelity below the floor that was asked for."
    )
    for j, name in _listed(facts):
        low = new[j] < floors[j]
        shown = f"{new[j]:.4f}"
        rows.append(
            [
                _name(name),
                f"{fitted[j]:.4f}",
                f'<span class="below">{shown} ▾</span>' if low else shown,
            ]
        )
    return (
        f"<p>{len(held.criterion_new)} times, the transformation was fitted without one part of "
        f"the rows and measured on it. {clean(held.sentence())} {expected}</p>"
        + _table(["variable", "where fitted", "held out"], rows)
    )


def _name(name: str) -> str:
    return f'<bdi title="{clean(name)}">{clean(name) or "·"}</bdi>'
