"""Names and frames: what users hand over becomes plain arrays in one order, and back."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from skcoral.certificates.settling import rounding_matters, settle
from skcoral.core.arrays import Array, library, to_device
from skcoral.core.deficiency import Deficiency
from skcoral.core.linalg import gram_defect, of_unit_variance, precise_product, raised_to_floors
from skcoral.core.lowrank import FactoredCorrelation
from skcoral.core.requirements import listing, repeated
from skcoral.core.results import FLOOR_TOL, Decorrelation
from skcoral.core.validation import (
    check_anchors,
    check_choice,
    check_floors,
    check_names,
    check_pair_weights,
    frame_names,
    judge_correlation,
)
from skcoral.exceptions import (
    InvalidAnchorError,
    InvalidArgumentError,
    InvalidCorrelationError,
    InvalidFloorError,
    SingularCorrelationWarning,
    warn,
)
from skcoral.solvers.exact import KeptThreshold

_AMPLIFIED = 1e3  # largest coefficient of T from which on its rounding shows in variances


@dataclass(frozen=True)
class Judged:
    """A correlation matrix that was judged once: the array, the names, and what is dependent.

    The functions of :mod:`skcoral.api` take it in place of the matrix, so that several questions
    about one matrix share the judgement and ρ★.

    ``R`` is kept as a factor for tables with many more columns than rows.
    """

    R: Any
    names: tuple[str, ...]
    deficiency: Deficiency | None
    like: Any = None

    @cached_property
    def placed(self) -> Any:
        """``R`` in the library and on the device of what was given, which it is where equal."""
        there = to_device(self.R, self.like)
        given = self.like
        same = library(given) is not np and given.dtype == there.dtype
        return given if same and bool(library(given).all(given == there)) else there

    @cached_property
    def threshold(self) -> KeptThreshold:
        """ρ★, solved once for all questions about this matrix."""
        return KeptThreshold(self.placed)

    @property
    def dense(self) -> bool:
        """Whether ``R`` is an ordinary array."""
        return not isinstance(self.R, FactoredCorrelation)

    def __len__(self) -> int:
        return len(self.names)

    def described(
        self, result: Decorrelation, composites: Composites | None = None
    ) -> Decorrelation:
        """Coefficients on the variables, no more said than proved, and the matrix it is about."""
        if composites is not None:
            result = composites.map_back(result)
        elif self.dense and result.details.get("amplification", 0.0) > _AMPLIFIED:
            result = settle(replace(result, T=of_unit_variance(self.R, result.T)), self.R)
        elif self.dense and rounding_matters(result):
            result = settle(result, self.R)
        return replace(result, R=self.R if self.dense else None)

    def regular(self, what: str) -> Array:
        """The matrix, refused where it is singular and ``what`` needs all directions."""
        if self.deficiency is not None:
            raise self.deficiency.error(what)
        return np.asarray(self.R)


def judge(R: Any, *, on_singular: Any = "raise") -> Judged:
    """Turn what the user gave into a judged matrix with names; say so where it is singular."""
    solve = check_choice("on_singular", on_singular, ("solve", "raise")) == "solve"
    if isinstance(R, Judged):
        return R
    known = getattr(R, "deficiency", None)
    if known is not None or getattr(R, "judged", False):  # an estimate from a table
        return Judged(R.R, tuple(R.names), known)
    matrix, found = judge_correlation(R)
    names = check_names(frame_names(R), len(matrix))
    if found is not None:
        if not solve:
            raise found.error()
        warn(found.warning(), SingularCorrelationWarning)
    return Judged(matrix, names, found, R)


class Composites:
    """Outputs anchored to composites ``Z b_j``: the same problem for their correlation matrix."""

    def __init__(self, given: Judged, anchors: Any) -> None:
        names = given.names
        labels = list(getattr(anchors, "columns", ()))
        if labels and hasattr(anchors, "index"):
            anchors = _sources_in_order(anchors, names)
        self._sources, self._wide = given.R, not given.dense
        self.B = check_anchors(anchors, len(names), names)
        k = self.B.shape[1]
        self.names = check_names(labels or [f"anchor{j}" for j in range(k)], k)
        # only directions matter; taking out the scale first keeps squares within range
        directions = self.B / np.abs(self.B).max(axis=0)
        if given.deficiency is None:
            gram = gram_defect(given.R, directions, precise=True) + np.eye(k)
        else:
            half = given.deficiency.factor @ directions
            gram = half.T @ half  # directions that do not count make no composite independent
        length = np.sqrt(np.diag(gram))
        nothing = [self.names[j] for j in np.flatnonzero(length <= 1e-12)]
        if nothing:
            raise InvalidAnchorError(
                f"The composites {listing(nothing)} have no variance: linear relations between the "
                "variables cancel them out. Anchor to something else."
            )
        self.unit = directions / length
        R = gram / np.outer(length, length)
        np.fill_diagonal(R, 1.0)
        try:
            matrix, found = judge_correlation(0.5 * (R + R.T), self.names)
        except InvalidCorrelationError as reason:
            raise InvalidAnchorError(f"The composites cannot be decorrelated: {reason}") from reason
        if found is not None:  # outputs outside their span could be less correlated
            raise InvalidAnchorError(
                f"The composites depend on each other: {'; '.join(found.relations[:5])} (in "
                f"standardised units; {k} composites of rank {found.rank}). Composites have to be "
                "linearly independent: leave one of each relation out, or anchors altogether to "
                "decorrelate the variables themselves."
            )
        if given.deficiency is not None and given.dense:  # to the digits of R itself
            self.unit = of_unit_variance(given.R, self.unit)
            matrix = gram_defect(given.R, self.unit, precise=True)
            np.fill_diagonal(matrix, 1.0)
        self.judged = Judged(matrix, self.names, None)

    def map_back(self, result: Decorrelation) -> Decorrelation:
        """Coefficients on the variables instead of on the composites."""
        T = precise_product(self.unit, result.T)
        result = replace(result, T=T, anchors=self.B)
        if self._wide:
            return result
        exact = result.certificate.kind in ("exact", "threshold")
        # An exact decorrelator is not turned for a miss that does not count.
        floors = result.rho_min - (0.5 * FLOOR_TOL if exact else 0.0)
        T = raised_to_floors(self._sources, T, self.unit, floors)
        return settle(replace(result, T=T), self._sources)


def _sources_in_order(anchors: Any, names: tuple[str, ...]) -> Any:
    """Put the rows of a DataFrame of composites into the order of the variables."""
    rows = list(map(str, anchors.index))
    if rows == [str(k) for k in range(len(rows))]:
        return anchors  # the default index: rows by position
    if sorted(rows) != sorted(names):
        raise InvalidAnchorError(
            "anchors is a DataFrame, so its rows must be named like the variables, once each; "
            f"wanted {list(names)[:6]}, got {rows[:6]}."
        )
    return anchors.set_axis(rows, axis=0).loc[list(names)]


def in_order(
    value: Any, names: tuple[str, ...], what: str, outputs: tuple[str, ...] | None = None
) -> Any:
    """Put a DataFrame with the variables' names into the order of ``names``; leave arrays alone.

    Its columns are ``outputs``, where these are no variables.
    """
    if not (hasattr(value, "columns") and hasattr(value, "index")):
        return value
    columns = names if outputs is None else outputs
    if set(map(str, value.columns)) != set(columns) or set(map(str, value.index)) != set(names):
        raise InvalidArgumentError(
            f"{what} is a DataFrame, so its rows and columns must be named like the variables"
            f"{'' if outputs is None else ' and the anchors'}; wanted the columns "
            f"{list(columns)[:6]}, got {list(map(str, value.columns))[:6]}."
        )
    named = value.set_axis(list(map(str, value.columns)), axis=1)
    named = named.set_axis(list(map(str, value.index)), axis=0)
    return named.loc[list(names), list(columns)].to_numpy()


def read_pair_weights(pair_weights: Any, p: int, names: tuple[str, ...]) -> Array | None:
    """Pair weights by position or by name; None stays None."""
    if pair_weights is None:
        return None
    return check_pair_weights(in_order(pair_weights, names, "pair_weights"), p, names)


def read_floors(rho_min: Any, p: int, names: tuple[str, ...]) -> Array:
    """Floors as a number, by position, or by name in a mapping or Series."""
    if hasattr(rho_min, "to_dict") and hasattr(rho_min, "index"):
        labels = [str(name) for name in rho_min.index]
        if labels == [str(k) for k in range(p)]:
            return check_floors(np.asarray(rho_min), p, names)  # the default index: by position
        if len(set(labels)) < len(labels):
            raise InvalidFloorError(
                f"rho_min names {listing(repeated(labels))} more than once; give one floor per "
                "variable."
            )
        rho_min = rho_min.to_dict()
    return check_floors(rho_min, p, names)


def read_common_floors(rho_min: Any) -> Array:
    """A list of common floors."""
    values = np.atleast_1d(np.asarray(rho_min, dtype=object))
    if values.ndim != 1 or not len(values):
        raise InvalidArgumentError(
            f"rho_min must be a list of common floors, got an array of shape {values.shape}."
        )
    return check_floors(values, len(values), [f"rho_min[{k}]" for k in range(len(values))])


def read_bounds(
    bounds: Any, names: tuple[str, ...], outputs: tuple[str, ...] | None = None
) -> tuple[Array, Array]:
    """Least and largest coefficients, by position or by name."""
    if not isinstance(bounds, tuple | list) or len(bounds) != 2:
        raise InvalidArgumentError(
            "bounds must be a pair (lower, upper) of matrices or numbers, one bound per "
            f"coefficient of T; got {type(bounds).__name__}."
        )
    shape = (len(names), len(names if outputs is None else outputs))
    out = []
    for side, value in zip(("lower", "upper"), bounds, strict=True):
        try:
            array = np.asarray(
                in_order(value, names, f"bounds ({side})", outputs), dtype=np.float64
            )
        except (TypeError, ValueError) as reason:
            raise InvalidArgumentError(
                f"The {side} bounds must be one number or a {shape[0]} by {shape[1]} matrix of "
                f"numbers: {reason}."
            ) from None
        if array.shape not in ((), shape) or np.isnan(array).any():
            raise InvalidArgumentError(
                f"The {side} bounds must be one number or a {shape[0]} by {shape[1]} matrix "
                f"without NaN (use infinity for no bound); got shape {array.shape}."
            )
        out.append(np.broadcast_to(array, shape).copy())
    return out[0], out[1]
