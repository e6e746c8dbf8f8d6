"""What solving a problem takes: its steps, and the matrices that are multiplied and factorised.

A step of a search that is left out, or taken the wrong way, often costs no more than time: the
answer is certified as before. The same matrix gives the same bits, so that work is counted exactly
where seconds are noise. The limits in the tests are budgets, about a fifth above what is needed: a
change that needs more work has to say so, by raising them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any
from unittest import mock

import numpy as np
import scipy.linalg as sla

import problems

FAMILIES = problems.REGULAR
_COUNTED = (
    *((np, name) for name in ("matmul", "einsum")),
    *((np.linalg, name) for name in ("eigh", "cholesky", "inv", "svd", "lstsq")),
    *((sla, name) for name in ("svd", "cho_factor", "cho_solve", "lstsq", "solve_triangular")),
    *((sla.lapack, name) for name in ("dsyevd", "dgejsv", "dpotrf", "dpotrs", "dtrtri", "dtrtrs")),
    (sla.blas, "dsyrk"),
)


@contextmanager
def counted() -> Iterator[list[int]]:
    """Counts matrices in calls of NumPy and LAPACK, each of a stack, and sums of products."""
    matrices = [0]

    def counting(original: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            stack = getattr(args[0], "shape", ())[:-2]
            matrices[0] += int(np.prod(stack, dtype=int))
            return original(*args, **kwargs)

        return call

    with ExitStack() as patches:
        for module, name in _COUNTED:
            patches.enter_context(mock.patch.object(module, name, counting(getattr(module, name))))
        yield matrices


@dataclass(frozen=True)
class Needed:
    """What a problem takes, and what is left open of it."""

    steps: int
    matrices: int
    gap: float


def needed(ask: Callable[[], Any]) -> Needed:
    """Solve a problem and count."""
    with counted() as matrices:
        result = ask()
    above = getattr(getattr(result, "goal", None), "rho_upper", None)
    gap = result.gap if above is None else above - result.rho_min.min()
    size = np.maximum(1.0, getattr(result, "objective", 1.0))
    return Needed(getattr(result, "n_iter", 0), matrices[0], float(np.max(gap / size)))


def assert_within(
    ask: Callable[[], Any], *, matrices: int, gap: float, steps: float = np.inf, what: str = ""
) -> None:
    """Assert that a problem takes no more than these."""
    needs = needed(ask)
    assert needs.steps <= steps, f"{what}: {needs}"
    assert needs.matrices <= matrices, f"{what}: {needs}"
    assert needs.gap <= gap, f"{what}: {needs}"


def assert_families_within(
    asked: Callable[[Any], Callable[[], Any]], p: int, gap: float, limits: list[int]
) -> None:
    """Assert it of a member of each of the families, with so many matrices."""
    for family, limit in zip(FAMILIES, limits, strict=True):
        assert_within(asked(matrix(family, p)), matrices=limit, gap=gap, what=family.__name__)


def matrix(family: Any, p: int, seed: int = 0) -> Any:
    """A member of a family of correlation matrices."""
    return family(np.random.default_rng([p, seed]), p)


def few_rows(n: int, p: int) -> Any:
    """Correlations of fewer rows than variables."""
    return np.corrcoef(np.random.default_rng([n, p]).normal(size=(n, p)).T)


def sums(p: int, k: int) -> Any:
    """The last k variables are sums of three others each."""
    rng = np.random.default_rng([p, k])
    X = rng.normal(size=(5 * p, p - k)) @ (np.eye(p - k) + 0.3 * rng.normal(size=(p - k, p - k)))
    totals = [X[:, rng.choice(p - k, 3, replace=False)].sum(axis=1) for _ in range(k)]
    return np.corrcoef(np.column_stack([X, *totals]).T)
