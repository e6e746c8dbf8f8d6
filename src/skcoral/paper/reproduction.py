"""The paper beside this package, cell by cell, as a table, as Markdown and as one HTML page."""

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
from skcoral.paper.study import Study
from skcoral.paper.verdicts import VERDICTS, judge
from skcoral.show.report.templating import fill

if TYPE_CHECKING:
    import pandas as pd

_COLUMNS = ("table", "row", "column", "paper", "ours", "difference", "verdict", "gap", "why")

_TITLE = "The paper, reproduced"
#: Longer cells are broken into lines; shorter ones stay whole.
_SHORT = 28
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
        found = Counter(row.verdict for row in self.rows)
        return {verdict: found[verdict] for verdict in VERDICTS if found[verdict]}

    @property
    def verdicts(self) -> str:
        """The counts in words."""
        counts = ", ".join(f"{count} {verdict}" for verdict, count in self.counts.items())
        return f"{len(self.rows)} cells: {counts}"

    def records(self) -> list[dict[str, Any]]:
        """Return one mapping per cell."""
        return [{name: getattr(row, name) for name in _COLUMNS} for row in self.rows]

    def to_frame(self) -> pd.DataFrame:
        """Return one line per cell as a pandas table."""
        import pandas as pd

        return pd.DataFrame(self.records())

    def to_markdown(self) -> str:
        """Write the comparison as Markdown, one table of it per table of the paper."""
        lines = [f"# {_TITLE}", "", _INTRO, "", self._summary(), ""]
        for table in _tables(self):
            lines += [f"## {table.title} (`{table.label}`)", ""]
            lines += ["| " + " | ".join(table.header) + " |", "|" + "---|" * len(table.header)]
            lines += ["| " + " | ".join(map(_escaped, row)) + " |" for row in table.rows]
            lines += [""]
        return "\n".join(lines)

    def to_html(self) -> str:
        """Write the comparison as HTML that needs no other file; needs the ``report`` extra."""
        return fill(
            "reproduction.html",
            title=_TITLE,
            kind="scikit-coral",
            wide=True,
            said=[_INTRO, self._summary()],
            tables=_tables(self),
            labels=TITLES,
            kind_of=_kind,
        )

    def _summary(self) -> str:
        return f"{self.verdicts}. Computed by scikit-coral {__version__} in {self.seconds:.1f} s."

    def __repr__(self) -> str:
        return f"Reproduction({self.verdicts}; {self.seconds:.1f} s)"


def reproduce(table: str = "all", *, n_starts: int = 100, random_state: int = 0) -> Reproduction:
    """Recompute the paper's numbers and put them side by side.

    Parameters
    ----------
    table : str, default="all"
        Label of one of the paper's tables, "text" for the figures in its text, "timings", or
        "all".
    n_starts : int, default=100
        Starts of the support-restricted problems, which are not convex.
    random_state : int, default=0
        Seed of these starts.

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
    study = Study(n_starts=n_starts, random_state=random_state)
    rows = tuple(_row(study, cell) for cell in paper_numbers() if table in ("all", cell.table))
    return Reproduction(rows, perf_counter() - start)


def _row(study: Study, cell: Cell) -> Row:
    finding = QUANTITIES[cell.quantity](study, **cell.args)
    verdict, why = judge(study, cell, finding)
    return Row(**vars(cell), ours=finding.ours, verdict=verdict, gap=finding.gap, why=why)


@dataclass(frozen=True)
class Table:
    """One table of the comparison, as text."""

    label: str
    title: str
    header: Sequence[str]
    rows: list[list[str]]

    @property
    def kinds(self) -> list[str]:
        """How each column's name is set: like most of its cells."""
        columns = zip(*(map(_kind, row) for row in self.rows), strict=True)
        return [Counter(kinds).most_common(1)[0][0].replace("long", "") for kinds in columns]


def _escaped(cell: str) -> str:
    """A cell of Markdown, which a bar inside it (as in |offdiag|) would end."""
    return f"`{cell}`" if cell in TITLES else cell.replace("|", "\\|")


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
    return tables + [Table(label, TITLES[label], _HEADER, cells[label]) for label in labels]


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
