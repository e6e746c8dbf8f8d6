"""A comparison with the paper as Markdown and as one self-contained HTML page."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from html import escape
from typing import TYPE_CHECKING

from skcoral._version import __version__

if TYPE_CHECKING:
    from skcoral.paper.reproduction import Reproduction, Row

_TITLES = {
    "rho-star": "Fidelity benchmarks and bounds under exact decorrelation",
    "dense-frontiers": "Frontiers of the three dense simulated systems",
    "real-primal": "Frontiers of the two empirical datasets",
    "dual-real": "Common fidelity under squared-correlation budgets",
    "support-frontier": "Frontier under the support restriction, p = 18",
    "support-floors": "Supported residuals without a fidelity requirement",
    "sparse-pca-ablation": "Sparse PCA at varying sparsity",
    "final-diagnostics": "Diagnostics at ρ_min = 0.99",
    "sparse-pca-app": "Sparse PCA matched to the support's density",
    "text": "Figures in the text",
    "timings": "Timings",
}
#: Longer cells are broken into lines; shorter ones stay whole.
_SHORT = 28
_HEADER = ("row", "column", "paper", "ours", "difference", "gap", "verdict", "why")
_PROTOCOL_HEADER = (
    "system", "problem", "starts", "their best", "ours", "our gap", "ends worse",
    "mirrored", "typical ratio", "floor missed by", "their seconds", "our seconds",
)  # fmt: skip
_INTRO = (
    "Every cell of every table of the paper “CORAL: Constrained Oblique Rotation with Anchored "
    "Loadings for Fidelity-Constrained Decorrelation”, and the figures that only its text has, "
    "recomputed. The gap is the width of the proved interval that the optimum lies in; “–” where "
    "nothing was optimised. World Development Indicators: World Bank, CC BY 4.0; Wine: Aeberhard "
    "and Forina, UCI."
)
_STYLE = """
:root { color-scheme: light dark; }
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 76rem; padding: 0 1rem; }
table { border-collapse: collapse; width: 100%; margin: 0.5rem 0 2rem; font-size: 13px; }
caption { text-align: left; font-weight: 600; padding: 0.3rem 0; }
th, td { padding: 0.25rem 0.5rem; border-bottom: 1px solid #8884; text-align: left;
         vertical-align: top; white-space: nowrap; }
td.long { white-space: normal; min-width: 9rem; }
.number { text-align: right; font-variant-numeric: tabular-nums; }
th { position: sticky; top: 0; background: Canvas; }
.scroll { overflow-x: auto; }
"""


def to_markdown(result: Reproduction) -> str:
    """Write the comparison as Markdown, one table of it per table of the paper."""
    lines = ["# The paper, reproduced", "", _INTRO, "", _summary(result), ""]
    header, counts = _overview(result)
    lines += _markdown_table(header, [[f"`{label}`", *cells] for label, *cells in counts])
    for label, cells in _sections(result):
        lines += [f"## {_TITLES[label]} (`{label}`)", ""]
        lines += _markdown_table(_HEADER, cells)
    if result.protocol:
        lines += ["## The paper's protocol beside ours", "", _PROTOCOL_NOTE, ""]
        lines += _markdown_table(_PROTOCOL_HEADER, _protocol_cells(result))
    return "\n".join(lines)


def to_html(result: Reproduction) -> str:
    """Write the comparison as HTML that needs no other file."""
    parts = [
        "<!doctype html>",
        '<html lang="en"><head><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>The paper, reproduced</title><style>{_STYLE}</style></head><body><main>",
        f"<h1>The paper, reproduced</h1><p>{escape(_INTRO)}</p><p>{escape(_summary(result))}</p>",
    ]
    overview = _html_table("What comes out", *_overview(result))
    for label in _TITLES:
        link = f'<td><a href="#{label}">{label}</a></td>'
        overview = overview.replace(f"<td>{label}</td>", link)
    parts.append(overview)
    for label, cells in _sections(result):
        parts.append(f'<h2 id="{label}">{escape(_TITLES[label])}</h2>')
        parts.append(_html_table(label, _HEADER, cells))
    if result.protocol:
        parts.append(f"<h2>The paper's protocol beside ours</h2><p>{escape(_PROTOCOL_NOTE)}</p>")
        parts.append(_html_table("protocol", _PROTOCOL_HEADER, _protocol_cells(result)))
    parts.append("</main></body></html>")
    return "\n".join(parts)


_PROTOCOL_NOTE = (
    "Augmented Lagrangian over a manifold from independent random starts, the best feasible end "
    "kept. “Ends worse”: share of starts more than 1 % worse than the certified optimum or "
    "infeasible; “typical ratio”: the median of their values over ours. “Mirrored”: share of "
    "starts whose outputs end with the other orientation than ours; for ρ★ that is the part of "
    "the orthogonal group without the solution, which no path leaves."
)


def _summary(result: Reproduction) -> str:
    verdicts = ", ".join(f"{count} {verdict}" for verdict, count in result.counts.items())
    return (
        f"{len(result.rows)} cells: {verdicts}. Computed by scikit-coral {__version__} in "
        f"{result.seconds:.1f} s."
    )


def _overview(result: Reproduction) -> tuple[tuple[str, ...], list[list[str]]]:
    """How many cells of each table got each verdict; header and rows."""
    found = Counter((row.table, row.verdict) for row in result.rows)
    rows = [
        [label, str(len(cells)), *(str(found[label, verdict] or "–") for verdict in result.counts)]
        for label, cells in _sections(result)
    ]
    return ("table", "cells", *result.counts), rows


def _sections(result: Reproduction) -> Iterator[tuple[str, list[list[str]]]]:
    for label in dict.fromkeys(row.table for row in result.rows):
        yield label, [_cells(row) for row in result.rows if row.table == label]


def _cells(row: Row) -> list[str]:
    return [
        row.row,
        row.column,
        row.paper,
        _ours(row),
        "–" if row.difference is None else f"{row.difference:+.1e}" if row.difference else "0",
        "–" if row.gap is None else f"{row.gap:.1e}",
        row.verdict,
        row.why,
    ]


def _ours(row: Row) -> str:
    """Our value with two digits more than the paper prints; whole numbers as they are."""
    if isinstance(row.ours, str):
        return row.ours
    if row.unit == 1.0 and row.ours == int(row.ours):
        return str(int(row.ours))
    if "e" in row.paper:
        return f"{row.ours:.2e}"
    return f"{row.ours:.{2 - round(math.log10(row.unit))}f}"


def _protocol_cells(result: Reproduction) -> list[list[str]]:
    return [
        [
            run.system,
            run.problem,
            str(run.n_starts),
            f"{run.best:.6f}",
            f"{run.ours:.6f}",
            f"{run.gap:.1e}",
            f"{run.share_worse:.0%}",
            _or_dash(run.share_mirrored, ".0%"),
            _or_dash(run.typical_ratio, ".3g"),
            f"{run.worst_violation:.1e}",
            f"{run.seconds:.2f}",
            f"{run.our_seconds:.3f}",
        ]
        for run in result.protocol
    ]


def _or_dash(value: float, form: str) -> str:
    return "–" if math.isnan(value) else format(value, form)


def _markdown_table(header: Sequence[str], rows: list[list[str]]) -> list[str]:
    lines = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    # A bar inside a cell (as in |offdiag|) would end the cell.
    lines += ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows]
    return [*lines, ""]


def _html_table(caption: str, header: Sequence[str], rows: list[list[str]]) -> str:
    numeric = [sum(map(_is_numeric, cells)) > len(rows) / 2 for cells in zip(*rows, strict=True)]
    head = "".join(
        f'<th scope="col"{_kind(number, name)}>{escape(name)}</th>'
        for name, number in zip(header, numeric, strict=True)
    )
    body = "\n".join("<tr>" + "".join(_html_cell(cell) for cell in row) + "</tr>" for row in rows)
    return (
        f'<div class="scroll"><table><caption>{escape(caption)}</caption>'
        f"<thead><tr>{head}</tr></thead><tbody>\n{body}\n</tbody></table></div>"
    )


def _html_cell(cell: str) -> str:
    return f"<td{_kind(_is_numeric(cell), cell)}>{escape(cell)}</td>"


def _is_numeric(cell: str) -> bool:
    return cell[:1].isdigit() or (cell[:1] in tuple("+-–") and len(cell) < 12)


def _kind(number: bool, text: str) -> str:
    if number:
        return ' class="number"'
    return ' class="long"' if len(text) > _SHORT else ""
