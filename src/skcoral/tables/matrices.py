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
    current().check("columns", p, table.label)
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
