"""Correlation and covariance matrices: in tables, and as people paste them."""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from skcoral.core.arrays import Array
from skcoral.core.limits import current
from skcoral.core.linalg import correlation_of_covariance
from skcoral.exceptions import InvalidCorrelationError, InvalidTableError
from skcoral.tables.cells import is_missing, number_of
from skcoral.tables.columns import TableProfile, profile
from skcoral.tables.dialect import recognise_encoding
from skcoral.tables.reading import open_table
from skcoral.tables.sources import find_source, unpacked
from skcoral.tables.table import Table, empty_table

_COMMA_NUMBER = re.compile(r"[+-]?\d*,\d+")
#: Rounding of matrices that were written with a few digits.
_ROUNDING = 1e-6


@dataclass(frozen=True)
class NamedMatrix:
    """A correlation matrix with names."""

    R: Array
    names: tuple[str, ...]
    scale: Array | None = None  # standard deviations, where a covariance matrix was given

    @property
    def sentence(self) -> str:
        """What was recognised, in words."""
        kind = "correlation" if self.scale is None else "covariance"
        return f"The file holds a {kind} matrix of {len(self.names)} variables, not rows of data."

    def part(self, names: tuple[str, ...]) -> NamedMatrix:
        """The matrix of some of the variables."""
        places = [self.names.index(name) for name in names]
        scale = None if self.scale is None else self.scale[places]
        return NamedMatrix(self.R[np.ix_(places, places)], names, scale)


def read_matrix(
    source: str | Path | bytes | BinaryIO, *, name: str | None = None, **reading: Any
) -> tuple[Table, TableProfile, NamedMatrix]:
    """Read a file that is said to hold a matrix, with or without names, or one triangle of it.

    The arguments are those of :func:`skcoral.tables.open_table`.
    """
    most = current().record_bytes
    found = find_source(source, name)
    with found.open() as stream:
        start = stream.read(most + 1)
    is_pasted = len(start) <= most and start[:2] != b"PK" and start[:4] != b"PAR1"
    if is_pasted:  # and not read again
        found = replace(found, open=lambda: io.BytesIO(start))
    try:
        table = open_table(found, **reading)
        content = profile(table)
        matrix = matrix_in(table, content, asked=True)
    except (InvalidTableError, InvalidCorrelationError) as first:
        if not is_pasted:
            raise
        try:
            numbers, names = parse_matrix(_text(start, found.label, reading.get("encoding")))
            matrix = named_matrix(numbers, names, found.label, has_labels=True, asked=True)
        except InvalidCorrelationError:
            if isinstance(first, InvalidCorrelationError):
                raise first from None
            raise
        table = empty_table(found.label, names)
        content = TableProfile(len(names), ())
    assert matrix is not None
    return table, content, matrix


def _text(data: bytes, label: str, encoding: str | None) -> str:
    """The text of a small file, in its encoding."""
    limits = current()
    with io.BytesIO(data) as packed, unpacked(packed, label, limits) as stream:
        text = stream.read(limits.record_bytes + 1)
    limits.require("record_bytes", len(text), label)
    encoding = encoding or recognise_encoding(text)
    return text.decode("utf-8-sig" if encoding == "utf-8" else encoding, errors="replace")


def matrix_in(table: Table, content: TableProfile, *, asked: bool = False) -> NamedMatrix | None:
    """The matrix that a table holds, if it holds one.

    A table is taken for a correlation matrix where it is square and symmetric with ones on the
    diagonal, and for a covariance matrix where it is square, symmetric and positive semidefinite
    with a positive diagonal. One column of text may repeat the names; one triangle may be empty.

    ``asked`` tells that the file is said to hold one: what is wrong is then an error.
    """
    numeric = [c.name for c in content.columns if c.kind in ("number", "empty")]
    labels = [c.name for c in content.columns if c.kind in ("text", "mixed")]
    p = len(numeric)
    if content.n_rows != p or p < 2 or len(labels) > 1:
        if asked:
            raise InvalidCorrelationError(
                f"{table.label}: a matrix is square, and this table has {content.n_rows} rows and "
                f"{p} columns of numbers.\nLeave out --matrix for rows of data."
            )
        return None
    current().require("columns", p, table.label)
    matrix = table.to_numpy(numeric)
    names = tuple(numeric)
    if labels:
        rows = [str(cell).strip() for cell in table.cells(labels[0])]
        if sorted(rows) != sorted(names):
            if asked:
                raise InvalidCorrelationError(
                    f"{table.label}: the rows are named {', '.join(rows[:4])} … and the columns "
                    f"{', '.join(names[:4])} ….\nA matrix has the same names on both sides."
                )
            return None
        matrix = matrix[[rows.index(name) for name in names]]
    return named_matrix(matrix, names, table.label, has_labels=bool(labels), asked=asked)


def named_matrix(
    matrix: Array, names: tuple[str, ...], label: str, *, has_labels: bool, asked: bool
) -> NamedMatrix | None:
    """A square of numbers as a correlation matrix; None, or an error if asked, where it is not."""
    filled = np.where(np.isnan(matrix), matrix.T, matrix)
    problem = _problem(filled, names)
    if not problem:
        variances = np.diag(filled)
        if np.abs(variances - 1.0).max() <= _ROUNDING:
            R = 0.5 * (filled + filled.T)
            np.fill_diagonal(R, 1.0)
            if np.abs(R).max() <= 1.0 + _ROUNDING:
                return NamedMatrix(np.clip(R, -1.0, 1.0), names)
            problem = "an entry lies outside [-1, 1]"
        elif asked or has_labels or len(names) > 2:
            R = correlation_of_covariance(filled)
            least = float(np.linalg.eigvalsh(R)[0])
            if least >= -_ROUNDING * len(R):
                return NamedMatrix(np.clip(R, -1.0, 1.0), names, np.sqrt(variances))
            problem = f"it is not positive semidefinite (smallest eigenvalue {least:.2g})"
    if asked:
        raise InvalidCorrelationError(
            f"{label}: this is not a correlation or covariance matrix: {problem}.\n"
            "Give a square, symmetric matrix, or leave out --matrix for rows of data."
        )
    return None


def _problem(matrix: Array, names: tuple[str, ...]) -> str:
    if np.isnan(matrix).any():
        i, j = np.argwhere(np.isnan(matrix))[0]
        return f"the entry of {names[i]} and {names[j]} is missing"
    if not np.isfinite(matrix).all():
        return "an entry is infinite"
    if (np.diag(matrix) <= 0).any():
        return f"the diagonal entry of {names[int(np.argmin(np.diag(matrix)))]} is not positive"
    size = np.sqrt(np.outer(np.diag(matrix), np.diag(matrix)))
    gaps = np.abs(matrix - matrix.T) / size
    if gaps.max() > 10 * _ROUNDING:
        i, j = np.unravel_index(int(np.argmax(gaps)), gaps.shape)
        return (
            f"it is not symmetric ({names[i]} and {names[j]}: {matrix[i, j]:g} and "
            f"{matrix[j, i]:g})"
        )
    return ""


def parse_matrix(text: str) -> tuple[Array, tuple[str, ...]]:
    r"""Read a square matrix, with or without names in its first row and column.

    Cells stand between tabs, semicolons, commas or blanks, one row per line; decimal commas are
    understood between the others. Of a symmetric matrix the lower triangle with its diagonal will
    do. Values are not judged here.
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
    triangle = p > 0 and len(rows[0][1]) == 1
    for k, (line, row) in enumerate(rows, start=1):
        wanted = k if triangle else p
        if len(row) != wanted:
            raise InvalidCorrelationError(
                f"Line {line} has {len(row)} cells, and the matrix has {p} rows: {wanted} cells "
                "are wanted."
            )
    current().require("variables", p, "The matrix")
    matrix = np.zeros((p, p))
    for k, (line, row) in enumerate(rows):
        bad = next((cell for cell in row if not _is_number(cell, decimal)), None)
        if bad is not None:
            raise InvalidCorrelationError(f"Line {line}: {bad[:40]!r} is not a number.")
        matrix[k, : len(row)] = [number_of(cell, decimal) for cell in row]
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
    return not is_missing(cell) and number_of(cell, decimal) is not None
