"""Time rolling windows against a loop of fits of the same rows, on one thread.

    OMP_NUM_THREADS=1 python benchmarks/panels.py [--full]

Times are processor times, which a busy machine disturbs less than the clock. The loop of fits is
timed on twenty windows and scaled up; its outputs are compared with those of the run. Rewrites
the table in ``benchmarks/README.md`` between its markers.
"""

from __future__ import annotations

import argparse
import platform
import time
import warnings
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

from skcoral import CORAL
from skcoral.panels import rolling

README = Path(__file__).with_name("README.md")
BEGIN, END = "<!-- panels: begin -->", "<!-- panels: end -->"


def returns(n: int, p: int, load: float) -> np.ndarray:
    """Three factors and noise, all with fat tails; ``load`` says how correlated the columns are."""
    rng = np.random.default_rng(0)
    loadings = load * rng.normal(size=(p, 3))
    return rng.standard_t(5, size=(n, 3)) @ loadings.T + rng.standard_t(5, size=(n, p))


def line(
    p: int, window: int, count: int, load: float, ms: float | None = None, **asked: object
) -> str:
    """One row of the table; at most ``ms`` per window are aimed at."""
    X = returns(count + window - 1, p, load)
    start = time.process_time()
    panel = rolling(X, window, **asked)
    ours = time.process_time() - start
    single, apart, sample = 0.0, 0.0, range(0, count, max(1, count // 20))
    for k in sample:
        rows = X[k : k + window]
        start = time.process_time()
        model = CORAL(**asked).fit(rows)
        made = model.transform(rows[-1:])
        single += time.process_time() - start
        apart = max(apart, float(np.abs(made[0] - panel.outputs[k + window - 1]).max()))
    loop = single / len(sample) * count
    status = panel.columns["status"]
    kinds = ", ".join(f"{np.sum(status == kind)} {kind}" for kind in np.unique(status))
    asked_for = ", ".join(f"{name} {value}" for name, value in asked.items())
    each = 1e3 * ours / count
    target, met = "", ""
    if ms is not None:
        target, met = f"≤ {ms:g} ms each", "yes" if each <= ms else "**no**"
    return (
        f"| {count:,} × ({window} × {p}), {asked_for} | {kinds} "
        f"| {ours:.2f} s ({each:.2f} ms each) | {loop:.1f} s | "
        f"{loop / ours:.1f}× | {apart:.0e} | {target} | {met} |"
    )


def processes() -> str:
    """What a second process saves, by the clock, once both have started."""
    X = returns(2499, 12, 1.0)
    took = {}
    for jobs in (2, 1):
        rolling(X[:200], 60, rho_min=0.9, n_jobs=jobs)
        start = time.perf_counter()
        rolling(X, 60, rho_min=0.9, n_jobs=jobs)
        took[jobs] = time.perf_counter() - start
    return (
        f"2,440 × (60 × 12), rho_min 0.9, by the clock: {took[1]:.1f} s with one process, "
        f"{took[2]:.1f} s with two ({took[1] / took[2]:.2f}×)."
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--full",
        action="store_true",
        help="all windows of the longest runs, and two processes by the clock",
    )
    share = 1 if parser.parse_args().full else 10
    rows = []
    with threadpool_limits(limits=1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for load in (0.3, 0.6, 1.0):
            rows.append(line(12, 60, 2440, load, 3.28, rho_min=0.9))
        for asked in ({"rho_min": 0.9, "criterion": "worst"}, {"max_vif": 2.0}):
            rows.append(line(12, 60, 240 // share, 1.0, **asked))
        rows.append(line(50, 250, 1000 // share, 0.5, 40.0, rho_min=0.9))
        speed = [processes(), ""] if share == 1 else []
    print("\n".join([*rows, *speed]))
    head = [
        "| windows × (rows × columns) | status | `rolling` | loop of fits | ratio | outputs differ "
        "by | target | met |",
        "|---|---|---|---|---|---|---|---|",
    ]
    python = platform.python_version()
    where = f"One thread, {platform.machine()}, NumPy {np.__version__}, Python {python}."
    text = README.read_text("utf-8")
    before, _, rest = text.partition(BEGIN)
    after = rest.partition(END)[2]
    block = "\n".join([BEGIN, *head, *rows, "", *speed, where, END])
    README.write_text(f"{before}{block}{after}", "utf-8")


if __name__ == "__main__":
    main()
