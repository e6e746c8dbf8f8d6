"""Cells: what is a number, what is missing, what to say about the rest, and arrays of them.

The arrays are those of Arrow, made without pandas: ``pyarrow.array``, ``pyarrow.scalar`` and
``to_numpy`` import it, and ``coral inspect`` takes one and a half times as long for a small file.
"""

from __future__ import annotations

import re
import shlex
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow.lib import StringBuilder

from skcoral.core.arrays import Array, Mask
from skcoral.exceptions import InvalidTableError

#: Cells that stand for "no value", whatever their case and the blanks around them: those of
#: spreadsheets and statistical programs, the World Bank (..), the OECD (.., …, n.a.), Eurostat (:).
MISSING = frozenset(
    {"", "na", "n/a", "n.a.", "n.a", "#n/a", "#na", "nan", "null", "(null)", "none", "?", "\\n"}
    | {".", "..", "...", "…", "-", "--", "–", "—", ":", "missing", "not available"}
    | {"#div/0!", "#null!", "#num!", "#ref!", "#value!", "#name?"}
)
#: The same marks as most files spell them, to be found without a look at each cell.
_USUAL_MARKS = ("NaN", *{spelling for mark in MISSING for spelling in (mark, mark.upper())})
#: Eurostat adds a flag to its mark: ": c" is confidential, ":z" not applicable.
_FLAGGED = re.compile(r":\s?[a-z]{1,2}")
#: A number with flags behind it, as Eurostat and the OECD write "12.3 b" (break in the series).
_NUMBER_AND_FLAG = re.compile(r"(.*\d)\s+([bcdefinprsuz]{1,3})")
#: Labels of rows that hold the sums of the others, in languages of many tables.
_TOTAL = (
    r"^\s*(grand |sub-?|over)?(totals?|sum|all|overall|insgesamt|gesamt|(gesamt|end)?summe|"
    r"zusammen|ensemble|somme|totaux|total g[eé]n[eé]ral|totale|suma|totaal|totalt|i alt|yhteensä|"
    r"ogółem|razem|celkem|összesen|toplam|σύνολο|итого|всего|合計|総計|合计|总计|總計|합계) ?:?\s*$"
)
_LONGEST = 40
#: Numbers with a mark between their thousands, by the decimal mark; none begins with a zero.
_GROUPED = {
    decimal: re.compile(
        rf"[+-]?[1-9]\d{{0,2}}([{between}'’ \xa0\u202f])\d{{3}}(\1\d{{3}})*(\{decimal}\d+)?"
    )
    for decimal, between in (".,", ",.")
}
#: How many cells that count as numbers had each of the marks that are left out of them.
Marks = Counter[str]
_NAN = pa.Array.from_buffers(pa.float64(), 1, [None, pa.py_buffer(np.array([np.nan]))])[0]


def to_numbers(
    cells: Any,
    decimal: str = ".",
    na: Sequence[str] = (),
    *,
    typed: bool = False,
    left_out: Marks | None = None,
) -> tuple[Array, Mask]:
    """Convert cells to float64; NaN where missing or not a number, the latter also in the mask.

    ``na`` are marks of missing values besides those in ``MISSING``, text or numbers. Texts that are
    ``typed``, as in Parquet, are not numbers, whatever they look like. Flags behind numbers
    ("12.3 b"), percent signs, currency marks and marks between thousands are left out, and counted;
    so are parentheses, which mean a minus.

    Examples
    --------
    >>> values, wrong = to_numbers(["1.5", "NA", "abc", "$1,660", "12.5%"])
    >>> values.tolist(), wrong.tolist()
    ([1.5, nan, nan, 1660.0, 12.5], [False, False, True, False, False])
    """
    column = cells if hasattr(cells, "type") else text_array(cells)
    kind, wrong = column.type, np.zeros(len(column), dtype=bool)
    if pa.types.is_string(kind) and not typed:
        numbers = _plain_numbers(column, decimal, na)
        if numbers is None:
            values, wrong = _spelled_numbers(column, decimal, na, left_out)
        else:
            values = floats(numbers)
    elif pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        values = floats(pc.cast(column, pa.float64(), safe=False))
    else:
        values, wrong = np.full(len(column), np.nan), ~is_null(column)
    codes = [code for mark in na if (code := number_of(mark, decimal)) is not None]
    if codes:
        values[np.isin(values, codes)] = np.nan
    return values, wrong


def _plain_numbers(column: Any, decimal: str, na: Sequence[str]) -> Any:
    """Texts that Arrow understands, some of them marks of missing values; None for any others."""
    if decimal != ".":
        if pc.any(pc.match_substring(column, ".")).as_py():
            return None
        column = pc.replace_substring(column, decimal, ".")
    for marks in ((), (*_USUAL_MARKS, *na)):
        if marks:
            missing = pc.is_in(column, value_set=text_array(marks))
            column = pc.if_else(missing, pa.nulls(len(column), pa.string()), column)
        try:
            values = pc.cast(column, pa.float64())
        except pa.ArrowInvalid:
            continue
        if not pc.any(pc.is_nan(values)).as_py():  # Arrow reads "nan(x)", too
            return values
    return None


def _spelled_numbers(
    column: Any, decimal: str, na: Sequence[str], left_out: Marks | None
) -> tuple[Array, Mask]:
    """The numbers of texts, each spelling read once, and which texts are wrong."""
    encoded = column.dictionary_encode()
    texts = [*encoded.dictionary.to_pylist(), None]
    places = np.frombuffer(encoded.indices.buffers()[1], np.int32)[: len(column)].copy()
    places[is_null(column)] = len(texts) - 1
    counts = np.bincount(places, minlength=len(texts)).tolist()
    values, wrong = np.full(len(texts), np.nan), np.zeros(len(texts), dtype=bool)
    missing = {mark.strip().lower() for mark in na}
    for i, text in enumerate(texts):
        if is_missing(text, missing):
            continue
        number, marks = number_of(text, decimal), list[str]()
        if number is None and any(map(str.isdigit, text)):
            text, marks = _undressed(text)
            if grouped := _GROUPED[decimal].fullmatch(text):
                marks.append(grouped[1])
                text = text.replace(grouped[1], "")
            number = number_of(text, decimal)
        wrong[i], values[i] = number is None, np.nan if number is None else number
        if left_out is not None and number is not None:
            left_out.update(dict.fromkeys(marks, counts[i]))
    return values[places], wrong[places]


def _undressed(cell: str) -> tuple[str, list[str]]:
    """A number without blanks, and the marks around it: a flag, parentheses, percent or currency.

    Parentheses are how accountants write a minus; typesetters write U+2212.
    """
    cell, marks = cell.strip().replace("\u2212", "-"), []
    if flagged := _NUMBER_AND_FLAG.fullmatch(cell):
        cell = flagged[1]
        marks.append(flagged[2])
    if cell[:1] == "(" and cell[-1:] == ")":
        cell = f"-{cell[1:-1].strip()}"
        marks.append("()")
    minus = cell[0] if cell[:1] in ("+", "-") and _is_currency(cell[1:2]) else ""
    rest = cell[len(minus) :]
    if rest[-1:] == "%" or _is_currency(rest[-1:]):
        cell = f"{minus}{rest[:-1].rstrip()}"
        marks.append(rest[-1])
    elif _is_currency(rest[:1]):
        cell = f"{minus}{rest[1:].lstrip()}"
        marks.append(rest[0])
    return cell, marks


def _is_currency(mark: str) -> bool:
    return mark != "" and unicodedata.category(mark) == "Sc"


def bare(cell: str) -> str:
    """A number without what is left out of it."""
    return _undressed(cell)[0]


def is_grouped(text: str) -> bool:
    """Whether a text is a number with marks between its thousands, with either decimal mark."""
    return any(pattern.fullmatch(text) for pattern in _GROUPED.values())


def is_missing(cell: Any, na: set[str] | frozenset[str] = frozenset()) -> bool:
    """Whether a cell stands for no value; ``na`` holds more marks, in small letters."""
    if cell is None:
        return True
    if not isinstance(cell, str):
        return False
    text = cell.strip().lower()
    return text in MISSING or text in na or _FLAGGED.fullmatch(text) is not None


def labelled_totals(column: Any, rows: Sequence[int]) -> list[tuple[int, str]]:
    """The rows of a column of texts whose label says that they are totals, with the label."""
    labels = column.dictionary if pa.types.is_dictionary(column.type) else column
    if labels.type not in (pa.string(), pa.large_string()):
        return []
    matched = pc.match_substring_regex(labels, _TOTAL, ignore_case=True)
    matched = matched.take(column.indices) if labels is not column else matched
    places = pc.indices_nonzero(matched).to_pylist()
    return [(int(rows[i]), str(column[i].as_py()).strip()) for i in places]


def shown(cells: Any, i: int) -> str:
    """One cell as text for a message."""
    text = str(plain_cells(cells[i : i + 1])[0])
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


def is_number(text: str) -> bool:
    """Whether a text reads as a number with a decimal point."""
    return number_of(text, ".") is not None


def is_like_a_number(cell: str, decimal: str = ".") -> bool:
    """Whether a cell that is no number would be one with the other decimal mark."""
    other = "," if decimal == "." else "."
    return other in cell and number_of(bare(cell), other) is not None


def remedy(cell: str, decimal: str = ".") -> str:
    """What to do about a cell that should be a number and is not."""
    if is_like_a_number(cell, decimal):
        called, option = ("comma", "','") if decimal == "." else ("point", ".")
        return (
            f"If the {called} is a decimal {called}, say so "
            f"(--decimal {option}); otherwise correct the cell, or fit without the column."
        )
    return (
        f"If it marks a missing value, --na {shlex.quote(cell)} says so; otherwise correct the "
        "cell, clear it (the row is then not used), or fit without the column."
    )


def number_of(text: str, decimal: str) -> float | None:
    """A text as a float; None where it is no number in the ordinary spelling."""
    # A point would group thousands beside a decimal comma or be a decimal point: not guessed.
    if "_" in text or (decimal != "." and "." in text):
        return None
    try:
        return float(text.replace(decimal, "."))
    except ValueError:
        return None


def text_array(texts: Iterable[str | None]) -> Any:
    """Texts as an array; None where there is none."""
    builder = StringBuilder()
    try:
        builder.append_values(texts)
    except UnicodeEncodeError as error:
        raise InvalidTableError(
            f"the text {error.object[:30]!r} has half of a letter ({error.reason}), which no file "
            "can hold.\nCorrect the text, or leave the column out."
        ) from error
    return builder.finish()


def float_array(values: Array) -> Any:
    """Numbers as an array, null where there is none."""
    data, there = np.ascontiguousarray(values, dtype=np.float64), ~np.isnan(values)
    return pa.Array.from_buffers(pa.float64(), len(data), [_bits(there), pa.py_buffer(data)])


def selected(column: Any, chosen: Mask) -> Any:
    """Some cells of a column, an array of Arrow or NumPy."""
    if chosen.all():
        return column
    if isinstance(column, np.ndarray):
        return column[chosen]
    return column.filter(pa.Array.from_buffers(pa.bool_(), len(chosen), [None, _bits(chosen)]))


def _bits(mask: Mask) -> Any:
    return pa.py_buffer(np.packbits(mask, bitorder="little"))


def floats(column: Any) -> Array:
    """A copy of the numbers of a float64 array, NaN where there is none."""
    return np.array(np.from_dlpack(pc.fill_null(column, _NAN)), dtype=np.float64)


def is_null(column: Any) -> Mask:
    """Which cells hold nothing."""
    return np.from_dlpack(pc.cast(pc.is_null(column), pa.uint8())).astype(bool)


def plain_cells(column: Any) -> list[Any]:
    """The cells as Python objects."""
    try:
        return list(column.to_pylist())
    except OverflowError:  # dates that Python does not know: Arrow's words for them
        return list(column.cast("string").to_pylist())
    except UnicodeDecodeError as error:
        raise InvalidTableError(
            f"A text of the Parquet file is not UTF-8 ({error.reason}).\n"
            "It is damaged: write or copy it again."
        ) from error
