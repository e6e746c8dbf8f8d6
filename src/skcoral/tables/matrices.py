"""Correlation and covariance matrices in tables."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from skcoral.core.arrays import Array
from skcoral.core.limits import current
from skcoral.core.linalg import correlation_of_covariance
from skcoral.exceptions import InvalidCorrelationError, InvalidTableError
from skcoral.tables.columns import TableProfile
from skcoral.tables.table import Table

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
        return f"The file holds a {kind} matrix, not rows of data."

    def part(self, names: tuple[str, ...]) -> NamedMatrix:
        """The matrix of some of the variables."""
        places = [self.names.index(name) for name in names]
        scale = None if self.scale is None else self.scale[places]
        return NamedMatrix(self.R[np.ix_(places, places)], names, scale)


def check_rows(matrix: NamedMatrix | None, label: str) -> None:
    """Refuse a file that holds a matrix, for what transforms rows."""
    if matrix is not None:
        raise InvalidTableError(
            f"{label}: the file holds a matrix, and rows are needed.\nGive the table itself."
        )


def matrix_in(table: Table, content: TableProfile, *, asked: bool = False) -> NamedMatrix | None:
    """The matrix that a table holds, if it holds one.

    A table is taken for a correlation matrix where it is square and symmetric with ones on the
    diagonal, and for a covariance matrix where it is square, symmetric and positive semidefinite
    with a positive diagonal. One column of text may repeat the names; one triangle may be empty.

    ``asked`` tells that the file is said to hold one: what is wrong is then an error.
    """
    try:
        return _matrix_of(table, content, asked=asked)
    except InvalidCorrelationError:
        if asked:
            raise
        return None


def _matrix_of(table: Table, content: TableProfile, *, asked: bool) -> NamedMatrix:
    names = tuple(c.name for c in content.columns if c.kind in ("number", "empty"))
    labels = [c.name for c in content.columns if c.kind in ("text", "mixed")]
    p = len(names)
    if content.n_rows != p or p < 2 or len(labels) > 1:
        raise InvalidCorrelationError(
            f"{table.label}: a matrix is square, and this table has {content.n_rows} rows and "
            f"{p} columns of numbers.\nLeave out --matrix for rows of data."
        )
    current().check("columns", p, table.label)
    matrix = table.to_numpy(names)
    if labels:
        rows = [str(cell).strip() for cell in table.cells(labels[0])]
        if sorted(rows) != sorted(names):
            raise InvalidCorrelationError(
                f"{table.label}: the rows are named {', '.join(rows[:4])} … and the columns "
                f"{', '.join(names[:4])} ….\nA matrix has the same names on both sides."
            )
        matrix = matrix[[rows.index(name) for name in names]]
    # Two rows of data are symmetric where one pair of cells agrees.
    may_be_covariance = asked or bool(labels) or p > 2
    return named_matrix(matrix, names, table.label, may_be_covariance=may_be_covariance)


def named_matrix(
    matrix: Array, names: tuple[str, ...], label: str, *, may_be_covariance: bool = True
) -> NamedMatrix:
    """A square of numbers as a correlation matrix; an error where it is not."""
    filled = np.where(np.isnan(matrix), matrix.T, matrix)
    variances = np.diag(filled)
    problem = _problem(filled, names)
    if not problem and np.abs(variances - 1.0).max() <= _ROUNDING:
        R = 0.5 * (filled + filled.T)
        np.fill_diagonal(R, 1.0)
        if np.abs(R).max() <= 1.0 + _ROUNDING:
            return NamedMatrix(np.clip(R, -1.0, 1.0), names)
        problem = "an entry lies outside [-1, 1]"
    elif not problem and may_be_covariance:
        R = correlation_of_covariance(filled)
        least = float(np.linalg.eigvalsh(R)[0])
        if least >= -_ROUNDING * len(R):
            return NamedMatrix(np.clip(R, -1.0, 1.0), names, np.sqrt(variances))
        problem = f"it is not positive semidefinite (smallest eigenvalue {least:.2g})"
    raise InvalidCorrelationError(
        f"{label}: this is not a correlation or covariance matrix: {problem}.\n"
        "Give a square, symmetric matrix, or leave out --matrix for rows of data."
    )


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
