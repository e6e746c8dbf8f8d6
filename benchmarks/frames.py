"""Time wide tables against one thin SVD of the same table, on one thread.

    python benchmarks/frames.py [--quick]

Times are processor times, which a busy machine disturbs less than the clock. Rewrites the table in
``benchmarks/README.md`` between its markers.
"""

from __future__ import annotations

import argparse
import platform
import resource
import time
import warnings
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

from skcoral import CORAL

README = Path(__file__).with_name("README.md")
BEGIN, END = "<!-- frames: begin -->", "<!-- frames: end -->"
FLOORS = (0.5, 0.7, 0.8, 0.9, 0.95, 0.99)


def table(n: int, p: int) -> np.ndarray:
    """Rows of five factors."""
    rng = np.random.default_rng(0)
    noise = rng.normal(size=(n, p)) * np.sqrt(0.3 + rng.uniform(size=p))
    return rng.normal(size=(n, 5)) @ (0.5 * rng.normal(size=(5, p))) + noise


def timed(call: object) -> tuple[float, object]:
    start = time.process_time()
    result = call()  # type: ignore[operator]
    return time.process_time() - start, result


def measure(sizes: list[tuple[int, int, tuple[float, ...]]]) -> list[str]:
    rows = []
    for n, p, floors in sizes:
        X = table(n, p)
        svd = min(timed(lambda X=X: np.linalg.svd(X, full_matrices=False))[0] for _ in range(3))
        for floor in floors:
            seconds, coral = timed(lambda X=X, floor=floor: CORAL(floor).fit(X))
            apply, _ = timed(lambda X=X, coral=coral: coral.transform(X))
            result = coral.result_  # type: ignore[attr-defined]
            memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
            gap = result.gap / max(1.0, result.objective)
            rows.append(
                f"| {n} × {p:,} | {floor:g} | {result.status} | {gap:.0e} | {seconds:.2f} s | "
                f"{seconds / svd:.0f} | {apply / svd:.1f} | {memory:.2f} GB |"
            )
            print(rows[-1], flush=True)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="without 50,000 columns")
    quick = parser.parse_args().quick
    sizes = [(40, 200, FLOORS), (100, 2000, (0.9,)), (100, 5000, FLOORS)]
    if not quick:
        sizes.append((100, 50_000, (0.9,)))
    with threadpool_limits(limits=1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        rows = measure(sizes)
    head = [
        "| rows × columns | floor | status | relative gap | fit | in thin SVDs | transform, in "
        "thin SVDs | most memory so far |",
        "|---|---|---|---|---|---|---|---|",
    ]
    where = f"One thread, {platform.machine()}, Python {platform.python_version()}."
    text = README.read_text("utf-8")
    before, _, rest = text.partition(BEGIN)
    after = rest.partition(END)[2]
    block = "\n".join([BEGIN, *head, *rows, "", where, END])
    README.write_text(f"{before}{block}{after}", "utf-8")


if __name__ == "__main__":
    main()
