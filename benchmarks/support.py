"""Time the support solver against the paper's way, on the paper's system.

    python benchmarks/support.py

Ours: 300 starts, polished, with a lower bound. The yardstick: scipy's SLSQP with finite differences
on the same coefficients, constraints and floors, one start. Times are processor times on one
thread. Rewrites the table in ``benchmarks/README.md`` between its markers.
"""

from __future__ import annotations

import platform
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import scipy.optimize as so
from threadpoolctl import threadpool_limits

from skcoral import decorrelate
from skcoral.datasets import make_system

README = Path(__file__).with_name("README.md")
BEGIN, END = "<!-- support: begin -->", "<!-- support: end -->"
N_STARTS = 300


def timed(call: Callable[[], Any]) -> tuple[float, Any]:
    start = time.process_time()
    result = call()
    return time.process_time() - start, result


def finite_differences(R: np.ndarray, mask: np.ndarray, rho: float) -> float:
    """D2 that SLSQP reaches from one start, without being told any derivative."""
    p = len(R)
    rows, columns = np.nonzero(mask)

    def build(x: np.ndarray) -> np.ndarray:
        T = np.zeros((p, p))
        T[rows, columns] = x
        return T

    def value(x: np.ndarray) -> float:
        G = build(x).T @ R @ build(x)
        return 0.5 * float(np.sum(G * G) - np.sum(np.diag(G) ** 2))

    T = np.where(mask, np.eye(p) + 0.3 * np.random.default_rng(0).normal(size=(p, p)), 0.0)
    T /= np.sqrt(np.diag(T.T @ R @ T))
    solved = so.minimize(
        value,
        T[rows, columns],
        method="SLSQP",
        constraints=[
            {"type": "eq", "fun": lambda x: np.diag(build(x).T @ R @ build(x)) - 1.0},
            {"type": "ineq", "fun": lambda x: np.diag(R @ build(x)) - rho},
        ],
        options={"maxiter": 500, "ftol": 1e-9},
    )
    return float(solved.fun)


def measure() -> list[str]:
    R = make_system(18)
    mask = np.abs(R) > 0.15
    lines = [
        "| ρ_min | D2, lower bound | skcoral | starts at the best | SLSQP, one start: D2 | SLSQP "
        "| ratio per start |",
        "|---|---|---|---|---|---|---|",
    ]
    decorrelate(R, 0.9, support=mask, n_starts=5)
    for rho in (0.0, 0.3, 0.5, 0.7, 0.85, 0.95, 0.99):
        ours, found = timed(lambda rho=rho: decorrelate(R, rho, support=mask, n_starts=N_STARTS))
        other, reached = timed(lambda rho=rho: finite_differences(R, mask, rho))
        n = found.search.n_starts
        lines.append(
            f"| {rho:.2f} | {found.objective:.6f}, {found.lower_bound:.6f} ({found.status}) "
            f"| {ours:.2f} s for {n} starts | {found.search.n_best} of {n} "
            f"| {reached:.6f} | {other:.1f} s | {other / (ours / n):.0f}× |"
        )
    for criterion in ("worst", "absolute"):
        ours, found = timed(lambda c=criterion: decorrelate(R, 0.0, support=mask, criterion=c))
        lines.append(
            f"| 0.00, {criterion} | {found.objective:.6f}, {found.lower_bound:.6f} "
            f"({found.status}) | {ours:.2f} s for {found.search.n_starts} starts "
            f"| {found.search.n_best} | | | |"
        )
    return lines


def main() -> None:
    with threadpool_limits(1):
        lines = measure()
    stamp = (
        f"Measured on {platform.machine()} with 1 thread, NumPy {np.__version__}, Python "
        f"{platform.python_version()}; one run each, processor time."
    )
    table = "\n".join([BEGIN, stamp, "", *lines, END])
    text = README.read_text(encoding="utf-8")
    if BEGIN in text:
        text = text[: text.index(BEGIN)] + table + text[text.index(END) + len(END) :]
    else:
        text = (
            f"{text.rstrip()}\n\n## Support restrictions\n\nThe paper's p = 18 system with "
            "|R_ij| > 0.15.\n\n    python benchmarks/support.py\n\n" + table + "\n"
        )
    README.write_text(text, encoding="utf-8")
    print(table)


if __name__ == "__main__":
    main()
