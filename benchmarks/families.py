"""Work at p = 500 in eigendecompositions of R, over thirteen families of matrices.

    python benchmarks/families.py

One thread, processor time, everything in one run: `threshold`, and `decorrelate` from R to the
certified answer at floors 10, 50 and 90 % of the way from ρ★ to one. What comes after the solvers
(settling digits, describing the result) has a column of its own. Rewrites the table in
``benchmarks/README.md`` between its markers.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import scipy.linalg as sla
from threadpoolctl import threadpool_limits

from skcoral import api, decorrelate, threshold
from skcoral.core.problem import Problem
from skcoral.core.results import Decorrelation
from skcoral.core.solution import Solution

README = Path(__file__).with_name("README.md")
SIZE = 500


def correlation(covariance: np.ndarray) -> np.ndarray:
    scale = np.diag(covariance) ** -0.5
    R = covariance * np.outer(scale, scale)
    np.fill_diagonal(R, 1.0)
    return R


def families(p: int) -> dict[str, np.ndarray]:
    """Return matrices with and without structure."""
    rng = np.random.default_rng(1)
    loadings = rng.normal(0.0, 0.3, (p, 10))
    label = rng.integers(0, p // 25, p)
    lag = np.abs(np.subtract.outer(np.arange(p), np.arange(p)))
    common = rng.normal(size=(3 * p, p)) + 0.8 * rng.normal(size=(3 * p, 1))
    moving = np.convolve(0.9 ** np.arange(4), 0.9 ** np.arange(4)[::-1])[3:]
    ring = np.minimum(lag, p - lag)
    strong = rng.normal(0.0, 0.7, (p, 3))
    points = np.sort(rng.uniform(0.0, p / 3, p))
    return {
        "ten factors, uniquenesses 0.3 to 1.3": correlation(
            loadings @ loadings.T + np.diag(0.3 + rng.uniform(0.0, 1.0, p))
        ),
        "noise, 3p rows": np.corrcoef(rng.normal(size=(3 * p, p)).T),
        "noise, 1.2p rows": np.corrcoef(rng.normal(size=(6 * p // 5, p)).T),
        "blocks of 25, r = 0.6 and 0.1": correlation(
            np.where(label[:, None] == label[None, :], 0.6, 0.1) + 0.4 * np.eye(p)
        ),
        "AR(1), 0.8": 0.8**lag,
        "equicorrelation and noise, 3p rows": np.corrcoef(common.T),
        "AR(1), 0.7": 0.7**lag,
        "moving average of four": np.pad(moving / moving[0], (0, p - 4))[lag],
        "circulant, 0.7": 0.7**ring,
        "equicorrelation 0.5 plus noise, 2p rows": correlation(
            0.5 + 0.5 * np.eye(p) + np.corrcoef(rng.normal(size=(2 * p, p)).T)
        ),
        "three factors, uniquenesses 0.05 to 1.05": correlation(
            strong @ strong.T + np.diag(0.05 + rng.uniform(0.0, 1.0, p))
        ),
        "exponential kernel on a line": correlation(
            np.exp(-np.abs(np.subtract.outer(points, points))) + 1e-6 * np.eye(p)
        ),
        "noise, 1.05p rows": np.corrcoef(rng.normal(size=(21 * p // 20, p)).T),
    }


def cost(call: object) -> float:
    start = time.process_time()
    call()  # type: ignore[operator]
    return time.process_time() - start


class AfterTheSolver:
    """Time in what makes a result of what the solvers found; processor time by default."""

    def __init__(self, clock: Callable[[], float] = time.process_time) -> None:
        self.seconds, self.clock = 0.0, clock

    def __enter__(self) -> AfterTheSolver:
        self.plain = certify = api.certify

        def timed(problem: Problem, solution: Solution) -> Decorrelation:
            start = self.clock()
            result = certify(problem, solution)
            self.seconds += self.clock() - start
            return result

        api.certify = timed
        return self

    def __exit__(self, *error: object) -> None:
        api.certify = self.plain


def rewrite(name: str, lines: list[str]) -> None:
    """Put a table between the markers of its name in the README."""
    begin, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
    before, rest = README.read_text(encoding="utf-8").split(begin)
    _, after = rest.split(end)
    README.write_text(f"{before}{begin}\n" + "\n".join(lines) + f"\n{end}{after}", encoding="utf-8")


def main() -> None:
    """Measure, print and write the table."""
    lines = [
        "| family | ρ★ | 10 % | 50 % | 90 % | after | status |",
        "|---|---|---|---|---|---|---|",
    ]
    every = []
    with threadpool_limits(1):
        for name, R in families(SIZE).items():
            eigen = min(cost(lambda R=R: sla.eigh(R)) for _ in range(5))
            edge = threshold(R).value
            spent = [cost(lambda R=R: threshold(R)) / eigen]
            found = []
            with AfterTheSolver() as after:
                for share in (0.1, 0.5, 0.9):
                    floor = edge + share * (1.0 - edge)
                    start = time.process_time()
                    found.append(decorrelate(R, floor))
                    spent.append((time.process_time() - start) / eigen)
            every += spent[1:]
            status = ", ".join(sorted({answer.status for answer in found}))
            figures = " | ".join(f"{value:.0f}" for value in spent)
            after_all = f"{100 * after.seconds / eigen / sum(spent[1:]):.0f} %"
            lines.append(f"| {name} | {figures} | {after_all} | {status} |")
            print(lines[-1], flush=True)
    lines += ["", f"Trade-off: median {np.median(every):.0f}, largest {max(every):.0f}."]
    print(lines[-1])
    rewrite("families", lines)


if __name__ == "__main__":
    main()
