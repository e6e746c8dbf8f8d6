"""Single cells: what is a number, what is missing, and what to say about the rest."""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skcoral.core.arrays import Array
from skcoral.exceptions import InvalidTableError
from skcoral.tables.arrow_arrays import floats, is_null, plain_cells, text_array

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
#: What stands between thousands where the decimal mark is a point or a comma.
_BETWEEN_THOUSANDS = {".": ",'’ \xa0\u202f", ",": ".'’ \xa0\u202f"}


@dataclass
class LeftOut:
    """What was left out of the cells of a column that count as numbers: how often each."""

    flags: Counter[str] = field(default_factory=Counter)  # letters behind numbers ("12.3 b")
    signs: Counter[str] = field(default_factory=Counter)  # percent signs and currency marks
    thousands: Counter[str] = field(default_factory=Counter)  # marks between three digits


def to_numbers(
    cells: Any,
    decimal: str = ".",
    na: Sequence[str] = (),
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
    import pyarrow as pa
    import pyarrow.compute as pc

    column = cells if hasattr(cells, "type") else text_array(cells)
    spelling = _spelling(decimal, tuple(na))
    kind, wrong = column.type, np.zeros(len(column), dtype=bool)
    if pa.types.is_string(kind) and not typed:
        numbers = _plain_numbers(column, decimal, na)
        if numbers is None:
            values, wrong = spelling.numbers(column, left_out)
        else:
            values = floats(numbers)
    elif pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        values = floats(pc.cast(column, pa.float64(), safe=False))
    else:
        values, wrong = np.full(len(column), np.nan), ~is_null(column)
    if spelling.codes:
        values[np.isin(values, spelling.codes)] = np.nan
    return values, wrong


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
        if not pc.any(pc.is_nan(values)).as_py():  # Arrow reads "nan(x)", too
            return values
    return None


class _Spelling:
    """How numbers are written; each spelling of a column is read once."""

    def __init__(self, decimal: str, na: Sequence[str]) -> None:
        self.decimal = decimal
        self.codes = [code for mark in na if (code := number_of(mark, decimal)) is not None]
        self._marks = {mark.strip().lower() for mark in na}
        # None of the numbers with marks between their thousands begins with a zero.
        grouped = rf"[+-]?[1-9]\d{{{{0,2}}}}({{0}}\d{{{{3}}}})+({re.escape(decimal)}\d+)?"
        self._grouped = {
            mark: re.compile(grouped.format(re.escape(mark)))
            for mark in _BETWEEN_THOUSANDS[decimal]
        }

    def numbers(self, column: Any, left_out: LeftOut | None) -> tuple[Array, NDArray[np.bool_]]:
        """The numbers of texts, NaN where there is none, and which texts are wrong."""
        encoded = column.dictionary_encode()
        texts = [*encoded.dictionary.to_pylist(), None]
        places = np.frombuffer(encoded.indices.buffers()[1], np.int32)[: len(column)].copy()
        places[is_null(column)] = len(texts) - 1
        counts = np.bincount(places, minlength=len(texts)).tolist()
        values, wrong = np.full(len(texts), np.nan), np.zeros(len(texts), dtype=bool)
        for i, text in enumerate(texts):
            if is_missing(text, self._marks):
                continue
            left = dict.fromkeys(("flags", "signs", "thousands"), "")
            number = number_of(text, self.decimal)
            if number is None and any(map(str.isdigit, text)):
                text = text.strip()
                flagged = _NUMBER_AND_FLAG.fullmatch(text)
                text, left["flags"] = (text, "") if flagged is None else (flagged[1], flagged[2])
                text, left["signs"] = _without_sign(text)
                text, left["thousands"] = self._without_groups(text)
                number = number_of(text, self.decimal)
            wrong[i], values[i] = number is None, np.nan if number is None else number
            if left_out is not None and number is not None:
                for what, mark in left.items():
                    getattr(left_out, what).update({mark: counts[i]} if mark else {})
        return values[places], wrong[places]

    def _without_groups(self, text: str) -> tuple[str, str]:
        """A number without the marks between its thousands, and the mark; other texts as is."""
        for mark, pattern in self._grouped.items():
            if mark in text and pattern.fullmatch(text):
                return text.replace(mark, ""), mark
        return text, ""


_spelling = lru_cache(maxsize=16)(_Spelling)  # tables of many columns ask for it once each


def _without_sign(cell: str) -> tuple[str, str]:
    """A cell without a percent sign or a currency mark at one of its ends, and what that was."""
    minus = cell[0] if cell[:1] in ("+", "-") and cell[1:2] in _CURRENCIES else ""
    bare = cell[len(minus) :]
    if bare[-1:] and bare[-1] in _SIGNS:
        return f"{minus}{bare[:-1].rstrip()}", bare[-1]
    if bare[:1] and bare[0] in _CURRENCIES:
        return f"{minus}{bare[1:].lstrip()}", bare[0]
    return cell, ""


def bare(cell: str) -> str:
    """A number without blanks, the flag behind it and its percent sign or currency mark."""
    cell = cell.strip()
    found = _NUMBER_AND_FLAG.fullmatch(cell)
    return _without_sign(cell if found is None else found[1])[0]


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
    import pyarrow as pa
    import pyarrow.compute as pc

    labels = column.dictionary if pa.types.is_dictionary(column.type) else column
    if labels.type not in (pa.string(), pa.large_string()):
        return []
    matched = pc.match_substring_regex(labels, _TOTAL, ignore_case=True)
    matched = matched.take(column.indices) if labels is not column else matched
    places = pc.indices_nonzero(pc.fill_null(matched, False)).to_pylist()
    return [(int(rows[i]), str(column[i].as_py()).strip()) for i in places]


def starts_with_zero(column: Any) -> bool:
    """Whether a text begins with a zero before another digit, as codes do."""
    import pyarrow.compute as pc

    return bool(pc.any(pc.match_substring_regex(column, r"^\s*0\d")).as_py())


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
