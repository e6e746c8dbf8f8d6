"""The paper's five systems and the problems it poses on them, each solved once when asked for."""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from skcoral._arrays import Array
from skcoral._validation import check_count
from skcoral.api import decorrelate, maximize_fidelity, threshold
from skcoral.baselines import Baseline, normal_rows, pca, sparse_pca
from skcoral.datasets import load_wine, make_system, wdi_correlation
from skcoral.exact.bounds import SubsetBound, subset_bound
from skcoral.paper.protocol import protocol_from
from skcoral.results import Decorrelation, Threshold

Value = TypeVar("Value")

#: Correlations above this allow a coefficient in the paper's support restriction.
SUPPORT_CUT = 0.15
#: The floors of the paper's timed frontier.
TIMED_FLOORS = (0.50, 0.70, 0.85, 0.95, 0.99)


class Study:
    """Solve the paper's problems on demand and remember the answers.

    Parameters
    ----------
    n_starts : int, default=100
        Starts of the support-restricted problems, which are not convex.
    random_state : int, default=0
        Seed of these starts.
    """

    def __init__(self, *, n_starts: int = 100, random_state: int = 0) -> None:
        self._n_starts = check_count("n_starts", n_starts)
        self._random_state = check_count("random_state", random_state, minimum=0)
        self._known: dict[tuple[Any, ...], Any] = {}

    def _once(self, key: tuple[Any, ...], make: Callable[[], Value]) -> Value:
        if key not in self._known:
            self._known[key] = make()
        value: Value = self._known[key]
        return value

    def system(self, name: str) -> tuple[Array, tuple[str, ...], int | None]:
        """Return matrix, names and number of rows (None: simulated) of ``"p6"`` to ``"wine"``."""

        def make() -> tuple[Array, tuple[str, ...], int | None]:
            if name == "wine":
                wine = load_wine()
                return wine.correlation, wine.names, len(wine.data)
            if name == "wdi":
                wdi = wdi_correlation()
                return wdi.correlation, wdi.names, wdi.n_rows
            p = int(name.removeprefix("p"))
            return make_system(p), tuple(f"x{j}" for j in range(p)), None

        return self._once(("system", name), make)

    def matrix(self, name: str) -> Array:
        """Return the correlation matrix of a system."""
        return self.system(name)[0]

    def threshold(self, name: str) -> Threshold:
        """Return ρ★ of a system."""
        return self._once(("threshold", name), lambda: threshold(self.matrix(name)))

    def subset(self, name: str) -> SubsetBound:
        """Return the strongest of the paper's subset bounds, all subsets tried."""
        return self._once(("subset", name), lambda: subset_bound(self.matrix(name)))

    def pca(self, name: str, assignment: str) -> Baseline:
        """Return PCA under the assignment that favours it most."""
        return self._once(
            ("pca", name, assignment), lambda: pca(self.matrix(name), assignment=assignment)
        )

    def solution(self, name: str, rho_min: float) -> Decorrelation:
        """Return the optimum at a common floor."""
        return self._once(
            ("solution", name, rho_min), lambda: decorrelate(self.matrix(name), rho_min)
        )

    def protocol_end(self, name: str, rho_min: float) -> Array:
        """Return where the paper's own method ends in the neighbourhood of the optimum."""
        return self._once(
            ("end", name, rho_min),
            lambda: protocol_from(self.matrix(name), rho_min, self.solution(name, rho_min).T),
        )

    def budget(self, name: str, budget: float) -> Decorrelation:
        """Return the largest common fidelity within a squared-correlation budget."""
        return self._once(
            ("budget", name, budget), lambda: maximize_fidelity(self.matrix(name), budget)
        )

    def support(self, name: str) -> NDArray[np.bool_]:
        """Return which coefficients the paper's support restriction allows."""
        R = self.matrix(name)
        return (np.abs(R) > SUPPORT_CUT) | np.eye(len(R), dtype=bool)

    def supported(
        self, name: str, rho_min: float | None, criterion: str = "squared"
    ) -> Decorrelation:
        """Return the best supported transformation at a common floor; None: no floor."""
        return self._once(
            ("supported", name, rho_min, criterion),
            lambda: decorrelate(
                self.matrix(name),
                0.0 if rho_min is None else rho_min,
                criterion=criterion,
                support=self.support(name),
                n_starts=self._n_starts,
                random_state=self._random_state,
            ),
        )

    def sparse_pca(self, name: str, alpha: float) -> Baseline:
        """Return sparse PCA on the paper's own sample."""
        return self._once(
            ("sparse", name, alpha),
            lambda: sparse_pca(
                self.matrix(name), alpha=alpha, rows=normal_rows(self.matrix(name)), method="lars"
            ),
        )

    def frontier_seconds(self, name: str) -> float:
        """Return how long the optima at the paper's five floors take, one after the other."""
        R = self.matrix(name)
        return _seconds(lambda: [decorrelate(R, rho) for rho in TIMED_FLOORS])

    def threshold_seconds(self, name: str) -> float:
        """Return how long ρ★ takes."""
        R = self.matrix(name)
        return _seconds(lambda: threshold(R))


def _seconds(work: Callable[[], object]) -> float:
    start = perf_counter()
    work()
    return perf_counter() - start
