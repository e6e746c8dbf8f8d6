"""Names and frames: what users hand over becomes plain arrays in one order, and back."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skcoral._linalg import gram_defect, precise_column_dots
from skcoral._requirements import listing, repeated
from skcoral._validation import (
    check_anchors,
    check_correlation,
    check_floors,
    check_names,
    check_pair_weights,
    frame_names,
)
from skcoral.certificates.settling import settle
from skcoral.exceptions import (
    InvalidAnchorError,
    InvalidArgumentError,
    InvalidCorrelationError,
    InvalidFloorError,
)
from skcoral.results import Decorrelation

Array = NDArray[np.float64]


class Composites:
    """Outputs anchored to composites ``Z b_j``: the same problem for their correlation matrix."""

    def __init__(self, R: Array, names: tuple[str, ...], anchors: Any) -> None:
        labels = list(getattr(anchors, "columns", ()))
        if labels and hasattr(anchors, "index"):
            anchors = _sources_in_order(anchors, names)
        self._sources = R
        self.B = check_anchors(anchors, len(R), names)
        k = self.B.shape[1]
        self.names = check_names(labels or [f"anchor{j}" for j in range(k)], k)
        # only directions matter; taking out the scale first keeps squares within range
        directions = self.B / np.abs(self.B).max(axis=0)
        self._unit = directions / np.sqrt(np.diag(directions.T @ R @ directions))
        try:
            self.R = check_correlation(self._unit.T @ R @ self._unit, self.names)
        except InvalidCorrelationError as reason:
            raise InvalidAnchorError(f"The composites cannot be decorrelated: {reason}") from reason

    def map_back(self, result: Decorrelation) -> Decorrelation:
        """Coefficients on the variables instead of on the composites."""
        T = self._of_unit_variance(self._unit @ result.T)
        nudge = 1e-16
        while nudge < 1e-6 and result.certificate.kind == "tradeoff":
            fidelity = precise_column_dots(self._sources @ self._unit, T)
            low = np.flatnonzero(fidelity < result.rho_min)
            if not len(low):
                break
            # A step towards the composite itself raises its share; rounding took a little of it.
            T[:, low] = self._of_unit_variance((1 - nudge) * T[:, low] + nudge * self._unit[:, low])
            nudge *= 4.0
        return settle(replace(result, T=T, anchors=self.B), self._sources)

    def _of_unit_variance(self, T: Array) -> Array:
        defect = np.diag(gram_defect(self._sources, T, precise=True))
        return np.asarray(T / np.sqrt(1.0 + defect))


def named_correlation(R: Any) -> tuple[Array, tuple[str, ...]]:
    """Turn what the user gave into an array and names."""
    matrix = check_correlation(R)
    return matrix, check_names(frame_names(R), len(matrix))


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


def in_order(value: Any, names: tuple[str, ...], what: str) -> Any:
    """Put a DataFrame with the variables' names into the order of ``names``; leave arrays alone."""
    if not (hasattr(value, "columns") and hasattr(value, "index")):
        return value
    if set(map(str, value.columns)) != set(names) or set(map(str, value.index)) != set(names):
        raise InvalidArgumentError(
            f"{what} is a DataFrame, so its rows and columns must be named like the variables; "
            f"wanted {list(names)[:6]}, got columns {list(map(str, value.columns))[:6]}."
        )
    named = value.set_axis(list(map(str, value.columns)), axis=1)
    named = named.set_axis(list(map(str, value.index)), axis=0)
    return named.loc[list(names), list(names)].to_numpy()


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


def read_bounds(bounds: Any, names: tuple[str, ...]) -> tuple[Array, Array]:
    """Least and largest coefficients, by position or by name."""
    if not isinstance(bounds, tuple | list) or len(bounds) != 2:
        raise InvalidArgumentError(
            "bounds must be a pair (lower, upper) of matrices or numbers, one bound per "
            f"coefficient of T; got {type(bounds).__name__}."
        )
    shape = (len(names), len(names))
    out = []
    for side, value in zip(("lower", "upper"), bounds, strict=True):
        try:
            array = np.asarray(in_order(value, names, f"bounds ({side})"), dtype=np.float64)
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
