"""Work above the threshold at p = 500 in eigendecompositions of R, over six families of matrices.

    python benchmarks/families.py

One thread, processor time, everything in one run: `decorrelate` from R to the certified answer at
floors 10, 50 and 90 % of the way from ρ★ to one. Rewrites the table in ``benchmarks/README.md``
between its markers.
"""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import scipy.linalg as sla
from threadpoolctl import threadpool_limits

from skcoral import decorrelate, threshold

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
    }


def cost(call: object) -> float:
    start = time.process_time()
    call()  # type: ignore[operator]
    return time.process_time() - start


def rewrite(name: str, lines: list[str]) -> None:
    """Put a table between the markers of its name in the README."""
    begin, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
    before, rest = README.read_text(encoding="utf-8").split(begin)
    _, after = rest.split(end)
    README.write_text(f"{before}{begin}\n" + "\n".join(lines) + f"\n{end}{after}", encoding="utf-8")


def main() -> None:
    """Measure, print and write the table."""
    lines = ["| family | ρ★ | 10 % | 50 % | 90 % |", "|---|---|---|---|---|"]
    every = []
    with threadpool_limits(1):
        for name, R in families(SIZE).items():
            eigen = min(cost(lambda R=R: sla.eigh(R)) for _ in range(5))
            edge = threshold(R).value
            spent = [cost(lambda R=R: threshold(R)) / eigen]
            for share in (0.1, 0.5, 0.9):
                floor = edge + share * (1.0 - edge)
                spent.append(cost(lambda R=R, floor=floor: decorrelate(R, floor)) / eigen)
            every += spent[1:]
            lines.append(f"| {name} | " + " | ".join(f"{value:.0f}" for value in spent) + " |")
            print(lines[-1], flush=True)
    lines += ["", f"Trade-off: median {np.median(every):.0f}, largest {max(every):.0f}."]
    print(lines[-1])
    rewrite("families", lines)


if __name__ == "__main__":
    main()
