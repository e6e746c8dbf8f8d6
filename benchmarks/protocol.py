"""Compare the paper's protocol with this package: time, and starts that end in a worse optimum.

    python benchmarks/protocol.py [--starts 100]

Prints the rows of the table in ``docs/reproduction.md``; 100 starts take minutes. Needs the extra
``paper``. The protocol is an augmented Lagrangian over a manifold from independent random starts;
the best feasible end is kept.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from time import perf_counter

import numpy as np
from scipy.optimize import minimize as sequential_programming

from skcoral import decorrelate, threshold
from skcoral.paper import Study
from skcoral.paper.protocol import minimise, squared_residual, symmetric_root

Array = np.ndarray
VIOLATION = 1e-4  # of a floor, in the paper

#: Where a start ends: value, violation and determinant.
End = tuple[float, float, float]

#: System, floor (None: the threshold) and whether the support is restricted.
PROBLEMS = (
    ("wine", 0.85, False),
    ("wine", None, False),
    ("wdi", 0.85, False),
    ("wdi", None, False),
    ("p18", 0.99, False),
    ("p50", 0.99, False),
    ("p50", None, False),
    ("p18", 0.0, True),
    ("p18", 0.3, True),
    ("p18", 0.5, True),
    ("p18", 0.85, True),
)
HEADER = (
    "system", "problem", "protocol's best", "floor missed by", "ours", "proved gap",
    "starts that end worse", "mirrored", "median of those / ours", "protocol's time / ours",
)  # fmt: skip


@dataclass(frozen=True)
class ProtocolRun:
    """Where each random start of the paper's protocol ended.

    Attributes
    ----------
    problem : {"primal", "threshold"}
        What was solved: the residual D2 is minimised, the common fidelity maximised.
    values : ndarray of shape (n_starts,)
        D2, or the least fidelity, at the end of each start.
    violations : ndarray of shape (n_starts,)
        By how much the worst floor is missed there (zero for the threshold: its value counts it).
    determinants : ndarray of shape (n_starts,)
        +1 or -1, the orientation of the outputs at the end. For the threshold that is the component
        of the orthogonal group that the start is in and cannot leave. NaN under a support
        restriction.
    seconds : float
        For all starts together.
    """

    problem: str
    values: Array
    violations: Array
    determinants: Array
    seconds: float

    @property
    def feasible(self) -> Array:
        """Which starts ended within the paper's tolerance."""
        return self.violations <= VIOLATION

    @property
    def best(self) -> float:
        """The value that the protocol would report; NaN if no start ended feasible."""
        ends = self.values[self.feasible]
        if not ends.size:
            return float("nan")
        return float(ends.min() if self.problem == "primal" else ends.max())

    def worse(self, certified: float, *, rel: float = 0.01) -> Array:
        """Return which starts end with a worse value than ``certified`` by more than ``rel``."""
        if self.problem == "primal":
            return self.values > certified * (1 + rel)
        return self.values < certified * (1 - rel)

    def share_worse(self, certified: float, *, rel: float = 0.01) -> float:
        """Return the share of starts that end worse by more than ``rel``, or infeasible."""
        return float(np.mean(self.worse(certified, rel=rel) | ~self.feasible))


def run_protocol(
    R: Array,
    rho_min: float | None = None,
    *,
    support: Array | None = None,
    n_starts: int = 100,
    random_state: int = 0,
) -> ProtocolRun:
    """Solve one of the paper's problems as the paper does, from random starts.

    With ``rho_min``, D2 is minimised under this common floor on the oblique manifold; without it,
    the common fidelity is maximised over the orthogonal group. A ``support`` (allowed coefficients)
    takes sequential quadratic programming.
    """
    root = symmetric_root(R)

    def end(rng: np.random.Generator) -> End:
        if support is not None:
            return _supported_end(R, support, rho_min or 0.0, rng)
        return _threshold_end(root, rng) if rho_min is None else _primal_end(root, rho_min, rng)

    start = perf_counter()
    seeds = np.random.SeedSequence(random_state).spawn(n_starts)
    ends = np.array([end(np.random.default_rng(seed)) for seed in seeds])
    problem = "threshold" if rho_min is None and support is None else "primal"
    return ProtocolRun(problem, ends[:, 0], ends[:, 1], ends[:, 2], perf_counter() - start)


def _primal_end(root: Array, rho_min: float, rng: np.random.Generator) -> End:
    W = rng.normal(size=root.shape)
    W = minimise(root, W / np.linalg.norm(W, axis=0), rho_min)
    missed = rho_min - np.einsum("ij,ij->j", root, W).min()
    return squared_residual(W)[0], float(max(0.0, missed)), float(np.sign(np.linalg.det(W)))


def _threshold_end(root: Array, rng: np.random.Generator) -> End:
    Q, triangle = np.linalg.qr(rng.normal(size=root.shape))
    Q = Q * np.where(np.diag(triangle) < 0, -1.0, 1.0)
    lowest = np.einsum("ij,ij->j", root, Q).min(keepdims=True)
    Q, _ = minimise(root, [Q, lowest])
    return float(np.einsum("ij,ij->j", root, Q).min()), 0.0, float(np.sign(np.linalg.det(Q)))


def _supported_end(R: Array, mask: Array, rho_min: float, rng: np.random.Generator) -> End:
    """Minimise D2 over the allowed coefficients by sequential quadratic programming."""
    p = len(R)
    rows, columns = np.nonzero(mask)
    free = np.arange(rows.size)
    fidelity_rows = np.zeros((p, rows.size))
    fidelity_rows[columns, free] = R[columns, rows]

    def matrix(x: Array) -> Array:
        T = np.zeros((p, p))
        T[rows, columns] = x
        return T

    def objective(x: Array) -> tuple[float, Array]:
        T = matrix(x)
        RT = R @ T
        E = T.T @ RT
        np.fill_diagonal(E, 0.0)
        return float(np.sum(E * E)) / 2, (2 * RT @ E)[rows, columns]

    def variance(x: Array) -> Array:
        T = matrix(x)
        return np.einsum("ij,ij->j", T, R @ T) - 1.0

    def variance_jacobian(x: Array) -> Array:
        jacobian = np.zeros((p, rows.size))
        jacobian[columns, free] = 2 * (R @ matrix(x))[rows, columns]
        return jacobian

    T = matrix(rng.normal(size=rows.size))
    RT = R @ T
    T *= np.where(np.diag(RT) < 0, -1.0, 1.0) / np.sqrt(np.einsum("ij,ij->j", T, RT))
    kept = {"fun": lambda x: fidelity_rows @ x - rho_min, "jac": lambda x: fidelity_rows}
    end = sequential_programming(
        objective,
        T[rows, columns],
        jac=True,
        method="SLSQP",
        constraints=[
            {"type": "eq", "fun": variance, "jac": variance_jacobian},
            {"type": "ineq", **kept},
        ],
        options={"maxiter": 500, "ftol": 1e-10},
    )
    missed = max(0.0, rho_min - float((fidelity_rows @ end.x).min()))
    return float(end.fun), max(missed, float(np.abs(variance(end.x)).max())), np.nan


def compare(study: Study, system: str, rho_min: float | None, restricted: bool) -> list[str]:
    """One row: the protocol from all starts, and one solve of ours."""
    R = study.matrix(system)
    support = study.support(system) if restricted else None
    starts = {"n_starts": study.n_starts, "random_state": study.random_state}
    begun = perf_counter()
    if rho_min is None:
        bound = threshold(R)
        problem, ours, gap, T = "ρ★", bound.lower, bound.gap, bound.T
    else:
        found = decorrelate(R, rho_min, support=support, **starts)
        problem, ours, gap, T = f"D2 at {rho_min:g}", found.objective, found.gap, found.T
    seconds = perf_counter() - begun
    run = run_protocol(R, rho_min, support=support, **starts)
    worse = run.worse(ours)
    # R^{-1/2} has a positive determinant, so T and Q = R^{1/2}T have determinants of the same sign.
    mirrored = np.mean(run.determinants != np.sign(np.linalg.det(T)))
    return [
        f"{system}, support" if restricted else system,
        problem,
        f"{run.best:.6f}",
        f"{run.violations[np.abs(run.values - run.best).argmin()]:.1e}",
        f"{ours:.6f}",
        f"{gap:.0e}",
        f"{run.share_worse(ours):.0%}",
        "" if restricted else f"{mirrored:.0%}",
        f"{np.median(run.values[worse] / ours):.3g}" if worse.any() else "",
        f"{run.seconds / seconds:.0f}",
    ]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--starts", type=int, default=100)
    study = Study(n_starts=parser.parse_args().starts)
    print("| " + " | ".join(HEADER) + " |\n|" + "---|" * len(HEADER))
    for problem in PROBLEMS:
        print("| " + " | ".join(compare(study, *problem)) + " |", flush=True)
