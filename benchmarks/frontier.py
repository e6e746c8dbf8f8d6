"""A frontier of 25 points in single solves, over six families of matrices.

    python benchmarks/frontier.py

One thread, processor time, everything in one run. A single solve is the mean of `decorrelate` at
floors 10, 50 and 90 % of the way from ρ★ to one. Rewrites the table in ``benchmarks/README.md``
between its markers.
"""

from __future__ import annotations

import numpy as np
from families import cost, families, rewrite
from threadpoolctl import threadpool_limits

from skcoral import decorrelate, frontier, threshold

SIZES = (50, 100, 200)
REPEATS = {50: 9, 100: 3, 200: 1}


def ratio(R: np.ndarray, repeats: int) -> float:
    """Time of a certified frontier over the mean time of a single solve."""
    edge = threshold(R).value
    singles = [
        min(cost(lambda floor=floor: decorrelate(R, floor)) for _ in range(repeats))
        for floor in edge + np.array([0.1, 0.5, 0.9]) * (1.0 - edge)
    ]
    curve = frontier(R)
    assert np.all(curve.gap <= 1e-9 * np.maximum(1.0, curve.objective))
    return min(cost(lambda: frontier(R)) for _ in range(repeats)) / float(np.mean(singles))


def main() -> None:
    """Measure, print and write the table."""
    every: dict[str, list[float]] = {}
    with threadpool_limits(1):
        for p in SIZES:
            for name, R in families(p).items():
                every.setdefault(name, []).append(ratio(R, REPEATS[p]))
                print(p, name, f"{every[name][-1]:.1f}", flush=True)
    lines = [
        "| family | " + " | ".join(f"p = {p}" for p in SIZES) + " |",
        "|---|" + "---|" * len(SIZES),
        *(
            f"| {name} | " + " | ".join(f"{r:.1f}" for r in row) + " |"
            for name, row in every.items()
        ),
    ]
    rewrite("frontier", lines)


if __name__ == "__main__":
    main()
