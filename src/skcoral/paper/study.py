"""The paper's five systems, and the answers to its problems, each computed once."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from skcoral.api import decorrelate
from skcoral.core.arrays import Array
from skcoral.core.results import Decorrelation
from skcoral.datasets import load_wine, make_system, wdi_correlation

#: Correlations above this allow a coefficient in the paper's support restriction.
SUPPORT_CUT = 0.15
#: How problems with a support, which are not convex, are started. Two hundred starts miss the
#: best optimum known at a floor of 0.5.
STARTS: dict[str, Any] = {"n_starts": 300, "random_state": 0}


class System(NamedTuple):
    """A correlation matrix with the names of its variables, and its rows (0: simulated)."""

    R: Array
    names: tuple[str, ...]
    n_rows: int


@cache
def system_of(name: str) -> System:
    """Return one of the systems ``"p6"`` to ``"wine"``."""
    if name == "wine":
        wine = load_wine()
        return System(wine.correlation, wine.names, len(wine.data))
    if name == "wdi":
        wdi = wdi_correlation()
        return System(wdi.correlation, wdi.names, wdi.n_rows)
    p = int(name.removeprefix("p"))
    return System(make_system(p), tuple(f"x{j}" for j in range(p)), 0)


def matrix(system: str) -> Array:
    """Return the correlation matrix of a system."""
    return system_of(system).R


@cache
def solved(solve: Callable[..., Any], system: str, *args: object) -> Any:
    """Return ``solve(R, *args)`` for the matrix of a system, computed the first time only.

    Examples
    --------
    >>> from skcoral import threshold
    >>> round(solved(threshold, "wine").value, 4)
    0.8262
    """
    return solve(matrix(system), *args)


def support(system: str) -> NDArray[np.bool_]:
    """Return which coefficients the paper's support restriction allows."""
    return np.asarray(np.abs(matrix(system)) > SUPPORT_CUT)


@cache
def supported(system: str, rho_min: float = 0.0, criterion: str = "squared") -> Decorrelation:
    """Return the best supported transformation at a common floor."""
    return decorrelate(
        matrix(system), rho_min, criterion=criterion, support=support(system), **STARTS
    )
