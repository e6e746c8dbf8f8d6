"""Arguments by position or by name: floors, pair weights, composites and bounds on coefficients."""

from __future__ import annotations

from typing import Any

import numpy as np

from skcoral.core.arrays import Array
from skcoral.core.requirements import listing, repeated
from skcoral.core.validation import check_floors, check_pair_weights
from skcoral.exceptions import InvalidAnchorError, InvalidArgumentError, InvalidFloorError


def sources_in_order(anchors: Any, names: tuple[str, ...]) -> Any:
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
            named = in_order(value, names, f"bounds ({side})", outputs)
            array = np.asarray(named, dtype=np.float64)
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
