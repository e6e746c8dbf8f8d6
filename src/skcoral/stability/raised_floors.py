"""Floors raised, pass by pass, until their confidence bounds meet those asked for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from skcoral.core.arrays import Array
from skcoral.stability.resampling import Fitted, Resampler
from skcoral.stability.sampling_errors import HIGHEST, Errors, fidelity_on, fisher

PASSES, _MOST_PASSES = 4, 8  # usually, and where floors are still missed
_AIM = 1.02  # times the margin: what a floor is raised by, so that the next pass finds it enough
_LOOSE = 1.1  # times the margin: raised by more, a floor costs residual for nothing
_HALVINGS = 6  # the two decimals that are shown of the largest value


@dataclass(frozen=True, eq=False)
class Raised:
    """Floors, the fit at them, and its errors with the margin that they ask for."""

    floors: Array
    fit: Fitted
    errors: Errors
    margin: Array
    outputs: Array | None


class FloorRaiser:
    """Raises the floors of one table.

    ``errors`` gives the errors of a fit at some floors, and the outputs of rows left out; a
    ``plain`` fit is one at the floors asked for.
    """

    def __init__(
        self,
        sample: Resampler,
        plain: Fitted,
        errors: Callable[[Fitted, Array], tuple[Errors, Array | None]],
        *,
        simultaneous: bool,
    ) -> None:
        self.sample, self.plain, self.errors = sample, plain, errors
        self.simultaneous = simultaneous

    def raised(self, asked: Array, level: float, *, probing: bool = False) -> Raised:
        """Raise floors until their bounds meet those asked; probing ends at a first floor of 1."""
        target, k, promised = fisher(asked), len(asked), (asked > 0.0) & (asked < 1.0)
        n = self.sample.dependence.n_effective
        # what normal rows need, to begin with
        margin = np.full(k, 2.5 * np.sqrt((1.0 + k / n) / n) + k / (2.0 * n))
        floors = np.where(promised, np.minimum(np.tanh(target + margin), HIGHEST), asked)
        fit = self.sample.fit(floors=floors, warm=self.plain.result)
        free, missed = promised, np.zeros(k)
        for done in range(1, _MOST_PASSES + 1):
            errors, outputs = self.errors(fit, floors)
            used = margin
            margin = np.where(free, errors.margin(level, free, self.simultaneous), margin)
            met, tight = errors.fitted >= target + margin, used < _LOOSE * margin
            if met[free].all() and (tight[free].all() or done >= PASSES):
                break
            # a floor that holds for another matrix than the rows' own may be missed by the rows
            missed = np.maximum(fisher(floors) - errors.fitted, missed)
            floors = np.where(free, np.tanh(target + _AIM * margin + missed), floors)
            # an unchanged variable meets every floor
            floors[free & (floors > HIGHEST)] = 1.0
            free = free & (floors < 1.0)
            if probing and free.sum() < promised.sum():
                break
            fit = self.sample.fit(floors=floors, warm=fit.result)
            errors = replace(errors, fitted=fisher(fidelity_on(fit, self.sample)))
            if not free.any():
                break
        return Raised(floors, fit, errors, margin, outputs)

    def largest(self, question: Callable[[float], tuple[Array, float]], top: float) -> float:
        """The largest value below ``top`` seen to need no floor of one, by halving; 0 for none.

        ``question`` turns a value into floors and a confidence.
        """
        low, high = 0.0, top
        for _ in range(_HALVINGS):
            middle = 0.5 * (low + high)
            asked, level = question(middle)
            promised = (asked > 0.0) & (asked < 1.0)
            below = (self.raised(asked, level, probing=True).floors[promised] < 1.0).all()
            low, high = (middle, high) if below else (low, middle)
        return low
