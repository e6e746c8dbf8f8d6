"""Null directions of a correlation matrix, told as short linear relations between variables."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import qr, solve

Array = NDArray[np.float64]

# Coefficients below this, relative to the largest of the relation, are rounding of the
# eigenvectors and not part of the relation.
_NEGLIGIBLE = 1e-6


def reduced_null_basis(null: Array) -> tuple[Array, NDArray[np.intp]]:
    """Row-reduce a basis of null directions, so that each row is a short relation.

    Each row has coefficient one at its own pivot and zero at the other pivots; variables that
    share no relation then never share a row. Among equally good pivots the last variable is
    taken, so that a duplicate is expressed by the column that came first.

    Parameters
    ----------
    null : ndarray of shape (k, p)
        Linearly independent directions, one per row.

    Returns
    -------
    rows : ndarray of shape (k, p)
    pivots : ndarray of shape (k,)
    """
    k, p = null.shape
    preference = 1.0 + 1e-7 * np.arange(p)
    order = qr(null * preference, mode="r", pivoting=True)[1]
    pivots = np.sort(order[:k])
    rows = np.asarray(solve(null[:, pivots], null), dtype=np.float64)
    rows[np.abs(rows) < _NEGLIGIBLE * np.abs(rows).max(axis=1, keepdims=True)] = 0.0
    rows[:, pivots] = np.eye(k)
    return rows, pivots


def linear_relations(
    null: Array, names: Sequence[str], *, scale: Array | None = None, limit: int = 6
) -> list[str]:
    """Write each null direction as ``"`total` = `a` + `b`"``.

    Parameters
    ----------
    null : ndarray of shape (k, p)
        Linearly independent null directions in standardised units, one per row.
    names : sequence of str
        The variables.
    scale : ndarray of shape (p,), optional
        Standard deviations; if given, coefficients are in the original units.
    limit : int, default=6
        Terms shown before the rest is summed up in words.
    """
    rows, pivots = reduced_null_basis(null)
    out = []
    for row, pivot in zip(rows, pivots, strict=True):
        coefficients = -row if scale is None else -row / scale * scale[pivot]
        others = [int(j) for j in np.flatnonzero(row) if j != pivot]
        terms = [_term(coefficients[j], names[j], first=j == others[0]) for j in others[:limit]]
        text = " ".join(terms) if terms else "0"
        if len(others) > limit:
            text += f" + {len(others) - limit} more terms"
        out.append(f"`{names[pivot]}` = {text}")
    return out


def linked_variables(null: Array, names: Sequence[str]) -> list[str]:
    """Names of the variables that take part in at least one null direction, in input order."""
    rows, _ = reduced_null_basis(null)
    return [names[int(j)] for j in np.flatnonzero(rows.any(axis=0))]


def redundant_variables(null: Array, names: Sequence[str]) -> list[str]:
    """One variable per null direction, determined by the others; without them R is regular."""
    return [names[int(j)] for j in reduced_null_basis(null)[1]]


def _term(coefficient: float, name: str, *, first: bool) -> str:
    sign = "-" if coefficient < 0 else "+"
    size = abs(coefficient)
    factor = "" if abs(size - 1.0) < 1e-6 else f"{size:.6g} "
    if first:
        return f"{'-' if sign == '-' else ''}{factor}`{name}`"
    return f"{sign} {factor}`{name}`"
