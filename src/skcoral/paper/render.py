"""A comparison with the paper as Markdown and as one self-contained HTML page."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from skcoral._version import __version__
from skcoral.paper.numbers import TITLES
from skcoral.report.templating import fill

if TYPE_CHECKING:
    from skcoral.paper.reproduction import Reproduction, Row

_TITLE = "The paper, reproduced"
#: Longer cells are broken into lines; shorter ones stay whole.
_SHORT = 28
_HEADER = ("row", "column", "paper", "ours", "difference", "gap", "verdict", "why")
#: Column of the protocol's table → attribute of a comparison and its format.
_PROTOCOL = {
    "system": ("system", ""),
    "problem": ("problem", ""),
    "starts": ("n_starts", "d"),
    "their best": ("best", ".6f"),
    "ours": ("ours", ".6f"),
    "our gap": ("gap", ".1e"),
    "ends worse": ("share_worse", ".0%"),
    "mirrored": ("share_mirrored", ".0%"),
    "typical ratio": ("typical_ratio", ".3g"),
    "floor missed by": ("worst_violation", ".1e"),
    "their seconds": ("seconds", ".2f"),
    "our seconds": ("our_seconds", ".3f"),
}
_INTRO = (
    "Every cell of every table of the paper “CORAL: Constrained Oblique Rotation with Anchored "
    "Loadings for Fidelity-Constrained Decorrelation”, and the figures that only its text has, "
    "recomputed. The gap is the width of the proved interval that the optimum lies in; “–” where "
    "nothing was optimised. World Development Indicators: World Bank, CC BY 4.0; Wine: Aeberhard "
    "and Forina, UCI."
)
_NOTE = (
    "Augmented Lagrangian over a manifold from independent random starts, the best feasible end "
    "kept. “Ends worse”: share of starts more than 1 % worse than the certified optimum or "
    "infeasible; “typical ratio”: the median of their values over ours. “Mirrored”: share of "
    "starts whose outputs end with the other orientation than ours; for ρ★ that is the part of "
    "the orthogonal group without the solution, which no path leaves."
)


@dataclass(frozen=True)
class Table:
    """One table of the comparison, as text."""

    label: str
    title: str
    header: Sequence[str]
    rows: list[list[str]]
    note: str = ""

    @property
    def kinds(self) -> list[str]:
        """How each column's name is set: like most of its cells."""
        columns = zip(*(map(_kind, row) for row in self.rows), strict=True)
        return [Counter(kinds).most_common(1)[0][0].replace("long", "") for kinds in columns]


def to_markdown(result: Reproduction) -> str:
    """Write the comparison as Markdown, one table of it per table of the paper."""
    lines = [f"# {_TITLE}", "", _INTRO, "", _summary(result), ""]
    for table in _tables(result):
        lines += [f"## {table.title} (`{table.label}`)", ""]
        lines += [table.note, ""] if table.note else []
        lines += ["| " + " | ".join(table.header) + " |", "|" + "---|" * len(table.header)]
        lines += ["| " + " | ".join(map(_escaped, row)) + " |" for row in table.rows]
        lines += [""]
    return "\n".join(lines)


def _escaped(cell: str) -> str:
    """A cell of Markdown, which a bar inside it (as in |offdiag|) would end."""
    return f"`{cell}`" if cell in TITLES else cell.replace("|", "\\|")


def to_html(result: Reproduction) -> str:
    """Write the comparison as HTML that needs no other file; needs the ``report`` extra."""
    return fill(
        "reproduction.html",
        title=_TITLE,
        kind="scikit-coral",
        wide=True,
        said=[_INTRO, _summary(result)],
        tables=_tables(result),
        labels=TITLES,
        kind_of=_kind,
    )


def _summary(result: Reproduction) -> str:
    return f"{result.verdicts}. Computed by scikit-coral {__version__} in {result.seconds:.1f} s."


def _tables(result: Reproduction) -> list[Table]:
    """How many cells of each table got each verdict, then every table."""
    found = Counter((row.table, row.verdict) for row in result.rows)
    labels = list(dict.fromkeys(row.table for row in result.rows))
    cells = {label: [_cells(row) for row in result.rows if row.table == label] for label in labels}
    counts = [
        [label, str(len(cells[label])), *(str(found[label, v] or "–") for v in result.counts)]
        for label in labels
    ]
    tables = [Table("overview", "What comes out", ("table", "cells", *result.counts), counts)]
    tables += [Table(label, TITLES[label], _HEADER, cells[label]) for label in labels]
    if result.protocol:
        rows = [
            [_shown(getattr(run, name), form) for name, form in _PROTOCOL.values()]
            for run in result.protocol
        ]
        title = "The paper's protocol beside ours"
        tables.append(Table("protocol", title, tuple(_PROTOCOL), rows, _NOTE))
    return tables


def _cells(row: Row) -> list[str]:
    difference = "0" if row.difference == 0 else _shown(row.difference, "+.1e")
    numbers = [row.paper, _ours(row), difference, _shown(row.gap, ".1e")]
    return [row.row, row.column, *numbers, row.verdict, row.why]


def _ours(row: Row) -> str:
    """Our value with two digits more than the paper prints; whole numbers as they are."""
    if isinstance(row.ours, str):
        return row.ours
    if row.unit == 1.0 and row.ours == int(row.ours):
        return str(int(row.ours))
    if "e" in row.paper:
        return f"{row.ours:.2e}"
    return f"{row.ours:.{2 - round(math.log10(row.unit))}f}"


def _shown(value: Any, form: str) -> str:
    """A value in a format; a dash where there is none."""
    return "–" if value is None or value != value else format(value, form)


def _kind(cell: str) -> str:
    """How a cell is set: numbers to the right, long text in lines."""
    if cell[:1].isdigit() or (cell[:1] in tuple("+-–") and len(cell) < 12):
        return "number"
    return "long" if len(cell) > _SHORT else ""
