"""Correlation matrices as text, the way people copy them out of other programs."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from skcoral._arrays import Array
from skcoral.exceptions import InvalidCorrelationError
from skcoral.limits import current
from skcoral.tables.cells import to_numbers

_COMMA_NUMBER = re.compile(r"[+-]?\d*,\d+")


def parse_matrix(text: str) -> tuple[Array, tuple[str, ...]]:
    r"""Read a square matrix, with or without names in its first row and column.

    Cells stand between tabs, semicolons, commas or blanks, one row per line; decimal commas are
    understood between the others. Of a symmetric matrix the lower triangle with its diagonal will
    do. Values are not judged here.

    Parameters
    ----------
    text : str
        The matrix.

    Returns
    -------
    matrix : ndarray of shape (p, p)
    names : tuple of str
        ``x1``, ``x2``, … where the text has none.

    Raises
    ------
    InvalidCorrelationError
        The text is not a square of numbers; the message says which line is wrong.

    Examples
    --------
    >>> parse_matrix("a,b\n1,0.6\n0.6,1")
    (array([[1. , 0.6],
           [0.6, 1. ]]), ('a', 'b'))
    >>> parse_matrix("1\n0.5 1\n0.2 0.1 1")[0][0]
    array([1. , 0.5, 0.2])
    >>> parse_matrix("a.1 b.2\n1 0,6\n0,6 1")[0][0]
    array([1. , 0.6])
    """
    lines = [(i, line) for i, line in enumerate(text.splitlines(), start=1) if line.strip()]
    if not lines:
        raise InvalidCorrelationError("There is no matrix yet: paste one, a row per line.")
    separator, decimal = _dialect([line for _, line in lines])
    rows = [(i, _cells(line, separator)) for i, line in lines]
    names: tuple[str, ...] | None = None
    if not any(_is_number(cell, decimal) for cell in rows[0][1]):
        names = tuple(cell for cell in rows[0][1] if cell)
        rows = rows[1:]
    if rows and all(row and row[0] and not _is_number(row[0], decimal) for _, row in rows):
        found = tuple(row[0] for _, row in rows)
        if names is not None and names[-len(found) :] != found:
            raise InvalidCorrelationError(
                f"The names of rows and columns differ: {', '.join(found[:4])} … against "
                f"{', '.join(names[:4])} …. Give both in the same order."
            )
        names = found
        rows = [(i, row[1:]) for i, row in rows]
    p = len(rows)
    if names is not None and len(names) != p:
        raise InvalidCorrelationError(
            f"There are {len(names)} names and {p} rows of numbers; a square matrix has as many."
        )
    triangle = all(len(row) == k for k, (_, row) in enumerate(rows, start=1))
    first = next(
        ((line, row) for k, (line, row) in enumerate(rows, 1) if len(row) not in (p, k)), None
    )
    if first is not None:
        raise InvalidCorrelationError(
            f"Line {first[0]} has {len(first[1])} cells, and the matrix has {p} rows: {p} cells "
            "are wanted."
        )
    current().require("variables", p, "The matrix", f"{p:,} variables were given")
    matrix = np.zeros((p, p))
    for k, (line, row) in enumerate(rows):
        wanted = k + 1 if triangle else p
        if len(row) != wanted:
            raise InvalidCorrelationError(
                f"Line {line} has {len(row)} cells, and the matrix has {p} rows: "
                f"{wanted} cells are wanted."
            )
        values, wrong = to_numbers(row, decimal)
        if wrong.any() or np.isnan(values).any():
            bad = row[int(np.argmax(wrong | np.isnan(values)))]
            raise InvalidCorrelationError(f"Line {line}: {bad[:40]!r} is not a number.")
        matrix[k, :wanted] = values
    if triangle:
        matrix = np.tril(matrix) + np.tril(matrix, -1).T
    return matrix, names or tuple(f"x{j}" for j in range(1, p + 1))


def _dialect(lines: Sequence[str]) -> tuple[str | None, str]:
    """What stands between the cells (None: blanks), and the decimal mark."""
    text = "\n".join(lines)
    separator = next((mark for mark in ("\t", ";", ",") if mark in text), None)
    if separator == ",":
        # 1,0 0,6: commas inside the cells of lines that blanks divide
        cells = [cell for line in lines for cell in line.split()]
        commas = sum(_COMMA_NUMBER.fullmatch(cell) is not None for cell in cells)
        if commas and commas == sum("," in cell for cell in cells) and len(cells) > len(lines):
            return None, ","
        return ",", "."
    cells = [cell for line in lines for cell in _cells(line, separator)]
    comma = any(_COMMA_NUMBER.fullmatch(cell) for cell in cells)
    point = any(_is_number(cell, ".") and "." in cell for cell in cells)
    return separator, "," if comma and not point else "."


def _cells(line: str, separator: str | None) -> list[str]:
    if separator is None:
        return line.split()
    cells = [re.sub(r'^"(.*)"$', r"\1", cell.strip()) for cell in line.split(separator)]
    while cells and not cells[-1]:
        cells.pop()
    return cells


def _is_number(cell: str, decimal: str) -> bool:
    values, wrong = to_numbers([cell], decimal)
    return not (wrong.any() or np.isnan(values).any())
