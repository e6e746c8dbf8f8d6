"""What was assumed about a file and left out of it, in sentences to stand next to an answer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

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
    marks: Counter[str] = Counter()
    for name in names:
        marks.update(content.column(name).marks)
    if marks:
        shown = [f"{mark!r} ({n:,} cell{'s' if n > 1 else ''})" for mark, n in marks.most_common()]
        told.append(f"Read as missing: {listing(shown, _SHOWN, quote='')}.")
    flags: Counter[str] = Counter()
    flagged = [name for name in names if content.column(name).flags]
    for name in flagged:
        flags.update(content.column(name).flags)
    if flags:
        shown = [f"{flag!r} ({n:,} cell{'s' if n > 1 else ''})" for flag, n in flags.most_common()]
        told.append(
            f"Flags behind numbers were left out: {listing(shown, _SHOWN, quote='')}, in "
            f"{listing([shortened(name) for name in flagged], _SHOWN, quote='')}."
        )
    return told


def doubtful_note(doubtful: Mapping[str, str], how: str) -> str:
    """Which columns look like ids or years and so are no variables, and how to use them."""
    if not doubtful:
        return ""
    told = [f"{shortened(name) or 'the row labels'} ({why})" for name, why in doubtful.items()]
    return f"Not used as variables: {listing(told, _SHOWN, quote='')}. {how}"
