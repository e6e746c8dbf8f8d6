"""Correlation and covariance matrices in tables."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass

import numpy as np

from skcoral.core.arrays import Array
from skcoral.core.limits import current
from skcoral.core.problem import symmetric
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
    with suppress(*() if asked else (InvalidCorrelationError,)):
        return _matrix_of(table, content, asked=asked)
    return None


def _matrix_of(table: Table, content: TableProfile, *, asked: bool) -> NamedMatrix:
    names = tuple(c.name for c in content.columns.values() if c.kind in ("number", "empty"))
    labels = [c.name for c in content.columns.values() if c.kind in ("text", "mixed")]
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
    what = f"{label}: the matrix"
    filled = np.where(np.isnan(matrix), matrix.T, matrix)
    variances = np.diag(filled)
    positive = variances > 0
    if not positive.all():
        name = names[int(np.argmin(positive))]
        raise InvalidCorrelationError(f"{what} needs a positive diagonal, also for `{name}`.")
    scale = np.sqrt(variances)
    scaled = filled / np.outer(scale, scale)
    R = symmetric(scaled, names, what, InvalidCorrelationError, 10 * _ROUNDING)
    is_correlation = np.abs(variances - 1.0).max() <= _ROUNDING
    if is_correlation:
        R = 0.5 * (filled + filled.T)
    np.fill_diagonal(R, 1.0)
    if is_correlation:
        fits = np.abs(R).max() <= 1.0 + _ROUNDING
    else:
        fits = may_be_covariance and np.linalg.eigvalsh(R)[0] >= -_ROUNDING * len(R)
    if not fits:
        raise InvalidCorrelationError(
            f"{what} has entries outside [-1, 1] or is not positive semidefinite.\n"
            "Give a correlation or covariance matrix, or leave out --matrix for rows of data."
        )
    return NamedMatrix(np.clip(R, -1.0, 1.0), names, None if is_correlation else scale)
