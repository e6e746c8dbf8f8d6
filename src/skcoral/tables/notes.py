"""What was assumed about a file and left out of it, in sentences to stand next to an answer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Literal

from skcoral.core.display import shortened
from skcoral.core.requirements import listing
from skcoral.data.moments import Moments
from skcoral.tables.columns import ColumnProfile, TableProfile
from skcoral.tables.roles import Doubt
from skcoral.tables.table import Table

_SHOWN = 8
#: What is left out of cells that count as numbers.
_LEFT_OUT: dict[str, Literal["flags", "signs", "thousands"]] = {
    "Flags behind numbers": "flags",
    "Percent signs and currency marks": "signs",
    "Marks between thousands": "thousands",
}


def reading_notes(table: Table, content: TableProfile, names: Sequence[str]) -> list[str]:
    """How the file was read, and which cells of the columns ``names`` count as missing."""
    told = [*table.assumed]
    if table.skipped:
        line, text = table.skipped[0]
        more = f" and {len(table.skipped) - 1} more" if len(table.skipped) > 1 else ""
        told.append(f"Left out as notes: {table.unit} {line} ({shortened(text)!r}){more}.")
    if table.totals:
        row, label = table.totals[0]
        why = repr(shortened(label)) if label else "its numbers are the sums of the others"
        more = f" and {len(table.totals) - 1} more" if len(table.totals) > 1 else ""
        told.append(f"Left out as a total of the other rows: {table.unit} {row} ({why}){more}.")
    columns = [content.column(name) for name in names]
    marks = _counted(column.marks for column in columns)
    if marks:
        told.append(f"Read as missing: {marks}.")
    for what, kind in _LEFT_OUT.items():
        if kind == "thousands" and table.thousands:
            continue  # said of the whole file
        found = {shortened(c.name): getattr(c.left_out, kind) for c in columns}
        named = [name for name, counts in found.items() if counts]
        if named:
            marks = _counted(found.values())
            told.append(f"{what} were left out: {marks}, in {listing(named, _SHOWN, quote='')}.")
    return [*told, *_coded_notes(columns)]


def _coded_notes(columns: Sequence[ColumnProfile]) -> Iterator[str]:
    """Which variables are dummies or codes, whose outputs are numbers of any size."""
    watched = [(shortened(column.name), column.watch) for column in columns]
    dummies = [name for name, watch in watched if watch.is_dummy]
    codes = [
        f"{name} ({watch.n_codes} values)"
        for name, watch in watched
        if watch.n_codes and not watch.is_dummy
    ]
    if dummies:
        hold = "holds" if len(dummies) == 1 else "hold"
        yield f"Dummies become numbers: {listing(dummies, _SHOWN, quote='')} {hold} only 0 and 1."
    if codes:
        yield (
            "Whole numbers with few values become other numbers: "
            f"{listing(codes, _SHOWN, quote='')}."
        )


def _counted(found: Iterable[Mapping[str, int]]) -> str:
    total: Counter[str] = Counter()
    for counts in found:
        total.update(counts)
    told = [f"{mark!r} ({n:,} cell{'s' if n > 1 else ''})" for mark, n in total.most_common()]
    return listing(told, _SHOWN, quote="")


def doubtful_note(doubtful: Mapping[str, Doubt], how: str) -> str:
    """Which columns look like ids or years and so are no variables, and how to use them."""
    if not doubtful:
        return ""
    told = [f"{shortened(name) or 'the row labels'} ({why})" for name, why in doubtful.items()]
    return f"Not used as variables: {listing(told, _SHOWN, quote='')}. {how}"


def target_note(name: str) -> str:
    """What becomes of the outcome.

    Examples
    --------
    >>> target_note("sales")
    'sales is the outcome: it is left out of the variables and stays as it is.'
    """
    return f"{shortened(name)} is the outcome: it is left out of the variables and stays as it is."


def dropped_note(n_rows: int, places: Sequence[int] = (), unit: str = "row") -> str:
    """How many rows are left out, and where they stand in the file if that is known.

    Examples
    --------
    >>> dropped_note(2, [4, 9], "line")
    '2 rows with missing values are left out: lines 4, 9.'
    """
    if not n_rows:
        return ""
    s, are = ("", "is") if n_rows == 1 else ("s", "are")
    where = f": {unit}{s} {listing([str(place) for place in places], 10, quote='')}"
    return f"{n_rows:,} row{s} with missing values {are} left out{where if places else ''}."


def weights_note(name: str, moments: Moments) -> str:
    """What the weights in the column ``name`` amount to."""
    return (
        f"Rows are weighted by {shortened(name)}; they tell as much as "
        f"{moments.effective_rows:,.0f} equally weighted rows."
    )
