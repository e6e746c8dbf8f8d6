"""Single cells: what is a number, what is missing, and what to say about the rest."""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skcoral._arrays import Array
from skcoral.exceptions import InvalidTableError

#: Cells that stand for "no value", whatever their case and the blanks around them: those of
#: spreadsheets and statistical programs, the World Bank (..), the OECD (.., …, n.a.), Eurostat (:).
MISSING = frozenset(
    {"", "na", "n/a", "n.a.", "n.a", "#n/a", "#na", "nan", "null", "(null)", "none", "?", "\\n"}
    | {".", "..", "...", "…", "-", "--", "–", "—", ":", "missing", "not available"}
    | {"#div/0!", "#null!", "#num!", "#ref!", "#value!", "#name?"}
)
#: Eurostat adds a flag to its mark: ": c" is confidential, ":z" not applicable.
_FLAGGED = re.compile(r":\s?[a-z]{1,2}")
#: A number with flags behind it, as Eurostat and the OECD write "12.3 b" (break in the series).
_NUMBER_AND_FLAG = re.compile(r"(.*\d)\s+[bcdefinprsuz]{1,3}")
_LONGEST = 40
_SIGNS = "$€£¥%"
_GROUPED = {
    ".": re.compile(r"[+-]?(\d{1,3}([,'’\xa0\u202f]\d{3})+(\.\d+)?|\d*,\d+)"),
    ",": re.compile(r"[+-]?(\d{1,3}([.'’\xa0\u202f]\d{3})+(,\d+)?|\d*\.\d+)"),
}


def to_numbers(
    cells: Any, decimal: str = ".", na: Sequence[str] = (), thousands: str = ""
) -> tuple[Array, NDArray[np.bool_]]:
    """Convert cells to float64; NaN where missing or not a number, the latter also in the mask.

    ``na`` holds more marks for missing values, text or numbers, besides those in ``MISSING``, and
    ``thousands`` the mark between groups of three digits, if there is one.

    Examples
    --------
    >>> values, wrong = to_numbers(["1.5", "NA", "abc"])
    >>> values, wrong
    (array([1.5, nan, nan]), array([False, False, True]))
    """
    marks = {mark.strip().lower() for mark in na}
    values, wrong = _numbers(cells, decimal, marks, thousands)
    codes = [float(mark.replace(decimal, ".")) for mark in na if is_number(mark)]
    if codes:
        values[np.isin(values, codes)] = np.nan
    return values, wrong


def _numbers(
    cells: Any, decimal: str, na: set[str], thousands: str
) -> tuple[Array, NDArray[np.bool_]]:
    if hasattr(cells, "type"):
        from skcoral.tables import typed

        values, wrong = typed.arrow_numbers(cells)
        return values.copy(), wrong
    if decimal == ".":
        try:
            values = np.fromiter(map(float, cells), dtype=np.float64, count=len(cells))
        except (TypeError, ValueError, OverflowError):
            pass
        else:
            if not _odd_spellings(cells):
                return values, np.zeros(len(cells), dtype=bool)
    values = np.full(len(cells), np.nan)
    wrong = np.zeros(len(cells), dtype=bool)
    grouped = grouped_number(decimal, thousands) if thousands else None
    for i, cell in enumerate(cells):
        if is_missing(cell, na):
            continue
        if isinstance(cell, str):
            cell = unflagged(cell.strip())
        if grouped is not None and isinstance(cell, str) and grouped.fullmatch(cell):
            cell = cell.replace(thousands, "")
        number = _one_number(cell, decimal)
        if number is None:
            wrong[i] = True
        else:
            values[i] = number
    return values, wrong


def unflagged(cell: str) -> str:
    """A number without the flag behind it; any other cell as it is.

    Examples
    --------
    >>> unflagged("12.3 b"), unflagged("flat b"), unflagged("5 km")
    ('12.3', 'flat b', '5 km')
    """
    found = _NUMBER_AND_FLAG.fullmatch(cell)
    return cell if found is None else found[1]


def flags_of(cells: Any) -> Counter[str]:
    """The flags behind numbers, and how often each occurs.

    Examples
    --------
    >>> flags_of(["12.3 b", "11.8", "11.9 e", "12.0 b", "flat b"])
    Counter({'b': 2, 'e': 1})
    """
    if hasattr(cells, "type"):
        return Counter()
    text = "\n".join(cell for cell in cells if isinstance(cell, str))
    return Counter(re.findall(r"\d[^\S\n]+([bcdefinprsuz]{1,3})[^\S\n]*$", text, re.MULTILINE))


def grouped_number(decimal: str, thousands: str) -> re.Pattern[str]:
    """Numbers with a mark between their thousands."""
    mark, point = re.escape(thousands), re.escape(decimal)
    return re.compile(rf"[+-]?\d{{1,3}}({mark}\d{{3}})+(?P<decimals>{point}\d+)?")


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


def shown(cells: Any, i: int) -> str:
    """One cell as text for a message."""
    text = str(plain_cells(cells[i : i + 1])[0])
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


def is_number(text: str) -> bool:
    """Whether a text reads as a number with a decimal point."""
    try:
        float(text)
    except ValueError:
        return False
    return True


def is_dressed_number(cell: str, decimal: str = ".") -> bool:
    """Whether a cell is a number for people only: grouped, with a sign, or the other decimal mark.

    Examples
    --------
    >>> [is_dressed_number(cell) for cell in ["1,234.5", "$3", "12 %", "1,5", "2020-01-01", "A7"]]
    [True, True, True, True, False, False]
    """
    bare = cell.strip().strip(_SIGNS).strip()
    if _GROUPED[decimal].fullmatch(bare):
        return True
    return any(sign in cell for sign in _SIGNS) and _one_number(bare, decimal) is not None


def remedy(cell: str, decimal: str = ".") -> str:
    """What to do about a cell that should be a number and is not."""
    if any(sign in cell for sign in _SIGNS) and is_dressed_number(cell, decimal):
        return "Write the numbers without currency or percent signs, or exclude the column."
    if decimal == "," and "." in cell and is_dressed_number(cell, decimal):
        return (
            "If the point is a decimal point, say so: decimal '.' (--decimal .); "
            "if it groups thousands, remove it."
        )
    if "," in cell and "." in cell and is_dressed_number(cell, decimal):
        return "Write the numbers without marks between the thousands, or exclude the column."
    if "," in cell and cell.replace(",", "").replace(".", "").lstrip("+-").isdigit():
        return (
            "If the comma is a decimal comma, say so: decimal ',' (--decimal ','); "
            "if it groups thousands, remove it."
        )
    return (
        f"If it marks a missing value, --na {shlex.quote(cell)} says so; otherwise correct the "
        "cell, clear it (the row is then left out), or exclude the column."
    )


def _one_number(cell: Any, decimal: str) -> float | None:
    """One cell as a float; None where it is not a number in the ordinary spelling."""
    if isinstance(cell, bool):
        return None
    if isinstance(cell, str):
        if "_" in cell:
            return None
        if decimal != ".":
            # A point would group thousands here or be a decimal point: better ask than guess.
            if "." in cell:
                return None
            cell = cell.replace(decimal, ".")
    try:
        return float(cell)
    except OverflowError:
        return float("inf")
    except (TypeError, ValueError):
        return None


def _odd_spellings(cells: Sequence[Any]) -> bool:
    """Whether float() took what no table means as a number: True, or 1_000."""
    kinds = set(map(type, cells))
    if kinds == {str}:
        return "_" in "".join(cells)
    return bool in kinds or any(isinstance(cell, str) and "_" in cell for cell in cells)
