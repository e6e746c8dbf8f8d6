"""Time the trade-off against three yardsticks, all in one run on the same number of threads.

    python benchmarks/tradeoff.py

(a) the paper's algorithm (augmented Lagrangian on the oblique manifold, 5 random starts), (b) the
semidefinite relaxation in cvxpy with Clarabel, (c) one eigendecomposition by NumPy. Times are
processor times, which a busy machine disturbs less than the clock. Rewrites the table in
``benchmarks/README.md`` between its markers.
"""

from __future__ import annotations

import argparse
import platform
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

from skcoral import decorrelate, frontier
from skcoral.datasets import make_system

README = Path(__file__).with_name("README.md")
BEGIN, END = "<!-- tradeoff: begin -->", "<!-- tradeoff: end -->"


def best_time(call: Callable[[], object], repeats: int) -> float:
    """Shortest of several runs, after one that is not counted."""
    call()
    times = []
    for _ in range(repeats):
        start = time.process_time()
        call()
        times.append(time.process_time() - start)
    return min(times)


def once(call: Callable[[], object]) -> tuple[float, object]:
    start = time.process_time()
    result = call()
    return time.process_time() - start, result


def seconds(value: float) -> str:
    return f"{value * 1e3:.1f} ms" if value < 1 else f"{value:.2f} s"


def row(what: str, ours: float, other: str, yardstick: float, target: str, met: bool) -> str:
    ratio = yardstick / ours
    shown = f"{ratio:.0f}× faster" if ratio > 1 else f"{1 / ratio:.1f} of them"
    cells = [what, seconds(ours), f"{other}: {seconds(yardstick)}", shown, target]
    return "| " + " | ".join([*cells, "yes" if met else "**no**"]) + " |"


def measure(quick: bool) -> list[str]:
    from protocol import run_protocol

    import conic

    rows = []
    R = make_system(50)
    singles = []
    for rho in (0.95, 0.97, 0.99):
        ours = best_time(lambda rho=rho: decorrelate(R, rho), 15)
        singles.append(ours)
        starts = 1 if quick else 5
        theirs, found = once(lambda rho=rho, starts=starts: run_protocol(R, rho, n_starts=starts))
        theirs *= 5 / starts
        answer = decorrelate(R, rho)
        note = f"paper's algorithm, floors missed by {found.violations.max():.0e}"
        what = f"p = 50, ρ = {rho}, certified to {answer.gap:.0e}"
        rows.append(row(what, ours, note, theirs, "≥ 100×", theirs >= 100 * ours))
    R30 = make_system(30)
    floors = np.full(30, 0.98)
    for criterion in ("squared", "worst"):
        ours = best_time(lambda c=criterion: decorrelate(R30, floors, criterion=c), 7)
        theirs, value = once(lambda c=criterion: conic.solve(R30, floors, c))
        difference = abs(value - decorrelate(R30, floors, criterion=criterion).objective)
        note = f"cvxpy + Clarabel, values differ by {difference:.0e}"
        what = "p = 30, ρ = 0.98" + (", worst pair" if criterion == "worst" else "")
        rows.append(row(what, ours, note, theirs, "≥ 50×", theirs >= 50 * ours))
    curve = best_time(lambda: frontier(R), 25)
    single = float(np.mean(singles))
    what = "25-point frontier, p = 50"
    met = curve <= 6 * single and curve <= 1
    rows.append(row(what, curve, "mean single solve", single, "≤ 6 of them, ≤ 1 s", met))
    R500 = make_system(500)
    eigh = best_time(lambda: np.linalg.eigh(R500), 5)
    for rho in (0.97, 0.99):
        ours, _ = once(lambda rho=rho: decorrelate(R500, rho))
        met = ours <= 250 * eigh
        rows.append(row(f"p = 500, ρ = {rho}", ours, "one eigh", eigh, "≤ 250 of them", met))
    return rows


def table(rows: list[str], threads: int) -> str:
    head = [
        f"Processor times on {platform.machine()}, {threads} thread(s), NumPy {np.__version__}, "
        f"Python {platform.python_version()}; shortest of several runs for skcoral and eigh, one "
        "run for the others.",
        "",
        "| what | skcoral | yardstick | ratio | target | met |",
        "|---|---|---|---|---|---|",
    ]
    return "\n".join([*head, *rows])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--quick", action="store_true", help="one start of the paper's, times five")
    parser.add_argument("--dry-run", action="store_true", help="print, do not write the README")
    options = parser.parse_args()
    with threadpool_limits(options.threads):
        text = table(measure(options.quick), options.threads)
    print(text)
    if not options.dry_run:
        page = README.read_text(encoding="utf-8")
        before, rest = page.split(BEGIN)
        _, after = rest.split(END)
        README.write_text(f"{before}{BEGIN}\n{text}\n{END}{after}", encoding="utf-8")


if __name__ == "__main__":
    main()
