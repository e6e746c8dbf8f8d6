"""What was assumed about a file and left out of it, in sentences to stand next to an answer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Literal

from skcoral.core.display import shortened
from skcoral.core.validation import listing
from skcoral.tables.columns import ColumnProfile, TableProfile
from skcoral.tables.dialect import SEPARATORS
from skcoral.tables.table import Table

#: Names of weights, of a body or of a row: the numbers do not tell.
_WEIGHT = ("weight", "wt", "gewicht", "poids", "peso")
_ENCODINGS = {"cp1252": "Windows-1252", "latin-1": "Latin-1"}
#: What becomes of incomplete rows: a fit does not use them, and perhaps writes no outputs for them;
#: a model has none for new ones; or they are not written.
Outcome = Literal["unused", "empty", "without", "dropped"]


def reading_notes(table: Table, content: TableProfile, names: Sequence[str]) -> list[str]:
    """How the file was read, and which cells of the columns ``names`` count as missing."""
    sentences = [*assumed(table)]
    for what, rows in (("notes", table.skipped), ("a total of the other rows", table.totals)):
        if rows:
            row, label = rows[0]
            why = repr(shortened(label)) if label else "its numbers are the sums of the others"
            more = f" and {len(rows) - 1} more" if len(rows) > 1 else ""
            sentences.append(f"Left out as {what}: {table.unit} {row} ({why}){more}.")
    columns = [content.columns[name] for name in names]
    marks = _counted(column.marks for column in columns)
    if marks:
        sentences.append(f"Read as missing: {marks}.")
    if named := [shortened(column.name) for column in columns if column.left_out]:
        left_out = _counted(column.left_out for column in columns)
        minus = "; parentheses mean a minus" * any("()" in column.left_out for column in columns)
        sentences.append(
            f"Marks left out of numbers: {left_out}, in {listing(named, quote='')}{minus}."
        )
    return [*sentences, *_coded_notes(columns)]


def assumed(table: Table) -> Iterator[str]:
    """What was recognised about a file; the usual is not worth a sentence."""
    marks = []
    if "separator" in table.recognised and table.separator not in ",\t":
        marks.append(f"{SEPARATORS.get(table.separator, 'blanks')} between the cells")
    if "decimal" in table.recognised and table.decimal == ",":
        marks.append("decimal commas")
    if marks:
        yield f"Read with {' and '.join(marks)}."
    if "encoding" in table.recognised and not table.encoding.startswith("utf-8"):
        name = _ENCODINGS.get(table.encoding, table.encoding.upper())
        yield f"The text is not UTF-8; read as {name}."
    if "sheet" in table.recognised and table.other_sheets:
        others = listing(table.other_sheets, 6, quote="")
        yield f"Sheet {table.sheet!r} was read; the workbook also has {others}."
    unit = table.unit
    if table.header_at > 1:
        where = f"{unit} {table.header_at}"
        yield f"The header was found in {where}; the {unit}s above it are left out."
    if table.units_at is not None:
        yield (
            f"{unit.capitalize()} {table.units_at} holds words under the names (units?) and is "
            "left out."
        )


def _coded_notes(columns: Sequence[ColumnProfile]) -> Iterator[str]:
    """Which variables are dummies, codes or numbers of persons: outputs are numbers of any size."""
    dummies = [shortened(c.name) for c in columns if c.is_dummy]
    coded = [c for c in columns if c.n_codes and not c.is_dummy]
    codes = [f"{shortened(c.name)} ({c.n_codes} values)" for c in coded]
    repeated = [shortened(c.name) for c in columns if c.repeats_ids]
    if dummies:
        verb = "holds" if len(dummies) == 1 else "hold"
        yield f"Dummies become numbers: {listing(dummies, quote='')} {verb} only 0 and 1."
    if codes:
        listed = listing(codes, quote="")
        yield f"Whole numbers with few values become other numbers: {listed}."
    if repeated:
        listed = listing(repeated, quote="")
        yield f"Used as variables although named like ids: {listed}. Leave them out if they are."
    for name in (c.name for c in columns if c.name.lower() in _WEIGHT and c.low >= 0):
        yield f"{name} is used as a variable. If it weights the rows, choose it as the weights."


def _counted(counts: Iterable[Mapping[str, int]]) -> str:
    total: Counter[str] = Counter()
    for marks in counts:
        total.update(marks)
    listed = [f"{mark!r} ({n:,} cell{'s' if n > 1 else ''})" for mark, n in total.most_common()]
    return listing(listed, quote="")


def left_out_note(what: str, reasons: Mapping[str, str], how: str = "") -> str:
    """Which columns are left out, why, and how to use them."""
    columns = [f"{shortened(name) or 'the row labels'} ({why})" for name, why in reasons.items()]
    return f"{what}: {listing(columns, quote='')}. {how}".rstrip() if columns else ""


def incomplete_note(
    places: Sequence[int],
    unit: str,
    outcome: Outcome = "unused",
    columns: Iterable[ColumnProfile] = (),
) -> str:
    """Where incomplete rows stand in the file, what becomes of them, and for want of what."""
    if not places:
        return ""
    n = len(places)
    s, are, have = ("", "is", "has") if n == 1 else ("s", "are", "have")
    what = {
        "unused": f"{are} not used",
        "empty": f"{are} not used, and outputs that cannot be computed are left empty",
        "without": f"{have} no outputs",
        "dropped": f"{are} left out",
    }
    where = listing([str(place) for place in places], 10, quote="")
    sentence = f"{n:,} row{s} with missing values {what[outcome]}: {unit}{s} {where}."
    emptiest = max(columns, key=lambda column: column.n_missing, default=None)
    if n > 1 and emptiest is not None and emptiest.n_missing > 1:
        of = "any" if emptiest.n_missing >= n else f"{emptiest.n_missing:,}"
        sentence += f" {shortened(emptiest.name)} has no value in {of} of them."
    return sentence
