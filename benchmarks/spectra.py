"""Which systems keep their identity: ρ★, the price of 0.95, PCA and ZCA over spectra and graphs.

    python benchmarks/spectra.py

One thread. Rewrites the table of ``docs/spectra.md`` between its markers, and its picture.
"""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import scipy.linalg as sla
from scipy.optimize import linear_sum_assignment
from scipy.stats import random_correlation
from threadpoolctl import threadpool_limits

from skcoral import decorrelate, threshold

DOCS = Path(__file__).parents[1] / "docs"
SIZES = (6, 20, 60, 150, 500)
PRICED = 150  # largest size at which the residual at 0.95 is computed
FLOOR = 0.95
OPEN = 1e-6  # a wider gap of ρ★ is shown as an interval


def from_spectrum(values: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """A correlation matrix with these eigenvalues, up to their scale, and random eigenvectors."""
    values = values * len(values) / values.sum()
    R = np.asarray(random_correlation.rvs(values, random_state=rng, tol=1e-8))
    return 0.5 * (R + R.T)


def from_graph(A: np.ndarray) -> np.ndarray:
    """Variables whose partial correlations follow a graph; the condition of R⁻¹ is 20."""
    values = np.linalg.eigvalsh(A)
    K = A + ((values[-1] - 20 * values[0]) / 19) * np.eye(len(A))
    S = np.linalg.inv(K)
    d = np.diag(S) ** -0.5
    R = S * np.outer(d, d)
    np.fill_diagonal(R, 1.0)
    return 0.5 * (R + R.T)


def systems(p: int) -> dict[str, np.ndarray]:
    """The matrices of one size, by name."""
    rng = np.random.default_rng(p)
    i = np.arange(p)
    lag = np.abs(np.subtract.outer(i, i))
    ring = np.minimum(lag, p - lag)
    edges = np.triu(rng.random((p, p)) < min(4 / p, 0.5), 1)
    rewired = np.triu((ring > 0) & (ring <= 2), 1) & (rng.random((p, p)) < 0.9)
    rewired |= np.triu(rng.random((p, p)) < 0.4 / p, 1)
    hub = np.zeros((p, p))
    hub[0, 1:] = 1.0
    signs = np.triu(rng.choice([-1.0, 1.0], (p, p)), 1)
    graphs = {
        "blocks": np.triu(i[:, None] // 5 == i // 5, 1) * 1.0,
        "chain": np.triu(lag == 1) * 1.0,
        "hub": hub,
        "small world": rewired * signs,
        "random": edges * signs,
    }
    spectra = {
        "flat": np.linspace(0.5, 1.5, p),
        "one factor": np.where(i == 0, 0.4 * p, 0.6 * p / (p - 1)),
        "power law": 1.0 / (1.0 + i),
        "near-singular": np.where(i < (p + 1) // 2, 1.0, 1e-4),
    }
    out = {f"spectrum: {name}": from_spectrum(values, rng) for name, values in spectra.items()}
    return out | {f"graph: {name}": from_graph(-(A + A.T)) for name, A in graphs.items()}


def pca_fidelities(R: np.ndarray) -> np.ndarray:
    """|Correlations| of principal components with the variables that suit them best in all."""
    values, vectors = np.linalg.eigh(R)
    loadings = np.abs(vectors * np.sqrt(np.maximum(values, 0.0)))
    rows, columns = linear_sum_assignment(-loadings)
    return np.asarray(loadings[rows, columns])


def figures(R: np.ndarray) -> dict[str, float]:
    """Everything that the page says about one system."""
    p = len(R)
    values = np.maximum(np.linalg.eigvalsh(R), 0.0)
    found = threshold(R)
    zca = np.diag(sla.sqrtm(R).real)
    pairs = R[np.triu_indices(p, 1)]
    price = np.nan
    if found.lower >= FLOOR:
        price = 0.0
    elif p <= PRICED:
        price = decorrelate(R, FLOOR).objective / float(pairs @ pairs)
    pca = pca_fidelities(R)
    return {
        "rho": max(found.lower, float(zca.min())),  # ZCA is an exact decorrelator as well
        "upper": found.upper,
        "trace": float(np.sqrt(values).mean()),
        "rule": 1 - (p - 1) * float(np.mean(pairs**2)) / 8,
        "price": price,
        "zca": float(zca.min()),
        "pca_mean": float(pca.mean()),
        "pca": float(pca.min()),
    }


def main() -> None:
    start = time.process_time()
    found = {p: {name: figures(R) for name, R in systems(p).items()} for p in SIZES}
    lines = [
        "| system | p | ρ★ | mean root | left at 0.95 | ZCA, weakest | PCA, mean | PCA, weakest |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for name in found[SIZES[0]]:
        for p in SIZES:
            f = found[p][name]
            price = "" if np.isnan(f["price"]) else f"{100 * f['price']:.1f} %"
            rho = f"{f['rho']:.3f}"
            if f["upper"] - f["rho"] > OPEN:
                rho += f" to {f['upper']:.3f}"
            lines.append(
                f"| {name} | {p} | {rho} | {f['trace']:.3f} | {price} | {f['zca']:.3f} | "
                f"{f['pca_mean']:.2f} | {f['pca']:.2f} |"
            )
    page = DOCS / "spectra.md"
    text = page.read_text(encoding="utf-8")
    head, rest = text.split("<!-- table -->\n")[0], text.split("<!-- end -->\n")[1]
    table = "\n".join(lines)
    page.write_text(f"{head}<!-- table -->\n{table}\n<!-- end -->\n{rest}", encoding="utf-8")
    draw(found)
    print(table)
    every = [f for by_name in found.values() for f in by_name.values()]
    apart = {
        prefix: max(
            f["trace"] - f["rho"]
            for by_name in found.values()
            for name, f in by_name.items()
            if name.startswith(prefix)
        )
        for prefix in ("spectrum", "graph")
    }
    mild = [abs(f["rule"] - f["rho"]) for f in every if f["rule"] > 0.95]
    unproved = sum(f["upper"] - f["rho"] > OPEN for f in every)
    print(f"ρ★ is at most {apart} below the mean root; {unproved} of {len(every)} not certified")
    print(f"1 - (p - 1) mean(r²)/8 is off by at most {max(mild):.3f} where it exceeds 0.95")
    print(f"{time.process_time() - start:.0f} s")


def draw(found: dict[int, dict[str, dict[str, float]]]) -> None:
    """ρ★ against the mean root of the eigenvalues, and against the size."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 3.8), layout="constrained")
    for name in found[SIZES[0]]:
        # Only what is certified is drawn.
        proved = [found[p][name]["upper"] - found[p][name]["rho"] <= OPEN for p in SIZES]
        rho = np.where(proved, [found[p][name]["rho"] for p in SIZES], np.nan)
        mark = "o" if name.startswith("spectrum") else "s"
        left.plot([found[p][name]["trace"] for p in SIZES], rho, mark, ms=5)
        right.plot(SIZES, rho, f"-{mark}", ms=4, label=name)
    left.axline((0.9, 0.9), slope=1, color="0.6", lw=1)
    left.set(xlabel="mean root of the eigenvalues", ylabel="ρ★")
    right.set(xscale="log", xlabel="number of variables", ylabel="ρ★")
    figure.legend(fontsize=7, frameon=False, loc="outside right center")
    figure.savefig(DOCS / "images" / "spectra.png", dpi=130)


if __name__ == "__main__":
    with threadpool_limits(1):
        main()
