"""Which source may enter which output: every way of saying it becomes one boolean mask."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skcoral.core.requirements import real_number, shown_value
from skcoral.core.validation import check_support
from skcoral.exceptions import InvalidSupportError

Mask = NDArray[np.bool_]


def pattern(support: Any, names: Sequence[str]) -> Mask:
    """Turn any description of a support into a mask, True where ``T[i, j]`` may differ from zero.

    Parameters
    ----------
    support : ndarray, DataFrame, mapping, graph or iterable of pairs
        One of

        * a p × p array, sparse matrix or list of lists of booleans (or of 0 and 1), rows the
          sources, columns the outputs;
        * the same as a DataFrame labelled by the variables on both sides, in any order;
        * a mapping from an output to the sources that may enter it; an output that is not a key
          stays its own source;
        * an iterable of pairs (tuples) of variables, or a graph with an ``edges`` attribute: each
          of the two may enter the other.

        Variables are given by name or by position. The diagonal is always allowed.
    names : sequence of str
        The variables, in the order of the correlation matrix.

    Returns
    -------
    ndarray of bool, shape (p, p)

    Examples
    --------
    >>> pattern({"b": ["a"]}, ["a", "b", "c"]).astype(int)
    array([[1, 1, 0],
           [0, 1, 0],
           [0, 0, 1]])
    >>> pattern([("a", "c")], ["a", "b", "c"]).astype(int)
    array([[1, 0, 1],
           [0, 1, 0],
           [1, 0, 1]])
    """
    names = tuple(names)
    if hasattr(support, "toarray"):
        support = support.toarray()
    if hasattr(support, "columns") and hasattr(support, "index"):
        mask = _mask_from_frame(support, names)
    elif isinstance(support, Mapping):
        mask = _mask_from_mapping(support, names)
    elif hasattr(support, "edges") and not isinstance(support, np.ndarray):
        edges = support.edges
        mask = _mask_from_edges(edges() if callable(edges) else edges, names)
    elif isinstance(support, np.ndarray) or _is_nested_mask(support, len(names)):
        mask = check_support(support, len(names), names)
    elif isinstance(support, Iterable) and not isinstance(support, str):
        mask = _mask_from_edges(support, names)
    else:
        raise InvalidSupportError(
            "support must be a p × p mask, a mapping from outputs to sources, a graph or an "
            f"iterable of pairs; got {type(support).__name__}."
        )
    np.fill_diagonal(mask, True)
    return mask


def read_support(support: Any, R: Any, names: Sequence[str]) -> Any:
    """The mask of a support: where |R| exceeds it if it is a number, else a :func:`pattern`."""
    if isinstance(support, Real) and np.asarray(support).dtype != bool:
        return support_from_threshold(
            np.asarray(R), real_number(support, "support", InvalidSupportError)
        )
    return pattern(support, names=names)


def support_from_threshold(R: Any, threshold: float = 0.15) -> Any:
    """Allow source i in output j where ``|R[i, j]|`` exceeds a threshold, and on the diagonal.

    Parameters
    ----------
    R : array or DataFrame of shape (p, p)
        Correlation matrix.
    threshold : float
        At least 0; at 1 or more only the diagonal is left.

    Returns
    -------
    ndarray of bool, or a DataFrame of bool with the labels of ``R``

    Examples
    --------
    >>> support_from_threshold([[1, 0.2, 0.1], [0.2, 1, 0], [0.1, 0, 1]], 0.15).astype(int)
    array([[1, 1, 0],
           [1, 1, 0],
           [0, 0, 1]])
    """
    if not (isinstance(threshold, int | float | np.number) and threshold >= 0):
        raise InvalidSupportError(
            f"threshold must be a number of at least 0; got {shown_value(threshold)}."
        )
    values = np.asarray(R, dtype=np.float64)
    if values.ndim != 2 or values.shape[0] != values.shape[1]:
        raise InvalidSupportError(
            f"support_from_threshold needs a square correlation matrix; got shape {values.shape}."
        )
    mask = np.abs(values) > threshold
    np.fill_diagonal(mask, True)
    if hasattr(R, "columns"):
        return type(R)(mask, index=R.columns, columns=R.columns)
    return mask


@dataclass(frozen=True)
class DegreesOfFreedom:
    """The counts that say what a support leaves free; a diagnostic, not a proof.

    Attributes
    ----------
    free : int
        Coefficients that may differ from zero.
    zeros : int
        Coefficients that are zero by construction.
    rotations : int
        Dimension p(p−1)/2 of the orthogonal group, hence of the family of exact decorrelators.
    equations : int
        The p(p+1)/2 scalar equations of ``TᵀRT = I``.

    Examples
    --------
    >>> counts = degrees_of_freedom(pattern({"b": ["a"]}, ["a", "b", "c"]))
    >>> counts.free, counts.zeros
    (4, 5)
    """

    free: int
    zeros: int
    rotations: int
    equations: int

    @property
    def exactness_expected(self) -> bool:
        """Whether exact decorrelation would be possible for a generic matrix, by counting."""
        return self.free >= self.equations and self.zeros <= self.rotations


def degrees_of_freedom(mask: Mask) -> DegreesOfFreedom:
    """Count free coefficients, structural zeros, rotations and equations of a support.

    Examples
    --------
    >>> degrees_of_freedom(np.eye(3, dtype=bool))
    DegreesOfFreedom(free=3, zeros=6, rotations=3, equations=6)
    """
    p = len(mask)
    free = int(mask.sum())
    return DegreesOfFreedom(free, p * p - free, p * (p - 1) // 2, p * (p + 1) // 2)


def _mask_from_frame(frame: Any, names: tuple[str, ...]) -> Mask:
    for labels, what in ((frame.index, "rows (sources)"), (frame.columns, "columns (outputs)")):
        given = [str(label) for label in labels]
        wrong = sorted(set(names) ^ set(given))
        if wrong or len(given) != len(names):
            raise InvalidSupportError(
                f"the {what} of the support must be the {len(names)} variables, once each; "
                f"missing or unknown: {wrong or 'none, but some are repeated'}."
            )
    rows = {str(label): k for k, label in enumerate(frame.index)}
    columns = {str(label): k for k, label in enumerate(frame.columns)}
    values = np.asarray(frame)[np.ix_([rows[n] for n in names], [columns[n] for n in names])]
    return check_support(values, len(names), names)


def _mask_from_mapping(sources_of: Mapping[Any, Any], names: tuple[str, ...]) -> Mask:
    mask = np.zeros((len(names), len(names)), dtype=np.bool_)
    for output, sources in sources_of.items():
        j = _position(output, names)
        if isinstance(sources, str | int | np.integer):
            sources = [sources]
        if not isinstance(sources, Iterable):
            raise InvalidSupportError(
                f"the sources of output {output!r} must be a list of variables; got "
                f"{shown_value(sources)}."
            )
        for source in sources:
            mask[_position(source, names), j] = True
    return mask


def _mask_from_edges(edges: Iterable[Any], names: tuple[str, ...]) -> Mask:
    mask = np.zeros((len(names), len(names)), dtype=np.bool_)
    for edge in edges:
        if isinstance(edge, str) or not isinstance(edge, Iterable) or len(tuple(edge)) != 2:
            raise InvalidSupportError(
                f"every edge must be a pair of variables; got {shown_value(edge)}."
            )
        i, j = (_position(end, names) for end in edge)
        mask[i, j] = mask[j, i] = True
    return mask


def _position(variable: Any, names: tuple[str, ...]) -> int:
    if isinstance(variable, str) or variable in names:
        if str(variable) in names:
            return names.index(str(variable))
    elif isinstance(variable, int | np.integer) and not isinstance(variable, bool):
        if 0 <= variable < len(names):
            return int(variable)
        raise InvalidSupportError(
            f"position {variable} is outside 0…{len(names) - 1} in the support."
        )
    raise InvalidSupportError(f"unknown variable {variable!r} in the support; known: {names}.")


def _is_nested_mask(support: Any, p: int) -> bool:
    """Rows of truth values, or p lists of p zeros and ones; pairs of positions come as tuples."""
    if not (isinstance(support, Sequence) and len(support) > 0):
        return False
    if not all(isinstance(row, list | tuple | np.ndarray) and len(row) > 0 for row in support):
        return False
    if all(isinstance(entry, bool | np.bool_) for row in support for entry in row):
        return True
    return len(support) == p and all(
        not isinstance(row, tuple)
        and len(row) == p
        and all(isinstance(entry, int | float | np.number) and entry in (0, 1) for entry in row)
        for row in support
    )
