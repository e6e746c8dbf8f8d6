"""Single cells: what is a number, what is missing, and what to say about the rest."""

from __future__ import annotations

import itertools
import re
import shlex
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from types import NoneType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skcoral.core.arrays import Array
from skcoral.exceptions import InvalidTableError
from skcoral.tables.arrow_arrays import text_array

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
    r"^\s*(grand |sub-?|over)?(total|sum|all|totals|overall|insgesamt|gesamt|summe|zusammen|"
    r"ensemble|totale|totaal|totalt|ogółem|итого|всего|合計|总计|總計) ?:?\s*$"
)
_LONGEST = 40
_CURRENCIES = "$€£¥"
_SIGNS = f"{_CURRENCIES}%"
#: What stands between thousands where the decimal mark is a point or a comma; blanks only where the
#: dialect says so.
_BETWEEN_THOUSANDS = {".": ",'’\xa0\u202f", ",": ".'’\xa0\u202f"}


@dataclass
class LeftOut:
    """What was left out of the cells of a column that count as numbers: how often each.

    Attributes
    ----------
    flags : Counter of str
        Letters behind numbers ("12.3 b").
    signs : Counter of str
        Percent signs and currency marks.
    thousands : Counter of str
        Marks between groups of three digits.
    """

    flags: Counter[str] = field(default_factory=Counter)
    signs: Counter[str] = field(default_factory=Counter)
    thousands: Counter[str] = field(default_factory=Counter)


def to_numbers(
    cells: Any,
    decimal: str = ".",
    na: Sequence[str] = (),
    thousands: str = "",
    *,
    typed: bool = False,
    left_out: LeftOut | None = None,
) -> tuple[Array, NDArray[np.bool_]]:
    """Convert cells to float64; NaN where missing or not a number, the latter also in the mask.

    ``na`` are marks of missing values besides those in ``MISSING``, text or numbers. Texts that are
    ``typed``, as in Parquet, are not numbers, whatever they look like. Flags behind numbers
    ("12.3 b"), percent signs, currency marks and marks between thousands are left out, and counted.

    Examples
    --------
    >>> values, wrong = to_numbers(["1.5", "NA", "abc", "$1,660", "12.5%"])
    >>> values.tolist(), wrong.tolist()
    ([1.5, nan, nan, 1660.0, 12.5], [False, False, True, False, False])
    """
    spelling = _spelling(decimal, thousands, tuple(na))
    values, wrong = _numbers(cells, spelling, typed, left_out)
    if spelling.codes:
        values[np.isin(values, spelling.codes)] = np.nan
    return values, wrong


def _numbers(
    cells: Any, spelling: _Spelling, typed: bool, left_out: LeftOut | None
) -> tuple[Array, NDArray[np.bool_]]:
    import pyarrow as pa
    import pyarrow.compute as pc

    column = cells
    if not hasattr(cells, "type"):
        if not all(isinstance(cell, str | NoneType) for cell in cells):
            return spelling.numbers(cells, None, left_out)
        column = text_array(cells)
    kind, n = column.type, len(column)
    if pa.types.is_string(kind) and not typed:
        values = None
        if not spelling.thousands:
            values = _plain_numbers(column, spelling.decimal, spelling.na)
        if values is None:  # each spelling once
            found = column.dictionary_encode()
            places = np.frombuffer(found.indices.buffers()[1], np.int32)[:n].copy()
            places[_is_null(column)] = len(found.dictionary)
            texts = [*plain_cells(found.dictionary), None]
            counts = np.bincount(places, minlength=len(texts)).tolist()
            numbers, wrong = spelling.numbers(texts, counts, left_out)
            return numbers[places], wrong[places]
    elif pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        values = pc.cast(column, pa.float64(), safe=False)
    else:
        return np.full(n, np.nan), ~_is_null(column)
    found = _copied(values)
    if values.null_count:
        found[_is_null(values)] = np.nan
    return found, np.zeros(n, dtype=bool)


def _copied(values: Any) -> Array:
    """Floats of an Arrow array; as to_numpy, which would import pandas."""
    numbers = np.frombuffer(values.buffers()[1], np.float64)
    return numbers[values.offset : values.offset + len(values)].copy()


def _is_null(column: Any) -> NDArray[np.bool_]:
    import pyarrow as pa
    import pyarrow.compute as pc

    return np.from_dlpack(pc.cast(pc.is_null(column), pa.uint8())).astype(bool)


def _plain_numbers(column: Any, decimal: str, na: Sequence[str]) -> Any:
    """Texts that Arrow understands, some of them marks of missing values; None for any others."""
    import pyarrow as pa
    import pyarrow.compute as pc

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
        n_nan = np.count_nonzero(np.isnan(_copied(values)))
        # Arrow reads "nan(x)", too; what stands under a null is not told
        if not n_nan or not pc.any(pc.is_nan(values)).as_py():
            return values
    return None


class _Spelling:
    """How numbers are written; cells are read one by one."""

    def __init__(self, decimal: str, thousands: str, na: Sequence[str]) -> None:
        self.decimal, self.thousands, self.na = decimal, thousands, na
        self.codes = [code for mark in na if (code := number_of(mark, decimal)) is not None]
        self._marks = {mark.strip().lower() for mark in na}
        marks = dict.fromkeys([*thousands, *_BETWEEN_THOUSANDS[decimal]])
        self._grouped = [(mark, grouped_number(decimal, mark)) for mark in marks]

    def numbers(
        self, cells: Sequence[Any], counts: Sequence[int] | None, left_out: LeftOut | None
    ) -> tuple[Array, NDArray[np.bool_]]:
        """The numbers of some cells; ``counts`` tells how often each occurs."""
        values, wrong = np.full(len(cells), np.nan), np.zeros(len(cells), dtype=bool)
        for i, cell in enumerate(cells):
            if is_missing(cell, self._marks):
                continue
            flag = sign = mark = ""
            number = number_of(cell, self.decimal)
            if number is None and isinstance(cell, str) and any(map(str.isdigit, cell)):
                cell = cell.strip()
                flagged = _NUMBER_AND_FLAG.fullmatch(cell)
                cell, flag = (cell, "") if flagged is None else (flagged[1], flagged[2])
                cell, sign = _without_sign(cell)
                cell, mark = self._without_groups(cell)
                number = number_of(cell, self.decimal)
            if number is None:
                wrong[i] = True
                continue
            values[i] = number
            if left_out is not None and (flag or sign or mark):
                n = 1 if counts is None else counts[i]
                left_out.flags.update({flag: n} if flag else {})
                left_out.signs.update({sign: n} if sign else {})
                left_out.thousands.update({mark: n} if mark else {})
        return values, wrong

    def _without_groups(self, cell: str) -> tuple[str, str]:
        """A number without the marks between its thousands, and the mark; other cells as is."""
        for mark, pattern in self._grouped:
            if mark in cell and pattern.fullmatch(cell):
                return cell.replace(mark, ""), mark
        return cell, ""


_spelling = lru_cache(maxsize=16)(_Spelling)  # tables of many columns ask for it once each


def _without_sign(cell: str) -> tuple[str, str]:
    """A cell without a percent sign or a currency mark at one of its ends, and what that was.

    Examples
    --------
    >>> _without_sign("12.5 %"), _without_sign("-$7"), _without_sign("€ -7"), _without_sign("7")
    (('12.5', '%'), ('-7', '$'), ('-7', '€'), ('7', ''))
    """
    minus = cell[0] if cell[:1] in ("+", "-") and cell[1:2] in _CURRENCIES else ""
    bare = cell[len(minus) :]
    if bare[-1:] and bare[-1] in _SIGNS:
        return f"{minus}{bare[:-1].rstrip()}", bare[-1]
    if bare[:1] and bare[0] in _CURRENCIES:
        return f"{minus}{bare[1:].lstrip()}", bare[0]
    return cell, ""


def bare(cell: str) -> str:
    """A number without blanks, the flag behind it and its percent sign or currency mark.

    Examples
    --------
    >>> bare("12.3 b"), bare("flat b"), bare("5 km"), bare("€ 1.234,50")
    ('12.3', 'flat b', '5 km', '1.234,50')
    """
    cell = cell.strip()
    found = _NUMBER_AND_FLAG.fullmatch(cell)
    return _without_sign(cell if found is None else found[1])[0]


def grouped_number(decimal: str, thousands: str) -> re.Pattern[str]:
    """Numbers with a mark between their thousands; none of them begins with a zero."""
    mark, point = re.escape(thousands), re.escape(decimal)
    return re.compile(rf"[+-]?[1-9]\d{{0,2}}({mark}\d{{3}})+(?P<decimals>{point}\d+)?")


def is_missing(cell: Any, na: set[str] | frozenset[str] = frozenset()) -> bool:
    """Whether a cell stands for no value; ``na`` holds more marks, in small letters.

    Examples
    --------
    >>> [is_missing(cell) for cell in ["..", "n.a.", ": c", None, "0", "x"]]
    [True, True, True, True, False, False]
    """
    if cell is None:
        return True
    if not isinstance(cell, str):
        return False
    text = cell.strip().lower()
    return text in MISSING or text in na or _FLAGGED.fullmatch(text) is not None


def plain_cells(cells: Any) -> list[Any]:
    """The cells as a list of Python objects."""
    if not hasattr(cells, "to_pylist"):
        return list(cells)
    try:
        return cells.to_pylist()
    except OverflowError:  # dates that Python does not know: Arrow's words for them
        return cells.cast("string").to_pylist()
    except UnicodeDecodeError as error:
        raise InvalidTableError(
            f"A text of the Parquet file is not UTF-8 ({error.reason}).\n"
            "It is damaged: write or copy it again."
        ) from error


def filtered(cells: Any, kept: NDArray[np.bool_]) -> Any:
    """Some cells of a column."""
    if kept.all():
        return cells
    if hasattr(cells, "filter"):
        import pyarrow as pa

        places = np.flatnonzero(kept).astype(np.int64)
        buffers = [None, pa.py_buffer(places)]
        return cells.take(pa.Array.from_buffers(pa.int64(), len(places), buffers))
    return list(itertools.compress(cells, kept))


def labelled_totals(cells: Any, rows: Sequence[int]) -> list[tuple[int, str]]:
    """The rows of a column of texts whose label says that they are totals, with the label.

    Examples
    --------
    >>> labelled_totals(["Oslo", "Grand total:", "totality"], [2, 3, 4])
    [(3, 'Grand total:')]
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    column = cells
    if not hasattr(cells, "type"):
        column = text_array([cell if isinstance(cell, str) else None for cell in cells])
    labels = column.dictionary if pa.types.is_dictionary(column.type) else column
    if labels.type not in (pa.string(), pa.large_string()):
        return []
    matched = pc.match_substring_regex(labels, _TOTAL, ignore_case=True)
    matched = matched.take(column.indices) if labels is not column else matched
    places = pc.indices_nonzero(pc.fill_null(matched, False)).to_pylist()
    return [(rows[i], str(column[i].as_py()).strip()) for i in places]


def shown(cells: Any, i: int) -> str:
    """One cell as text for a message."""
    text = str(plain_cells(cells[i : i + 1])[0])
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


def is_number(text: str) -> bool:
    """Whether a text reads as a number with a decimal point."""
    return number_of(text, ".") is not None


def is_like_a_number(cell: str, decimal: str = ".") -> bool:
    """Whether a cell that is no number would be one with the other decimal mark.

    Examples
    --------
    >>> [is_like_a_number(cell) for cell in ["1,5", "0,123", "1,5 %", "2020-01-01", "A7"]]
    [True, True, True, False, False]
    """
    other = "," if decimal == "." else "."
    return other in cell and number_of(bare(cell), other) is not None


def remedy(cell: str, decimal: str = ".") -> str:
    """What to do about a cell that should be a number and is not."""
    if is_like_a_number(cell, decimal):
        called, option = ("comma", "','") if decimal == "." else ("point", ".")
        return (
            f"If the {called} is a decimal {called}, say so "
            f"(--decimal {option}); otherwise correct the cell or exclude the column."
        )
    return (
        f"If it marks a missing value, --na {shlex.quote(cell)} says so; otherwise correct the "
        "cell, clear it (the row is then not used), or exclude the column."
    )


def number_of(cell: Any, decimal: str) -> float | None:
    """One cell as a float; None where it is not a number in the ordinary spelling."""
    if isinstance(cell, bool):
        return None
    if isinstance(cell, str):
        if "_" in cell:
            return None
        if decimal != ".":
            # A point would group thousands here or be a decimal point: that is not guessed.
            if "." in cell:
                return None
            cell = cell.replace(decimal, ".")
    try:
        return float(cell)
    except OverflowError:
        return float("inf")
    except (TypeError, ValueError):
        return None


def check_names(label: str, names: Sequence[str], where: str) -> None:
    """Refuse two columns with the same name, or with none."""
    seen: dict[str, int] = {}
    for place, name in enumerate(names, start=1):
        if name in seen:
            what = f"the name {name!r}" if name else "no name"
            raise InvalidTableError(
                f"{label}: {where}: columns {seen[name]} and {place} both have {what}.\n"
                "Give every column a name of its own."
            )
        seen[name] = place
