"""Which source may enter which output: every way of saying it becomes one boolean mask."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np

from skcoral.core.arrays import Array, Mask
from skcoral.core.problem import Problem
from skcoral.core.validation import check_number, float_array, in_order, listing, shown_value
from skcoral.exceptions import InvalidArgumentError


@dataclass(frozen=True)
class Columns:
    """Names of the sources and outputs of a support, and the composites of which outputs are."""

    sources: tuple[str, ...]
    outputs: tuple[str, ...]
    anchors: Any = None  # (p, k); None where the outputs are the variables

    @property
    def shape(self) -> tuple[int, int]:
        """Of a mask."""
        return len(self.sources), len(self.outputs)

    def with_anchors(self, mask: Mask) -> Mask:
        """Allow a variable in its output, and what a composite consists of if nothing is."""
        if self.anchors is None:
            return np.asarray(mask | np.eye(len(mask), dtype=np.bool_))
        return np.where(mask.any(axis=0), mask, np.asarray(self.anchors) != 0)


def pattern(
    support: Any, names: Sequence[str], composites: Sequence[str] = (), anchors: Any = None
) -> Mask:
    """Turn any description of a support into a mask, True where ``T[i, j]`` may differ from zero.

    Parameters
    ----------
    support : ndarray, DataFrame, mapping, graph or iterable of pairs
        One of

        * a p × k array, sparse matrix or list of lists of booleans (or of 0 and 1), rows the
          sources, columns the outputs;
        * the same as a DataFrame labelled by sources and outputs, in any order;
        * a mapping from an output to the sources that may enter it;
        * a DataFrame with the columns ``source`` and ``output``, one allowed pair per row;
        * an iterable of pairs (tuples) of variables, or a graph with an ``edges`` attribute: each
          of the two may enter the other. With composites, a pair is a source and an output.

        Sources and outputs are given by name or by position. A variable may always enter its own
        output; a composite for which nothing is said may consist of its own sources.
    names : sequence of str
        The variables, in the order of the correlation matrix.
    composites : sequence of str, optional
        Names of the outputs, where these are anchored to composites.
    anchors : array-like of shape (p, k), optional
        The composites.

    Returns
    -------
    ndarray of bool, shape (p, k)

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
    outputs = names if anchors is None else composites
    columns = Columns(tuple(names), tuple(outputs), anchors)
    if hasattr(support, "toarray"):
        support = support.toarray()
    wide = hasattr(support, "columns") and not is_long(support)
    if isinstance(support, np.ndarray) or wide or _is_nested_mask(support, columns.shape):
        mask = _read_mask(support, columns)
    else:
        mask = np.zeros(columns.shape, dtype=np.bool_)
        for i, j in _pairs(support, columns):
            mask[i, j] = True
    return columns.with_anchors(mask)


def _read_mask(support: Any, columns: Columns) -> Mask:
    """The mask of truth values, or of 0 and 1, that tell whether source i may enter output j."""
    mask = np.asarray(in_order(support, (columns.sources, columns.outputs), "the support"))
    if mask.shape != columns.shape:
        p, k = columns.shape
        raise InvalidArgumentError(
            f"The support must be a {p} by {k} mask (row: source, column: output), got shape "
            f"{mask.shape}."
        )
    for i, j in np.argwhere(~np.isin(mask, (0, 1))):  # True and False are 1 and 0
        raise InvalidArgumentError(
            "The support must contain only True and False (or 1 and 0); entry "
            f"(`{columns.sources[i]}`, `{columns.outputs[j]}`) is {mask[i, j]}. A rule such as "
            "abs(R) > 0.15 makes a mask."
        )
    return mask.astype(np.bool_)


def _read_bounds(bounds: Any, columns: Columns) -> tuple[Array, Array]:
    """Least and largest coefficients, one of each per source and output."""
    if not isinstance(bounds, tuple | list) or len(bounds) != 2:
        raise InvalidArgumentError(
            "bounds must be a pair (lower, upper) of matrices or numbers, one bound per "
            f"coefficient of T; got {type(bounds).__name__}."
        )
    p, k = columns.shape

    def side(which: str, value: Any) -> Array:
        value = in_order(value, (columns.sources, columns.outputs), f"the {which} bounds")
        array, _ = float_array(value, f"The {which} bounds", InvalidArgumentError)
        if array.shape not in ((), (p, k)) or np.isnan(array).any():
            raise InvalidArgumentError(
                f"The {which} bounds must be one number or a {p} by {k} matrix without NaN (use "
                f"infinity for no bound); got shape {array.shape}."
            )
        return np.broadcast_to(array, (p, k)).copy()

    return side("lower", bounds[0]), side("upper", bounds[1])


def read_restrictions(
    problem: Problem, support: Any, bounds: Any = None
) -> tuple[Mask, tuple[Array, Array] | None]:
    """The mask of a support, and the intervals of its coefficients where there are some.

    A number allows the sources whose correlation with the variable, or the composite, exceeds it.
    """
    R = problem.sources.regular("A support" if bounds is None else "A bound on coefficients")
    composites = problem.composites
    unit = None if composites is None else composites.unit
    columns = Columns(problem.sources.names, problem.settings.names, unit)
    intervals = None
    if support is None:
        mask = np.ones(columns.shape, dtype=np.bool_)
    elif isinstance(support, Real) and np.asarray(support).dtype != bool:
        limit = check_number("support", support, "a number of at least 0", lambda v: v >= 0)
        mask = columns.with_anchors(np.abs(R if unit is None else R @ unit) > limit)
    else:
        mask = pattern(support, columns.sources, columns.outputs, unit)
        intervals = _intervals(support, columns) if is_long(support) else None
    if bounds is not None:
        if intervals is not None:
            raise InvalidArgumentError(
                "the support has intervals of its own: give them there or in bounds, not both."
            )
        intervals = _read_bounds(bounds, columns)
    return mask, intervals


def is_long(support: Any) -> bool:
    """Whether it is a table of pairs: a DataFrame with the columns source and output."""
    names = {str(name) for name in getattr(support, "columns", ())}
    return {"source", "output"} <= names <= {"source", "output", "lower", "upper"}


def _pairs(support: Any, columns: Columns) -> list[tuple[int, int]]:
    """Positions of the allowed pairs (source, output) of a table, a mapping, a graph or edges."""
    both_ways = False
    if is_long(support):
        named = list(zip(support["source"], support["output"], strict=True))
    elif isinstance(support, Mapping):
        named = [(source, output) for output in support for source in _listed(support[output])]
    else:
        edges = getattr(support, "edges", support)
        named = [_edge(edge) for edge in _listed(edges() if callable(edges) else edges)]
        both_ways = columns.anchors is None  # each of two variables may enter the other
    pairs = [(_position(i, columns.sources), _position(j, columns.outputs)) for i, j in named]
    return pairs + [(j, i) for i, j in pairs] if both_ways else pairs


def _listed(given: Any) -> Iterable[Any]:
    """Sources of an output, of which there may be one, or edges."""
    if isinstance(given, str | int | np.integer):
        given = [given]
    if not isinstance(given, Iterable):
        raise InvalidArgumentError(
            "support must be a mask (row: source, column: output), a mapping from outputs to lists "
            f"of sources, a graph or an iterable of pairs; got {shown_value(given)}."
        )
    return given


def _edge(edge: Any) -> tuple[Any, Any]:
    pair = () if isinstance(edge, str) or not isinstance(edge, Iterable) else tuple(edge)
    if len(pair) != 2:
        raise InvalidArgumentError(
            f"every edge of a support must be a pair of variables; got {shown_value(edge)}."
        )
    return pair[0], pair[1]


def _intervals(frame: Any, columns: Columns) -> tuple[Array, Array] | None:
    """The columns ``lower`` and ``upper``, infinite where a cell is empty."""
    lower, upper = np.full(columns.shape, -np.inf), np.full(columns.shape, np.inf)
    if not {"lower", "upper"} & set(frame.columns):
        return None
    for side, ends in (("lower", lower), ("upper", upper)):
        for place, given in zip(_pairs(frame, columns), frame.get(side, ()), strict=False):
            number = check_number(f"`{side}` of the support", np.nan if given is None else given)
            ends[place] = ends[place] if np.isnan(number) else number
    return lower, upper


def _position(variable: Any, names: tuple[str, ...]) -> int:
    if isinstance(variable, int | np.integer) and not isinstance(variable, bool):
        if 0 <= variable < len(names):
            return int(variable)
        raise InvalidArgumentError(
            f"position {variable} is outside 0…{len(names) - 1} in the support."
        )
    if str(variable) not in names:
        raise InvalidArgumentError(
            f"The support names {variable!r}; the variables are {listing(names)}."
        )
    return names.index(str(variable))


def _is_nested_mask(support: Any, shape: tuple[int, int]) -> bool:
    """Rows of truth values, or lists of zeros and ones; pairs of positions come as tuples."""
    if not isinstance(support, Sequence) or isinstance(support, str):
        return False
    try:
        rows = np.asarray(support)
    except ValueError:  # of different lengths
        return False
    if rows.dtype == np.bool_:
        return True
    tuples = any(isinstance(row, tuple) for row in support)
    return rows.shape == shape and not tuples and bool(np.isin(rows, (0, 1)).all())
