"""The paper's five systems, and the answers to its problems, each computed once."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from skcoral.api import decorrelate
from skcoral.baselines import Baseline, sparse_pca
from skcoral.core.arrays import Array
from skcoral.core.results import Decorrelation
from skcoral.core.validation import check_count
from skcoral.datasets import load_wine, make_system, wdi_correlation
from skcoral.solvers.support import support_from_threshold

Answer = TypeVar("Answer")

#: Correlations above this allow a coefficient in the paper's support restriction.
SUPPORT_CUT = 0.15


class Study:
    """Solve the paper's problems on demand and remember the answers.

    Parameters
    ----------
    n_starts : int, default=100
        Starts of the support-restricted problems, which are not convex.
    random_state : int, default=0
        Seed of these starts.

    Examples
    --------
    >>> from skcoral import threshold
    >>> from skcoral.paper import Study
    >>> round(Study().solved(threshold, "wine").value, 4)
    0.8262
    """

    def __init__(self, *, n_starts: int = 100, random_state: int = 0) -> None:
        self.n_starts = check_count("n_starts", n_starts)
        self.random_state = check_count("random_state", random_state, minimum=0)
        self._known: dict[tuple[Any, ...], Any] = {}

    def solved(self, solve: Callable[..., Answer], system: str, *args: Any) -> Answer:
        """Return ``solve(R, *args)`` for the matrix of a system, computed the first time only."""
        return self._once((solve, system, *args), lambda: solve(self.matrix(system), *args))

    def _once(self, key: tuple[Any, ...], compute: Callable[[], Answer]) -> Answer:
        if key not in self._known:
            self._known[key] = compute()
        return cast(Answer, self._known[key])

    @staticmethod
    @cache
    def describe(system: str) -> tuple[Array, tuple[str, ...], int]:
        """Return matrix, names and number of rows (0: simulated) of ``"p6"`` to ``"wine"``."""
        if system == "wine":
            wine = load_wine()
            return wine.correlation, wine.names, len(wine.data)
        if system == "wdi":
            wdi = wdi_correlation()
            return wdi.correlation, wdi.names, wdi.n_rows
        p = int(system.removeprefix("p"))
        return make_system(p), tuple(f"x{j}" for j in range(p)), 0

    def matrix(self, system: str) -> Array:
        """Return the correlation matrix of a system."""
        return self.describe(system)[0]

    def support(self, system: str) -> NDArray[np.bool_]:
        """Return which coefficients the paper's support restriction allows."""
        return np.asarray(support_from_threshold(self.matrix(system), SUPPORT_CUT))

    def supported(
        self, system: str, rho_min: float = 0.0, criterion: str = "squared"
    ) -> Decorrelation:
        """Return the best supported transformation at a common floor."""
        return self._once(
            ("supported", system, rho_min, criterion),
            lambda: decorrelate(
                self.matrix(system),
                rho_min,
                criterion=criterion,
                support=self.support(system),
                n_starts=self.n_starts,
                random_state=self.random_state,
            ),
        )

    def sparse_pca(self, system: str, alpha: float) -> Baseline:
        """Return sparse PCA on the paper's own sample: it is random rows, not the matrix itself."""
        R = self.matrix(system)
        return self._once(
            ("sparse", system, alpha),
            lambda: sparse_pca(R, alpha=alpha),
        )
