"""Floors raised, pass by pass, until their confidence bounds meet those asked for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from skcoral.results import Array
from skcoral.stability.resampling import Fitted, Resampler
from skcoral.stability.sampling_errors import HIGHEST, Errors, fidelity_on, fisher

PASSES, _MOST_PASSES = 4, 8  # usually, and where floors are still missed
_AIM = 1.02  # times the margin: what a floor is raised by, so that the next pass finds it enough
_LOOSE = 1.1  # times the margin: what it need not be raised by
_HALVINGS = 6


@dataclass(frozen=True, eq=False)
class Raised:
    """Floors, the fit at them, and its errors with the margin that they ask for."""

    floors: Array
    fit: Fitted
    errors: Errors
    margin: Array
    outputs: Array | None


def raise_floors(
    sample: Resampler,
    plain: Fitted,
    asked: Array,
    margin_of: Callable[[Errors, Any], Array],
    errors_of: Callable[[Fitted, Array], tuple[Errors, Array | None]],
    *,
    probing: bool,
) -> Raised:
    """Raise floors until their bounds meet those asked; probing ends at the first floor of one."""
    target, k, promised = fisher(asked), len(asked), (asked > 0.0) & (asked < 1.0)
    n = sample.dependence.n_effective
    # what normal rows need, to begin with
    margin = np.full(k, 2.5 * np.sqrt((1.0 + k / n) / n) + k / (2.0 * n))
    floors = np.where(promised, np.minimum(np.tanh(target + margin), HIGHEST), asked)
    fit = sample.fit(floors=floors, warm=plain.result)
    free, missed = promised, np.zeros(k)
    for done in range(1, _MOST_PASSES + 1):
        errors, outputs = errors_of(fit, floors)
        used, margin = margin, np.where(free, margin_of(errors, free), margin)
        met, tight = errors.fitted >= target + margin, used < _LOOSE * margin
        if met[free].all() and (tight[free].all() or done >= PASSES):
            break
        # a floor that holds for another matrix than the rows' own may be missed by the rows
        missed = np.maximum(fisher(floors) - errors.fitted, missed)
        floors = np.where(free, np.tanh(target + _AIM * margin + missed), floors)
        # an unchanged variable keeps every promise
        floors[free & (floors > HIGHEST)] = 1.0
        free = free & (floors < 1.0)
        if probing and free.sum() < promised.sum():
            break
        fit = sample.fit(floors=floors, warm=fit.result)
        errors = replace(errors, fitted=fisher(fidelity_on(fit, sample)))
        if not free.any():
            break
    return Raised(floors, fit, errors, margin, outputs)


def largest(holds: Callable[[float], Any], top: float) -> float:
    """The largest value below ``top`` that was seen to hold, by halving; 0 where none was."""
    low, high = 0.0, top
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low
