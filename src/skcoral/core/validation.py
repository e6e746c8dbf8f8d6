"""Validation of arguments: numbers, names, and values that are given by position or by name.

Every function returns the checked value in the form that solvers use, or raises an error that says
what was wanted, what was given, and which variable is concerned. Matrices are checked in
:mod:`skcoral.core.problem`.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import suppress
from numbers import Integral, Real
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from skcoral.core.arrays import EPS, Array, read_only, to_host
from skcoral.exceptions import CoralError, InvalidArgumentError, InvalidTableError

# Squares of weights, of rows and of pairs, stay within float64, also when many are added.
WEIGHT_RANGE = (1e-100, 1e100)


def listing(names: Sequence[str], limit: int = 8, quote: str = "`") -> str:
    """Names for a message, the first few of many: "`a`, `b` and 1 more"."""
    shown = ", ".join(f"{quote}{name}{quote}" for name in names[:limit])
    return shown if len(names) <= limit else f"{shown} and {len(names) - limit} more"


def repeated(names: Iterable[str]) -> list[str]:
    """The names that occur more than once, sorted."""
    return sorted(name for name, count in Counter(names).items() if count > 1)


def shown_value(value: Any) -> str:
    """A value that a user gave, short enough for one line of a message."""
    try:
        text = " ".join(repr(value.item() if isinstance(value, np.generic) else value).split())
    except ValueError:  # Python does not spell out whole numbers of thousands of digits
        text = f"a {type(value).__name__} that is too long to show"
    return text if len(text) <= 60 else f"{text[:60]}..."


def whole_number(text: str) -> int | None:
    """The number that a text of at most 15 decimal digits stands for; None for any other text."""
    return int(text) if text.isdecimal() and len(text) <= 15 else None


def float_array(value: Any, what: str, error: type[CoralError]) -> tuple[Array, float]:
    """Return ``value`` in float64, with the rounding unit of the type it came in.

    Text is refused even if it reads like a number, and so are dates. Masked and missing values
    become NaN.
    """
    value = to_host(value)
    if hasattr(value, "toarray"):
        raise error(f"{what} must be a dense array, got a sparse one: use {what}.toarray().")
    columns = getattr(value, "columns", None)
    if columns is not None and hasattr(value, "to_numpy"):
        value = value.to_numpy()
    if np.ma.isMaskedArray(value) and value.dtype.kind in "biufO":
        value = np.where(np.ma.getmaskarray(value), np.nan, np.ma.getdata(value))
    try:
        raw = np.asarray(value)
    except ValueError:
        raise error(
            f"{what} must be a regular array of numbers, got ragged rows (of unequal length)."
        ) from None
    if raw.dtype.kind == "c":
        raise error(f"{what} must be real, got complex numbers.")
    if raw.dtype.kind in "biuf":
        out = raw.astype(np.float64, copy=False)
    else:
        if raw.dtype.kind in "SU":
            raw = np.asarray(value, dtype=object)  # numbers beside text became text as well
        out = np.empty(raw.shape)
        for position, cell in np.ndenumerate(raw):
            number = _number_or_none(cell)
            if number is None:
                where = "got" if not position else f"{_place(raw, position, columns)} is"
                text = "the text " if isinstance(cell, str | bytes) else ""
                raise error(f"{what} must contain only numbers; {where} {text}{shown_value(cell)}.")
            out[position] = number
    eps = float(np.finfo(raw.dtype).eps) if raw.dtype.kind == "f" else 0.0
    return out, max(eps, EPS)


def _number_or_none(cell: Any) -> float | None:
    """A cell without a numeric type as a number; NaN if it is missing, None if it is no number."""
    if cell is None or type(cell).__name__ == "NAType":  # pandas' mark, without loading pandas
        return math.nan
    if isinstance(cell, str | bytes | np.datetime64 | np.timedelta64 | np.void):
        return None
    try:
        return float(cell)
    except OverflowError:
        return math.inf if cell > 0 else -math.inf
    except (TypeError, ValueError):
        return None


def _place(raw: NDArray[Any], position: tuple[int, ...], columns: Any) -> str:
    """Where a cell is, with a hint if the first column holds the names of the rows."""
    if columns is None or len(position) != 2:
        return f"entry {position if len(position) > 1 else position[0]}"
    names = [str(name) for name in columns]
    hint = ""
    if position[1] == 0 and [str(cell) for cell in raw[:, 0]] == names[1:]:
        hint = " (the names of the rows? Make them the index, as pandas.read_csv(..., index_col=0))"
    return f"row {position[0]} of column `{names[position[1]]}`{hint}"


def check_names(names: Sequence[Any] | None, p: int) -> tuple[str, ...]:
    """Return ``p`` distinct names; ``None`` gives ``x0, x1, ...``."""
    if names is None:
        return tuple(f"x{j}" for j in range(p))
    out = tuple(str(name) for name in names)
    if len(out) != p:
        raise InvalidArgumentError(f"{p} variables need {p} names, got {len(out)}.")
    if len(set(out)) < p:
        raise InvalidArgumentError(
            f"Names must be distinct; more than once: {listing(repeated(out))}. Rename them."
        )
    return out


def column_labels(X: Any) -> tuple[str, ...] | None:
    """Names of a DataFrame's columns; None without any, or if some are not text."""
    labels = tuple(getattr(X, "columns", ()))
    return labels if labels and all(isinstance(name, str) for name in labels) else None


def positions(
    labels: Iterable[Any], names: Sequence[str], what: str, *, some: bool = False
) -> list[int]:
    """The position of each label among ``names``; labels 0, 1, … are positions themselves.

    Every name must occur once; with ``some``, names may be left out.
    """
    given = [str(label) for label in labels]
    if given == [str(k) for k in range(len(names))]:
        return list(range(len(names)))
    place = {name: j for j, name in enumerate(names)}
    wrong = {
        "unknown": [name for name in given if name not in place],
        "repeated": repeated(given),
        "missing": [] if some else [name for name in names if name not in set(given)],
    }
    if any(wrong.values()):
        reasons = "; ".join(f"{word}: {listing(them)}" for word, them in wrong.items() if them)
        raise InvalidArgumentError(
            f"{what} must have the names {listing(names)}, each at most once; {reasons}."
        )
    return [place[name] for name in given]


def in_order(value: Any, axes: Sequence[Sequence[str] | None], what: str) -> Any:
    """The entries of a DataFrame in the order of these names of rows and columns, as an array.

    An axis of None keeps its order, and so do arrays, which have no names.
    """
    if not (hasattr(value, "columns") and hasattr(value, "index")):
        return value
    out = value.to_numpy()
    sides = (("rows", value.index), ("columns", value.columns))
    for axis, ((side, labels), names) in enumerate(zip(sides, axes, strict=True)):
        if names is not None:
            places = positions(labels, names, f"The {side} of {what}")
            out = np.take(out, np.argsort(places), axis)
    return out


def check_floors(rho_min: Any, names: Sequence[str]) -> Array:
    """Return one fidelity floor per variable, each in [0, 1].

    ``rho_min`` is one number for all, one for each, or a mapping or Series by name; variables that
    it does not name have a floor of 0.
    """
    p = len(names)
    if hasattr(rho_min, "items"):
        given = np.zeros(p)
        places = positions([name for name, _ in rho_min.items()], names, "Floors", some=True)
        for (name, value), j in zip(rho_min.items(), places, strict=True):
            given[j] = check_number(f"The floor of `{name}`", value)
    else:
        given = float_array(rho_min, "rho_min", InvalidArgumentError)[0]
        # As numbers, True would ask for a floor of one.
        cells = np.asarray(to_host(rho_min), dtype=object).ravel().tolist()
        flags = any(isinstance(cell, bool | np.bool_) for cell in cells)
        require(not flags, "rho_min", "numbers, not truth values", rho_min)
        if given.shape not in ((), (p,)):
            raise InvalidArgumentError(
                f"rho_min must be one number or {p} of them, one per variable "
                f"({listing(names)}); got an array of shape {given.shape}."
            )
    floors = np.broadcast_to(given, p).copy()
    bad = np.flatnonzero(~((floors >= 0.0) & (floors <= 1.0)))
    if bad.size:
        shown = listing([f"`{names[j]}`: {float(floors[j])!r}" for j in bad.tolist()], quote="")
        if given.ndim == 0:
            shown = f"{float(floors[0])!r} for every variable"
        raise InvalidArgumentError(
            f"A fidelity floor is a correlation between 0 and 1; got {shown}."
        )
    return floors


def check_common_floors(rho_min: Any) -> Array:
    """Return floors of which each is common to all variables."""
    values = np.atleast_1d(np.asarray(rho_min, dtype=object))
    if values.ndim != 1 or not len(values):
        raise InvalidArgumentError(
            f"rho_min must be a list of common floors, got an array of shape {values.shape}."
        )
    return check_floors(values, [f"rho_min[{k}]" for k in range(len(values))])


def check_choice(name: str, value: Any, choices: Collection[str]) -> str:
    """Return ``value`` if it is one of ``choices``."""
    fits = isinstance(value, str) and value in choices
    require(fits, name, f"one of {', '.join(map(repr, choices))}", value)
    return str(value)  # a NumPy string would be refused by certificates and files


def require(fits: object, name: str, wanted: str, value: Any) -> None:
    """Raise an error about the argument ``name`` unless it fits; ``wanted`` says what would."""
    if not fits:
        raise InvalidArgumentError(f"{name} must be {wanted}; got {shown_value(value)}.")


def check_number(
    name: str,
    value: Any,
    wanted: str = "one number",
    fits: Callable[[float], bool] = lambda _: True,
) -> float:
    """Return a real number that ``fits``; ``wanted`` says which ones do.

    Text and truth values are refused.
    """
    number = None
    if not isinstance(value, bool | np.bool_) and isinstance(value, Real):
        with suppress(OverflowError):  # a whole number beyond 1.8e308
            number = float(value)
    require(number is not None and fits(number), name, wanted, value)
    return cast(float, number)


def check_positive(name: str, value: Any) -> float:
    """Return ``value`` as a finite float above zero."""
    return check_number(name, value, "a finite number above 0", lambda v: 0.0 < v < math.inf)


def check_budget(
    budget: Any, what: str = "The residual budget", least: float = 0.0, most: float = 1e100
) -> float:
    """Return a budget or limit; certificates hold no number above 1e100."""
    largest = f"{most:g}".replace("+", "")
    wanted = f"a finite number of at least {least:g} and at most {largest}"
    return check_number(what, budget, wanted, lambda v: least <= v <= most)


def is_whole(value: Any) -> bool:
    """Whether a value is a whole number of any type; truth values are not."""
    return isinstance(value, Integral) and not isinstance(value, bool)


def check_count(name: str, value: Any, *, minimum: int = 1, maximum: int | None = None) -> int:
    """Return ``value`` as an int of at least ``minimum`` and at most ``maximum``."""
    most = "" if maximum is None else f" and at most {maximum:,}"
    fits = is_whole(value) and value >= minimum and (maximum is None or value <= maximum)
    require(fits, name, f"a whole number of at least {minimum}{most}", value)
    return int(value)


def check_random_state(random_state: Any) -> None:
    """Raise an error unless this is a seed, a generator of NumPy, or None."""
    fits = isinstance(random_state, np.random.Generator | np.random.RandomState | None)
    fits = fits or (is_whole(random_state) and random_state >= 0)
    wanted = "a whole number of at least 0, a numpy.random.Generator or None"
    require(fits, "random_state", wanted, random_state)


def check_weights(sample_weight: Any, n: int) -> Array | None:
    """Return the weights of n rows as an array; None stays None."""
    if sample_weight is None:
        return None
    weights, _ = float_array(sample_weight, "sample_weight", InvalidTableError)
    if weights.shape != (n,):
        raise InvalidTableError(
            f"sample_weight must hold one number per row, shape ({n},); got shape {weights.shape}."
        )
    low, high = WEIGHT_RANGE
    bad = ~((weights == 0.0) | ((weights >= low) & (weights <= high)))
    if bad.any():
        raise InvalidTableError(
            f"sample_weight must be zero or between {low:g} and {high:g}; row "
            f"{int(np.argmax(bad))} has {weights[bad][0]:g}. Only ratios matter: bring them near 1."
        )
    return read_only(weights)


def check_complete(rows: NDArray[Any], names: Sequence[str], *, may_miss: bool = False) -> None:
    """Raise an error about columns with infinite or, unless ``may_miss``, missing values."""
    # the sum is not finite if any cell is not, and is cheaper than a mask of all cells
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(rows.sum(dtype=np.float64)):
            return
    problems = []
    kinds = (("missing values (NaN)", np.isnan), ("infinite values (inf)", np.isinf))
    for kind, mask in kinds[may_miss:]:
        bad = mask(rows)
        columns = [name for name, hit in zip(names, bad.any(axis=0), strict=True) if hit]
        if columns:
            first = int(np.flatnonzero(bad.any(axis=1))[0])
            problems.append(f"{kind} in {listing(columns)}, first in row {first}")
    if problems:
        raise InvalidTableError(
            f"The table has {'; '.join(problems)}. Drop these rows, or fill them (scikit-learn's "
            "SimpleImputer goes before this step in a pipeline)."
        )
