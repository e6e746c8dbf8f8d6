"""Large systems on a graphics card: certified answers, seconds and memory.

    python benchmarks/device.py --sizes 2000 5000 10000

prints lines of Markdown. The clock runs from the matrix on the card to the result in NumPy, and
the seconds after the solver, which are part of it, have a column of their own. Two families: a
model of ten factors with loadings N(0, 0.3²) and uniquenesses 0.3 + U(0, 1), and the sample
correlation of 3p rows of noise; with ``--every`` those of ``families.py`` follow. ρ★ and the least
sum of squares half-way between ρ★ and one are computed at every size, the worst pair and the
absolute sum up to ``--largest-sharp``. One eigendecomposition on the same card is the yardstick.
``--memory`` measures the arrays in use on the processor instead, in every family.
"""

from __future__ import annotations

import argparse
import time
import tracemalloc
from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np
from families import AfterTheSolver, families

from skcoral import decorrelate, threshold


def factor_model(p: int, xp: Any, like: Any) -> Any:
    rng = np.random.default_rng(1)
    loadings = rng.normal(0.0, 0.3, (p, 10))
    return correlation(xp, like(loadings), like(0.3 + rng.uniform(0.0, 1.0, p)))


def correlation(xp: Any, loadings: Any, uniqueness: Any) -> Any:
    covariance = loadings @ loadings.T + xp.diag(uniqueness)
    scale = xp.diag(covariance) ** -0.5
    R = scale[:, None] * covariance * scale[None, :]
    R = 0.5 * (R + R.T)
    return R - xp.diag(xp.diag(R)) + xp.diag(0.0 * scale + 1.0)


def noise(p: int, xp: Any, like: Any) -> Any:
    rows = like(np.random.default_rng(1).normal(size=(3 * p, p)))
    rows = rows - rows.mean(0)
    return correlation(xp, rows.T, 0.0 * rows[0])


def timed(xp: Any, question: Callable[..., Any], *arguments: Any, **more: Any) -> tuple[float, Any]:
    """Seconds to the answer, which is in NumPy, so that nothing is left running."""
    if hasattr(xp, "cuda") and hasattr(xp.cuda, "reset_peak_memory_stats"):
        xp.cuda.empty_cache()
        xp.cuda.synchronize()
        xp.cuda.reset_peak_memory_stats()
    start = time.perf_counter()
    answer = question(*arguments, **more)
    return time.perf_counter() - start, answer


def arrays_in_use(xp: Any, p: int) -> str:
    """Peak memory in units of one p by p array, where the library tells."""
    if not hasattr(getattr(xp, "cuda", None), "max_memory_allocated"):
        return ""
    return f"{xp.cuda.max_memory_allocated() / (8.0 * p * p):.0f}"


def host_memory(sizes: list[int]) -> None:
    """Print the most memory in use at once without a card, in units of one p by p array."""
    print("| family | question | p | p × p arrays |\n|---|---|---|---|")
    for p in sizes:
        for name, R in families(p).items():
            floor = 0.5 * (1.0 + threshold(R).value)
            for criterion in ("squared", "absolute", "worst"):
                tracemalloc.start()
                decorrelate(R, floor, criterion=criterion)
                peak = tracemalloc.get_traced_memory()[1]
                tracemalloc.stop()
                print(f"| {name} | {criterion} | {p} | {peak / (8.0 * p * p):.0f} |", flush=True)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", type=int, nargs="+", default=[1000, 2000])
    parser.add_argument("--largest-sharp", type=int, default=1000)
    parser.add_argument("--every", action="store_true", help="all families of families.py")
    parser.add_argument("--memory", action="store_true", help="memory alone, without a card")
    options = parser.parse_args()
    if options.memory:
        host_memory(options.sizes)
        return
    xp = import_module("torch")

    def like(a: np.ndarray) -> Any:
        return xp.asarray(a, device="cuda")

    decorrelate(noise(50, xp, like), 0.97)  # loads the libraries of the card
    print("| family | question | p | s | eigh | after, s | answer | gap | status | p × p arrays |")
    print("|" + 10 * "---|")
    for p in options.sizes:
        made: list[tuple[str, Callable[[], Any]]] = [
            ("factors", lambda p=p: factor_model(p, xp, like)),
            ("noise", lambda p=p: noise(p, xp, like)),
        ]
        if options.every:
            made += [(name, lambda R=R: like(R)) for name, R in families(p).items()]
        for name, make in made:
            R = make()
            eigen = min(timed(xp, lambda R=R: float(xp.linalg.eigh(R)[0][0]))[0] for _ in range(2))
            seconds, found = timed(xp, threshold, R)
            floor = 0.5 * (1.0 + found.value)
            rows = [("ρ★", seconds, 0.0, found.value, found, arrays_in_use(xp, p))]
            questions = ["squared"]
            if p <= options.largest_sharp:
                questions += ["worst", "absolute"]
            for criterion in questions:
                with AfterTheSolver(time.perf_counter) as after:
                    seconds, found = timed(xp, decorrelate, R, floor, criterion=criterion)
                used, what = arrays_in_use(xp, p), f"{criterion} at {floor:.4f}"
                rows.append((what, seconds, after.seconds, found.objective, found, used))
            for what, seconds, late, value, found, used in rows:
                print(
                    f"| {name} | {what} | {p} | {seconds:.2f} | {seconds / eigen:.0f} | "
                    f"{late:.2f} | {value:.9g} | {found.gap:.0e} | {found.status} | {used} |",
                    flush=True,
                )


if __name__ == "__main__":
    main()
