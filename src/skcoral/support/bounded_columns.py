"""One column with bounds on its coefficients: whether there is one, and which is nearest.

A column is feasible if it lies in the convex set C = {bounds, fidelity at least the floor} and has
unit variance. C is connected, so a feasible column exists exactly when C holds points with a
variance of at most one and of at least one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from typing import Any

import numpy as np
import scipy.optimize as so

from skcoral._requirements import listing
from skcoral.exceptions import InfeasibleError
from skcoral.results import Array
from skcoral.support.pattern import Mask

_CORNERS = 14
_FAR = 1e6


def feasible_column(
    R: Array,
    j: int,
    allowed: Mask,
    lower: Array,
    upper: Array,
    floor: float,
    names: Sequence[str],
) -> Array:
    """A column of unit variance within its bounds and above its floor, or the proof of none.

    Raises
    ------
    InfeasibleError
        Quotes the largest fidelity or the range of variances that the bounds allow.
    """
    index = np.flatnonzero(allowed)
    told = listing([names[int(i)] for i in index], 6, quote="'")
    form, pull = R[np.ix_(index, index)], R[index, j]
    low, high = lower[index], upper[index]
    inner = _least_variance(form, pull, low, high, floor)
    if inner is None or inner @ form @ inner > 1.0 + 1e-9:
        reach = _largest_fidelity(form, pull, low, high)
        if reach is None:
            least = _least_variance(form, pull, low, high, -np.inf)
            variance = np.inf if least is None else float(least @ form @ least)
            raise InfeasibleError(
                f"the bounds of output {names[j]!r} force a variance of at least {variance:.6g}, "
                f"but every output has variance 1; relax the bounds of {told}."
            )
        raise InfeasibleError(
            f"within its bounds, output {names[j]!r} cannot have a fidelity above {reach:.6g}, but "
            f"{floor:.6g} is asked for; lower its floor or relax the bounds of "
            f"{told}."
        )
    outer = _large_variance(form, pull, low, high, floor, inner)
    if outer is None:
        largest = _variance_limit(form, low, high)
        advice = f"widen the bounds of {told}."
        if largest < 1.0:
            raise InfeasibleError(
                f"within its bounds, output {names[j]!r} has a variance of at most {largest:.6g}, "
                f"but every output has variance 1; {advice}"
            )
        raise InfeasibleError(
            f"no column of variance 1 and fidelity of at least {floor:.6g} was found within the "
            f"bounds of output {names[j]!r}; {advice}"
        )
    out = np.zeros(len(R))
    out[index] = _unit_between(form, inner, outer)
    return out


def nearest_column(
    R: Array, j: int, allowed: Mask, lower: Array, upper: Array, floor: float, target: Array
) -> Array | None:
    """The feasible column nearest to ``target``, with its bounds and its floor kept exactly."""
    index = np.flatnonzero(allowed)
    form, pull = R[np.ix_(index, index)], R[index, j]
    low, high = lower[index], upper[index]
    goal = np.clip(target[index], low, high)
    for margin in (1e-15, 1e-13, 1e-11, 1e-9):
        t = _settle(form, pull, low, high, floor + margin, goal)
        # The fidelity may be summed in another order elsewhere: leave room for a rounding.
        if t is not None and pull @ t >= floor + min(margin, 5e-16):
            out = np.zeros(len(R))
            out[index] = t
            return out
    return None


def _settle(
    form: Array, pull: Array, low: Array, high: Array, floor: float, goal: Array
) -> Array | None:
    """Project onto the feasible set, then scale what is strictly inside to unit variance."""
    t = goal
    if abs(t @ form @ t - 1.0) > 1e-13 or pull @ t < floor:
        solved = so.minimize(
            lambda x: (0.5 * float((x - goal) @ (x - goal)), x - goal),
            goal,
            jac=True,
            method="SLSQP",
            bounds=np.column_stack((low, high)),
            constraints=[
                {
                    "type": "eq",
                    "fun": lambda x: x @ form @ x - 1.0,
                    "jac": lambda x: 2.0 * form @ x,
                },
                {"type": "ineq", "fun": lambda x: pull @ x - floor, "jac": lambda _: pull},
            ],
            options={"maxiter": 100, "ftol": 1e-16},
        )
        t = np.clip(solved.x, low, high)
    inside = (t > low) & (t < high)
    moving, still = np.where(inside, t, 0.0), np.where(inside, 0.0, t)
    a, b, c = moving @ form @ moving, moving @ form @ still, still @ form @ still - 1.0
    root = b * b - a * c
    if a <= 0 or root < 0:
        return t if abs(t @ form @ t - 1.0) < 1e-12 else None
    scale = (-b + np.sqrt(root)) / a
    t = still + scale * moving
    good = np.all((t >= low) & (t <= high)) and abs(t @ form @ t - 1.0) < 1e-12
    return t if good else None


def _least_variance(
    form: Array, pull: Array, low: Array, high: Array, floor: float
) -> Array | None:
    """The point of C with the least variance; None if C is empty."""
    start = np.clip(np.zeros(len(form)), low, high)
    if floor > -np.inf and not _reaches(pull, low, high, floor):
        return None
    constraints = []
    if floor > -np.inf:
        constraints.append(
            {"type": "ineq", "fun": lambda x: pull @ x - floor, "jac": lambda _: pull}
        )
    return _convex(lambda x: (float(x @ form @ x), 2.0 * form @ x), start, low, high, constraints)


def _largest_fidelity(form: Array, pull: Array, low: Array, high: Array) -> float | None:
    """Largest fidelity with a variance of at most one; None if the variance is always above one."""
    least = _least_variance(form, pull, low, high, -np.inf)
    if least is None or least @ form @ least > 1.0 + 1e-9:
        return None
    best = _convex(
        lambda x: (-float(pull @ x), -pull),
        least,
        low,
        high,
        [{"type": "ineq", "fun": lambda x: 1.0 - x @ form @ x, "jac": lambda x: -2.0 * form @ x}],
    )
    return None if best is None else float(pull @ best)


def _convex(
    function: Callable[[Array], tuple[float, Array]],
    start: Array,
    low: Array,
    high: Array,
    constraints: list[dict[str, Any]],
) -> Array | None:
    """Minimise over the coefficients that can move; the others are where their bounds put them."""
    free = low < high
    if not free.any():
        met = all(constraint["fun"](low) >= -1e-12 for constraint in constraints)
        return low.copy() if met else None

    def whole(x: Array) -> Array:
        out = np.where(free, 0.0, low)
        out[free] = x
        return out

    def reduced(x: Array) -> tuple[float, Array]:
        value, gradient = function(whole(x))
        return value, gradient[free]

    solved = so.minimize(
        reduced,
        start[free],
        jac=True,
        method="SLSQP",
        bounds=np.column_stack((low[free], high[free])),
        constraints=[
            {
                "type": c["type"],
                "fun": lambda x, c=c: c["fun"](whole(x)),
                "jac": lambda x, c=c: c["jac"](whole(x))[free],
            }
            for c in constraints
        ],
        options={"maxiter": 500, "ftol": 1e-14},
    )
    if solved.status not in (0, 8):
        return None
    return np.asarray(np.clip(whole(solved.x), low, high))


def _reaches(pull: Array, low: Array, high: Array, floor: float) -> bool:
    """Whether some point within the bounds has at least this covariance with the source."""
    with np.errstate(invalid="ignore"):
        largest = np.where(pull == 0, 0.0, np.maximum(pull * low, pull * high))
    return bool(largest.sum() >= floor)


def _large_variance(
    form: Array, pull: Array, low: Array, high: Array, floor: float, inner: Array
) -> Array | None:
    """A point of C with a variance of at least one, if one can be found."""
    # Towards the corner of largest fidelity nothing is lost; a far point stands for infinity.
    near, far = np.maximum(low, -_FAR), np.minimum(high, _FAR)
    corner = np.where(pull >= 0, far, near)
    if corner @ form @ corner >= 1.0:
        return corner
    k = len(form)
    corners: list[Array] = []
    if k <= _CORNERS:
        corners = [np.where(bits, far, near) for bits in product((False, True), repeat=k)]
    else:
        for seed in (near, far, corner):
            point = seed.copy()
            for _ in range(3):
                for i in range(k):
                    options = []
                    for value in (near[i], far[i]):
                        trial = point.copy()
                        trial[i] = value
                        options.append(trial)
                    point = max(options, key=lambda x: float(x @ form @ x))
            corners.append(point)
    for point in corners:
        share = 1.0
        if pull @ point < floor:
            gain = float(pull @ (inner - point))
            share = 0.0 if gain <= 0 else 1.0 - (floor - float(pull @ point)) / gain
        trial = inner + share * (point - inner)
        if trial @ form @ trial >= 1.0 and pull @ trial >= floor - 1e-12:
            return trial
    return None


def _variance_limit(form: Array, low: Array, high: Array) -> float:
    """An upper bound on the variance within the bounds, exact for few coefficients."""
    size = np.maximum(np.abs(low), np.abs(high))
    if not np.isfinite(size).all():
        return np.inf
    if len(form) <= _CORNERS:
        corners = np.array(
            [np.where(bits, high, low) for bits in product((False, True), repeat=len(form))]
        )
        return float(np.einsum("ci,ij,cj->c", corners, form, corners).max())
    return float(size @ np.abs(form) @ size)


def _unit_between(form: Array, inner: Array, outer: Array) -> Array:
    """The point of unit variance on the segment between a small and a large one."""
    d = outer - inner
    a, b, c = d @ form @ d, inner @ form @ d, inner @ form @ inner - 1.0
    if a == 0:
        return inner
    share = (-b + np.sqrt(max(float(b * b - a * c), 0.0))) / a
    return np.asarray(inner + min(max(share, 0.0), 1.0) * d)
