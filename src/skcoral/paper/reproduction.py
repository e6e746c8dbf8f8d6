"""The paper beside this package, cell by cell."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from time import perf_counter
from typing import TYPE_CHECKING, Any

from skcoral.exceptions import InvalidArgumentError
from skcoral.paper.numbers import TABLES, Cell, paper_numbers
from skcoral.paper.protocol_comparison import ProtocolComparison, compare_with_protocol
from skcoral.paper.quantities import QUANTITIES
from skcoral.paper.render import to_html, to_markdown
from skcoral.paper.study import Study
from skcoral.paper.verdicts import VERDICTS, judge

if TYPE_CHECKING:
    import pandas as pd

_COLUMNS = ("table", "row", "column", "paper", "ours", "difference", "verdict", "gap", "why")


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
    protocol : tuple of ProtocolComparison
        The paper's own protocol beside ours; empty unless asked for.
    seconds : float
        Wall-clock time of the whole comparison.

    Examples
    --------
    >>> reproduce("rho-star").counts
    {'equal to printed digits': 30}
    """

    rows: tuple[Row, ...]
    protocol: tuple[ProtocolComparison, ...]
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

    to_markdown, to_html = to_markdown, to_html

    def __repr__(self) -> str:
        return f"Reproduction({self.verdicts}; {self.seconds:.1f} s)"


def reproduce(
    table: str = "all", *, protocol: bool = False, n_starts: int = 100, random_state: int = 0
) -> Reproduction:
    """Recompute the paper's numbers and put them side by side.

    Parameters
    ----------
    table : str, default="all"
        Label of one of the paper's tables, "text" for the figures in its text, "timings", or
        "all".
    protocol : bool, default=False
        Also run the paper's own protocol (augmented Lagrangian, random starts) and count how many
        of its starts end in a worse optimum; this takes minutes.
    n_starts : int, default=100
        Starts of the support-restricted problems and of the protocol.
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
    compared = compare_with_protocol(study) if protocol else ()
    return Reproduction(rows, compared, perf_counter() - start)


def _row(study: Study, cell: Cell) -> Row:
    finding = QUANTITIES[cell.quantity](study, **cell.args)
    verdict, why = judge(study, cell, finding)
    return Row(**vars(cell), ours=finding.ours, verdict=verdict, gap=finding.gap, why=why)
