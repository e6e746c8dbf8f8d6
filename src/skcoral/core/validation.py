"""Validation of all input: correlation matrices, floors, budgets, supports, anchors, weights.

Every function returns the checked value in the one form the solvers use, or raises an error that
says what was wanted, what came, and which variable is concerned.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skcoral.core.arrays import Array
from skcoral.core.deficiency import Deficiency, Relations, linear_relations
from skcoral.core.requirements import (
    check_finite,
    check_symmetric,
    check_unit_diagonal,
    deficiency_of,
    float_array,
    listing,
    real_number,
    regular_on_device,
    repeated,
    shown_value,
    square_matrix,
    worst_pair,
)
from skcoral.exceptions import (
    CoralError,
    InvalidAnchorError,
    InvalidArgumentError,
    InvalidBudgetError,
    InvalidCorrelationError,
    InvalidFloorError,
    InvalidSupportError,
)

SYMMETRY_TOL = 1e-8
# Eigenvalues up to this times the largest are rounding: those of a matrix that is singular in exact
# arithmetic come out at 1e-16 to 1e-13, and outputs that amplify a smaller one have no digits left.
SINGULAR_TOL = 1e-12


def check_names(names: Sequence[Any] | None, p: int) -> tuple[str, ...]:
    """Return ``p`` distinct names; ``None`` gives ``x0, x1, ...``."""
    if names is None:
        return tuple(f"x{j}" for j in range(p))
    out = tuple(str(name) for name in names)
    if len(out) != p:
        raise InvalidArgumentError(f"{p} variables need {p} names, got {len(out)}.")
    if len(set(out)) < p:
        raise InvalidArgumentError(
            f"Names must be distinct, but {listing(repeated(out))} occur more than once; "
            "rename them."
        )
    return out


def frame_names(R: Any) -> list[str] | None:
    """Names of the variables of a DataFrame, of whichever library; None for anything else."""
    columns = getattr(R, "columns", None)
    if columns is None:
        return None
    labels = [str(name) for name in columns]
    index = getattr(R, "index", None)
    if index is not None and hasattr(index, "tolist"):
        rows = [str(name) for name in index]
        positions = [str(k) for k in range(len(rows))]
        if rows not in (labels, positions):
            raise InvalidCorrelationError(
                "Rows and columns of R must have the same names in the same order; row names begin "
                f"{rows[:4]}, column names {labels[:4]}."
                + (" Try R = R.loc[R.columns]." if set(rows) == set(labels) else "")
            )
    return labels


def check_correlation(R: Any, names: Sequence[Any] | None = None) -> Array:
    """Return ``R`` as a symmetric float64 array, or say why it is not a correlation matrix.

    Asymmetry and diagonal errors at rounding level (relative 1e-8, or the rounding of a narrower
    input type) are averaged out and set to one; nothing else is altered.
    """
    out, found = check_semidefinite(R, names)
    if found is not None:
        raise found.error()
    return out


def check_semidefinite(
    R: Any,
    names: Sequence[Any] | None = None,
    *,
    scale: Any = None,
) -> tuple[Array, Deficiency | None]:
    """Return ``R`` as :func:`check_correlation` does, and what is dependent in it, if anything.

    With ``scale``, the standard deviations, linear relations are in the original units.
    """
    if names is None:
        regular = regular_on_device(R, SYMMETRY_TOL, SINGULAR_TOL)
        if regular is not None:
            return regular, None
    matrix, eps = square_matrix(R, "R", InvalidCorrelationError)
    p = matrix.shape[0]
    labels = check_names(frame_names(R) if names is None else names, p)
    check_finite(matrix, labels, "R", InvalidCorrelationError)
    rounding = max(SYMMETRY_TOL, 16 * eps)
    check_symmetric(matrix, labels, "R", InvalidCorrelationError, rounding)
    check_unit_diagonal(matrix, labels, rounding)

    out = 0.5 * (matrix + matrix.T)
    np.fill_diagonal(out, 1.0)
    excess = np.abs(out)
    if excess.max() > 1.0 + rounding:
        i, j = worst_pair(excess)
        raise InvalidCorrelationError(
            f"Correlations lie in [-1, 1], but that of `{labels[i]}` and `{labels[j]}` is "
            f"{out[i, j]:.12g}."
        )
    return out, deficiency_of(out, labels, scale, max(SINGULAR_TOL, p * eps))


def check_floors(rho_min: Any, p: int, names: Sequence[str]) -> Array:
    """Return one fidelity floor per variable, each in [0, 1].

    From one number for all, one per variable, or some by name; the others have none, that is 0.
    """
    if isinstance(rho_min, Mapping):
        position = {name: j for j, name in enumerate(names)}
        unknown = [str(name) for name in rho_min if str(name) not in position]
        if unknown:
            are = "is" if len(unknown) == 1 else "are"
            raise InvalidFloorError(
                f"Floors were given for {listing(unknown)}, which {are} not among the variables "
                f"{listing(names)}."
            )
        floors = np.zeros(p)
        for name, value in rho_min.items():
            floors[position[str(name)]] = real_number(
                value, f"The floor of `{name}`", InvalidFloorError
            )
    else:
        floors = float_array(rho_min, "rho_min", InvalidFloorError)[0]
        if np.asarray(rho_min).dtype == np.bool_:
            raise InvalidFloorError(
                "rho_min must be correlations between 0 and 1, got True and False; write 1.0 for a "
                "variable to keep as it is and 0.0 for one without a floor."
            )
        if floors.ndim == 0:
            if not 0.0 <= floors <= 1.0:
                raise InvalidFloorError(
                    f"A fidelity floor is a correlation between 0 and 1; got {float(floors)!r} for "
                    "every variable."
                )
            floors = np.full(p, float(floors))
        elif floors.shape != (p,):
            raise InvalidFloorError(
                f"rho_min must be one number or {p} of them, one per variable "
                f"({listing(names)}); got an array of shape {floors.shape}."
            )
        else:
            floors = floors.copy()
    bad = np.flatnonzero(~((floors >= 0.0) & (floors <= 1.0)))
    if bad.size:
        shown = listing([f"`{names[j]}`: {float(floors[j])!r}" for j in bad.tolist()], quote="")
        raise InvalidFloorError(f"A fidelity floor is a correlation between 0 and 1; got {shown}.")
    return floors


def check_budget(
    budget: Any, what: str = "The residual budget", least: float = 0.0, most: float = 1e100
) -> float:
    """Return a limit on what may remain; certificates hold no number above 1e100."""
    largest = f"{most:g}".replace("+", "")
    wanted = f"a finite number of at least {least:g} and at most {largest}"
    return check_number(what, budget, wanted, lambda v: least <= v <= most, InvalidBudgetError)


def check_support(
    support: Any, p: int, names: Sequence[str], outputs: Sequence[str] | None = None
) -> NDArray[np.bool_]:
    """Return the mask of free coefficients of ``T``; a variable always may enter its own output.

    ``support[i, j]`` tells whether source i may enter output j, as a truth value or 0 and 1.
    """
    mask, columns = np.asarray(support), names if outputs is None else outputs
    if mask.shape != (p, len(columns)):
        raise InvalidSupportError(
            f"The support must be a {p} by {len(columns)} mask (row: source, column: output), "
            f"got shape {mask.shape}."
        )
    if mask.dtype != np.bool_:
        known = np.isin(mask, (0, 1))
        if not known.all():
            i, j = np.argwhere(~known)[0]
            raise InvalidSupportError(
                "The support must contain only True and False (or 1 and 0); entry "
                f"(`{names[i]}`, `{columns[j]}`) is {mask[i, j]}. "
                "A rule such as abs(R) > 0.15 makes a mask."
            )
    out = mask.astype(np.bool_)
    if outputs is None:
        np.fill_diagonal(out, True)
    return out


def check_anchors(anchors: Any, p: int, names: Sequence[str]) -> Array:
    """Return the composites that outputs are anchored to: (p, k), of full column rank.

    Column j holds the coefficients of composite j on the standardised variables.
    """
    B = float_array(anchors, "anchors", InvalidAnchorError)[0]
    if B.ndim != 2 or B.shape[0] != p or not 1 <= B.shape[1] <= p:
        raise InvalidAnchorError(
            f"anchors must have {p} rows (one per variable) and 1 to {p} columns (one per "
            f"output), got shape {B.shape}."
        )
    bad = np.argwhere(~np.isfinite(B))
    if bad.size:
        i, j = bad[0]
        raise InvalidAnchorError(
            f"anchors must be finite; the coefficient of `{names[i]}` in composite {j} "
            f"is {B[i, j]}."
        )
    largest = np.abs(B).max(axis=0)
    if not largest.all():
        raise InvalidAnchorError(
            f"Composite {int(np.argmin(largest))} has no coefficient other than 0: there is "
            "nothing to anchor its output to."
        )
    units = B / largest
    unit = units / np.linalg.norm(units, axis=0)
    directions, size, _ = np.linalg.svd(unit.T, full_matrices=False)
    dependent = size < 1e-10 * size[0]
    if dependent.any():
        composites = [f"composite {j}" for j in range(B.shape[1])]
        found = Relations.of_null_directions(directions[:, dependent].T)
        relations = [str(relation) for relation in linear_relations(found, composites)]
        raise InvalidAnchorError(
            "anchors must be linearly independent, but (columns scaled to length one) "
            + "; ".join(relations)
            + "."
        )
    return B.copy()


def check_pair_weights(pair_weights: Any, p: int, names: Sequence[str]) -> Array:
    """Return the weights of the pairs: symmetric, finite, non-negative, with a zero diagonal.

    The diagonal of the input says nothing about pairs and is ignored.
    """
    W, eps = square_matrix(pair_weights, "pair_weights", InvalidArgumentError)
    if W.shape != (p, p):
        raise InvalidArgumentError(
            f"pair_weights must be {p} by {p}, one weight per pair of variables, "
            f"got shape {W.shape}."
        )
    W = W.copy()
    np.fill_diagonal(W, 0.0)
    check_finite(W, names, "pair_weights", InvalidArgumentError)
    tolerance = max(SYMMETRY_TOL, 16 * eps)
    check_symmetric(W, names, "pair_weights", InvalidArgumentError, tolerance)
    if W.min(initial=0.0) < 0.0:
        i, j = worst_pair(-W)
        raise InvalidArgumentError(
            f"pair_weights must not be negative; that of `{names[i]}` and `{names[j]}` "
            f"is {W[i, j]:.6g}."
        )
    largest = float(W.max(initial=0.0))
    if largest > 0.0 and not 1e-100 <= largest <= 1e100:
        raise InvalidArgumentError(
            f"pair_weights reach {largest:.3g}, where their squares leave the range of floating "
            "point; only their ratios matter, so divide them by their largest."
        )
    return np.asarray(0.5 * (W + W.T), dtype=np.float64)


def check_choice(name: str, value: Any, choices: Collection[str]) -> str:
    """Return ``value`` if it is one of ``choices``."""
    if not isinstance(value, str) or value not in choices:
        wanted = ", ".join(repr(choice) for choice in choices)
        raise InvalidArgumentError(f"{name} must be one of {wanted}; got {shown_value(value)}.")
    return str(value)  # a NumPy string would be refused by certificates and files


def check_number(
    name: str,
    value: Any,
    wanted: str,
    fits: Callable[[float], bool],
    error: type[CoralError] = InvalidArgumentError,
) -> float:
    """Return a real number that ``fits``; ``wanted`` says in words which ones do."""
    is_number = isinstance(value, Real) and not isinstance(value, bool | np.bool_)
    number = real_number(value, name, error) if is_number else math.nan
    if not fits(number):
        raise error(f"{name} must be {wanted}; got {shown_value(value)}.")
    return number


def check_positive(name: str, value: Any) -> float:
    """Return ``value`` as a finite float above zero."""
    return check_number(name, value, "a finite number above 0", lambda v: 0.0 < v < math.inf)


def check_callback(callback: Any) -> Any:
    """Return ``callback`` if it can be called, or None."""
    if callback is not None and not callable(callback):
        raise InvalidArgumentError(
            "callback must be a function of three arguments (iteration, objective, lower bound), "
            f"got {shown_value(callback)}."
        )
    return callback


def check_random_state(random_state: Any) -> Any:
    """Return ``random_state`` if it is a seed, a generator of NumPy's, or None."""
    whole = isinstance(random_state, Integral) and not isinstance(random_state, bool)
    generator = isinstance(random_state, np.random.Generator | np.random.RandomState)
    if random_state is None or generator or (whole and random_state >= 0):
        return random_state
    raise InvalidArgumentError(
        "random_state must be a whole number of at least 0, a numpy.random.Generator or None, "
        f"got {shown_value(random_state)}."
    )


def check_count(name: str, value: Any, *, minimum: int = 1, maximum: int | None = None) -> int:
    """Return ``value`` as an int of at least ``minimum`` and at most ``maximum``."""
    if isinstance(value, bool) or not isinstance(value, Integral) or value < minimum:
        raise InvalidArgumentError(
            f"{name} must be a whole number of at least {minimum}, got {shown_value(value)}."
        )
    if maximum is not None and int(value) > maximum:
        raise InvalidArgumentError(
            f"{name} must be a whole number of at most {maximum:,}, got {shown_value(value)}."
        )
    return int(value)


def check_jobs(n_jobs: Any) -> int | None:
    """Return a number of processes as joblib takes it: negative ones count from all."""
    if n_jobs is None:
        return None
    if isinstance(n_jobs, bool) or not isinstance(n_jobs, Integral) or n_jobs == 0:
        raise InvalidArgumentError(
            "n_jobs must be a number of processes, -1 for all processors, or None; got "
            f"{shown_value(n_jobs)}."
        )
    return int(n_jobs)


def check_neighbour(warm: Any, p: int) -> Any:
    """Return the answer to a neighbouring problem, which must be one of as many outputs."""
    outputs = getattr(warm, "names", None)
    if outputs is None or not hasattr(warm, "certificate"):
        raise InvalidArgumentError(
            "warm must be an answer of decorrelate or maximize_fidelity, got "
            f"{type(warm).__name__}."
        )
    if len(outputs) != p:
        raise InvalidArgumentError(
            f"warm must be an answer for the same {p} variables, got one with {len(outputs)} "
            "outputs."
        )
    return warm
