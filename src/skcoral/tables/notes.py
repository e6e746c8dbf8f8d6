"""What was assumed about a file and left out of it, in sentences to stand next to an answer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from skcoral._requirements import listing
from skcoral.measured import shortened
from skcoral.tables.columns import TableProfile
from skcoral.tables.table import Table

_SHOWN = 8


def reading_notes(table: Table, content: TableProfile, names: Sequence[str]) -> list[str]:
    """How the file was read, and which cells of the columns ``names`` count as missing."""
    told = [*table.assumed]
    if table.skipped:
        line, text = table.skipped[0]
        more = f" and {len(table.skipped) - 1} more" if len(table.skipped) > 1 else ""
        told.append(f"Left out as notes: line {line} ({shortened(text)!r}){more}.")
    columns = [content.column(name) for name in names]
    marks = _counted(column.marks for column in columns)
    if marks:
        told.append(f"Read as missing: {marks}.")
    flags = _counted(column.flags for column in columns)
    if flags:
        flagged = [shortened(column.name) for column in columns if column.flags]
        told.append(
            f"Flags behind numbers were left out: {flags}, in {listing(flagged, _SHOWN, quote='')}."
        )
    return told


def _counted(found: Iterable[Mapping[str, int]]) -> str:
    total: Counter[str] = Counter()
    for counts in found:
        total.update(counts)
    told = [f"{mark!r} ({n:,} cell{'s' if n > 1 else ''})" for mark, n in total.most_common()]
    return listing(told, _SHOWN, quote="")


def doubtful_note(doubtful: Mapping[str, str], how: str) -> str:
    """Which columns look like ids or years and so are no variables, and how to use them."""
    if not doubtful:
        return ""
    told = [f"{shortened(name) or 'the row labels'} ({why})" for name, why in doubtful.items()]
    return f"Not used as variables: {listing(told, _SHOWN, quote='')}. {how}"
