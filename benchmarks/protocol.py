"""Compare the paper's protocol with this package: time, and starts that end in a worse optimum.

    python benchmarks/protocol.py [--starts 100]

Prints the rows of the table in ``docs/reproduction.md``; 100 starts take minutes. Needs the extra
``paper``. The protocol is an augmented Lagrangian over a manifold from independent random starts;
the best feasible end is kept.
"""

from __future__ import annotations

import argparse
from time import perf_counter

import numpy as np

from skcoral import decorrelate, threshold
from skcoral.paper import Study, run_protocol

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
