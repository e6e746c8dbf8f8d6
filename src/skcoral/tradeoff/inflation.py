"""The highest floor on the curve at which no variance inflation factor exceeds a limit.

The largest VIF of the outputs is none of the convex criteria, so the floor is looked for on the
curve of least squared residuals: each point is certified for its floor, while a transformation off
the curve may keep more within the same limit.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.optimize import brentq

from skcoral.exact import solve_exact
from skcoral.measured import vif_or_infinite
from skcoral.results import Decorrelation
from skcoral.tradeoff.outcome import as_result
from skcoral.tradeoff.path import Node, Path

Callback = Callable[[int, float, float], object]
_NONE = 1e-9  # a VIF above one by less is that of uncorrelated outputs


def solve_vif(
    R: Any,
    limit: float,
    *,
    names: Sequence[str],
    tol: float = 1e-9,
    max_iter: int = 200,
    callback: Callback | None = None,
) -> Decorrelation:
    """Find the highest common floor on the curve whose largest VIF is at most ``limit``.

    Parameters
    ----------
    R : ndarray of shape (p, p)
        Correlation matrix, positive definite.
    limit : float
        Largest acceptable VIF, at least one.
    names : sequence of str
        The variables.
    tol, max_iter
        As in :func:`solve_tradeoff`.
    callback : callable, optional
        Called as ``callback(point, objective, lower_bound)`` after each floor tried.

    Returns
    -------
    Decorrelation
        Its status is about the residual at the floor in ``rho_min``; ``details["max_vif"]`` holds
        the limit and ``details["largest_vif"]`` what was reached.

    Examples
    --------
    >>> import numpy as np
    >>> from skcoral.tradeoff import solve_vif
    >>> answer = solve_vif(np.array([[1.0, 0.8], [0.8, 1.0]]), 1.25, names=["a", "b"])
    >>> round(answer.details["largest_vif"], 6), round(abs(float(answer.correlation[0, 1])), 6)
    (1.25, 0.447214)
    """
    if limit <= 1.0 + _NONE:
        exact = solve_exact(R, None, names=tuple(names), criterion="squared", tol=tol)
        if isinstance(exact, Decorrelation):
            return _limited(exact, limit)
    path = Path(R, criterion="squared", pair_weights=None, tol=tol, max_iter=max_iter)
    visited: dict[float, tuple[Node, float]] = {}

    def excess(rho: float) -> float:
        if rho not in visited:
            node = path.solve(rho)
            visited[rho] = node, float(vif_or_infinite(node.solved.G).max()) - limit
            if callback is not None:
                callback(len(visited), node.solved.objective, node.solved.lower_bound)
        return visited[rho][1]

    if excess(1.0) > 0.0 and excess(path.edge) < 0.0:
        crossing, step = brentq(excess, path.edge, 1.0, xtol=1e-10), 1e-9
        while excess(crossing) > 0.0:
            crossing, step = max(crossing - step, path.edge), 4.0 * step
    floor = max((rho for rho in visited if excess(rho) <= 0.0), default=path.edge)
    result = as_result(
        visited[floor][0].solved,
        np.full(len(path.R), floor),
        names=names,
        criterion="squared",
        pair_weights=None,
        max_iter=max_iter,
        stacklevel=3,
    )
    return _limited(result, limit)


def _limited(result: Decorrelation, limit: float) -> Decorrelation:
    largest = float(vif_or_infinite(result.correlation).max())
    return replace(result, details={"max_vif": limit, "largest_vif": largest})
