"""The paper beside this package, cell by cell, as a table and as Markdown."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import TYPE_CHECKING, Any

from skcoral._version import __version__
from skcoral.exceptions import InvalidArgumentError
from skcoral.paper.numbers import TABLES, TITLES, Cell, paper_numbers
from skcoral.paper.quantities import QUANTITIES
from skcoral.paper.verdicts import VERDICTS, verdict_of

if TYPE_CHECKING:
    import pandas as pd

_COLUMNS = ("table", "row", "column", "paper", "ours", "difference", "verdict", "gap", "why")

_TITLE = "The paper, reproduced"
_HEADER = ("row", "column", "paper", "ours", "difference", "gap", "verdict", "why")
_INTRO = (
    "Every cell of every table of the paper “CORAL: Constrained Oblique Rotation with Anchored "
    "Loadings for Fidelity-Constrained Decorrelation”, and the figures that only its text has, "
    "recomputed. The gap is the width of the proved interval that the optimum lies in; “–” where "
    "nothing was optimised. World Development Indicators: World Bank, CC BY 4.0; Wine: Aeberhard "
    "and Forina, UCI."
)


@dataclass(frozen=True, kw_only=True)
class Row(Cell):
    """One cell of the paper and what this package computes for it.

    Attributes
    ----------
    ours : float or str
        Computed now.
    verdict : str
        One of `skcoral.paper.VERDICTS`.
    gap : float or None
        Width of the proved interval that the value's optimum lies in; None where nothing was
        optimised.
    why : str
        One line: the reason for a difference, or what is worth knowing about an agreement.

    Examples
    --------
    >>> row = reproduce("rho-star").rows[1]
    >>> row.paper, row.verdict
    ('0.9565', 'equal to printed digits')
    """

    ours: float | str
    verdict: str
    gap: float | None
    why: str

    @property
    def paper(self) -> str:
        """As printed."""
        return self.printed

    @property
    def difference(self) -> float | None:
        """``ours`` minus the printed number; None for words."""
        if self.value is None or isinstance(self.ours, str):
            return None
        return self.ours - self.value


@dataclass(frozen=True)
class Reproduction:
    """All rows of a comparison, and how long it took.

    Attributes
    ----------
    rows : tuple of Row
        In the order of the paper.
    seconds : float
        Wall-clock time of the whole comparison.

    Examples
    --------
    >>> reproduce("rho-star").counts
    {'equal to printed digits': 30}
    """

    rows: tuple[Row, ...]
    seconds: float

    @property
    def counts(self) -> dict[str, int]:
        """How many cells got each verdict."""
        counted = Counter(row.verdict for row in self.rows)
        return {verdict: counted[verdict] for verdict in VERDICTS if counted[verdict]}

    @property
    def verdicts(self) -> str:
        """The counts in words."""
        counts = ", ".join(f"{count} {verdict}" for verdict, count in self.counts.items())
        return f"{len(self.rows)} cells: {counts}"

    def to_frame(self) -> pd.DataFrame:
        """Return one line per cell as a pandas table."""
        import pandas as pd

        return pd.DataFrame({name: [getattr(row, name) for row in self.rows] for name in _COLUMNS})

    def to_markdown(self) -> str:
        """Write the comparison as Markdown: an overview, then one table per table of the paper."""
        # the overview first: how many cells of each table got which verdict
        counted = Counter((row.table, row.verdict) for row in self.rows)
        tables: dict[str, list[list[str]]] = {}
        for row in self.rows:
            tables.setdefault(row.table, []).append(_cells(row))
        counts = [
            [f"`{label}`", str(len(rows)), *(str(counted[label, v] or "–") for v in self.counts)]
            for label, rows in tables.items()
        ]
        lines = [f"# {_TITLE}", "", _INTRO, "", self._summary(), "", "## What comes out", ""]
        lines += _markdown_table(("table", "cells", *self.counts), counts)
        for label, rows in tables.items():
            lines += [f"## {TITLES[label]} (`{label}`)", "", *_markdown_table(_HEADER, rows)]
        return "\n".join(lines)

    def _summary(self) -> str:
        return f"{self.verdicts}. Computed by scikit-coral {__version__} in {self.seconds:.1f} s."

    def __repr__(self) -> str:
        return f"Reproduction({self.verdicts}; {self.seconds:.1f} s)"


def reproduce(table: str = "all") -> Reproduction:
    """Recompute the paper's numbers and put them side by side.

    Parameters
    ----------
    table : str, default="all"
        Label of one of the paper's tables, "text" for the figures in its text, "timings", or
        "all".

    Returns
    -------
    Reproduction
        Rows with ``paper``, ``ours``, ``difference``, ``verdict``, ``gap`` and ``why``.

    Examples
    --------
    >>> from skcoral.paper import reproduce
    >>> result = reproduce("rho-star")
    >>> result.counts
    {'equal to printed digits': 30}
    """
    if table != "all" and table not in TABLES:
        raise InvalidArgumentError(
            f"the paper has no table {table!r}; choose one of all, {', '.join(TABLES)}."
        )
    start = perf_counter()
    rows = tuple(_row(cell) for cell in paper_numbers() if table in ("all", cell.table))
    return Reproduction(rows, perf_counter() - start)


def _row(cell: Cell) -> Row:
    finding = QUANTITIES[cell.quantity](**cell.args)
    verdict, why = verdict_of(cell, finding)
    return Row(**vars(cell), ours=finding.ours, verdict=verdict, gap=finding.gap, why=why)


def _markdown_table(header: Sequence[str], rows: list[list[str]]) -> list[str]:
    """Lines of a table; a bar inside a cell (as in |offdiag|) would end it."""
    cells = [[cell.replace("|", "\\|") for cell in row] for row in rows]
    lines = [list(header), ["---"] * len(header), *cells]
    return [f"| {' | '.join(line)} |" for line in lines] + [""]


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
