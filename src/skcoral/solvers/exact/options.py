"""What every solver of the dense problem is told besides the matrix and the floors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from skcoral.core.arrays import Array
from skcoral.core.results import Criterion
from skcoral.solvers.exact.newton import Callback
from skcoral.solvers.exact.threshold import ExactThreshold, exact_threshold


class KeptThreshold:
    """ρ★ of one matrix: solved when first asked for, and again only for more accuracy.

    The search begins at the weights of a matrix that is ``near``, if there is one.
    """

    def __init__(self, R: Any) -> None:
        self._R = R
        self.near: Array | None = None
        self._found: ExactThreshold | None = None
        self._tol, self._max_iter = np.inf, 0

    def solve(
        self, *, tol: float = 1e-10, max_iter: int = 100, callback: Callback | None = None
    ) -> ExactThreshold:
        """As :func:`exact_threshold`; the callback is not called where ρ★ is known."""
        tried = tol >= self._tol and max_iter <= self._max_iter
        if self._found is None or not (tried or self._found.gap <= tol):
            self._found = exact_threshold(
                self._R, tol=tol, max_iter=max_iter, callback=callback, near=self.near
            )
            self._tol, self._max_iter = tol, max_iter
        return self._found


@dataclass(frozen=True)
class Options:
    """Names of the variables, and the arguments of :func:`skcoral.decorrelate` of these names.

    ``threshold`` is where ρ★ of the matrix is kept, if anywhere.
    """

    names: tuple[str, ...]
    criterion: Criterion = "squared"
    pair_weights: Array | None = None
    tol: float = 1e-9
    max_iter: int = 200
    callback: Callback | None = None
    threshold: KeptThreshold | None = None

    def kept_threshold(self, R: Any) -> KeptThreshold:
        """Where ρ★ of ``R`` is kept from now on."""
        return self.threshold or KeptThreshold(R)
