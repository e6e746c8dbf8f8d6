"""How often confident floors hold for the population: a simulation, and its table in the docs.

    python benchmarks/coverage.py --jobs 8 --write docs/theory/sampling.md --picture confidence.png

Every cell draws tables from a population whose correlations are known, fits with the floors asked
for and with floors raised for 95 % confidence, and counts the tables in which every fidelity of
the population keeps the floor asked for. Finished cells are kept in the results file, so that a run
that was interrupted goes on where it stopped, and more tables are added to those that are there.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from joblib import Parallel, delayed

from skcoral import CORAL, threshold
from skcoral.stability import confident_floors
from skcoral.stability.bootstrap import threshold_interval
from skcoral.stability.resampling import Resampler

MARKS = ("<!-- coverage: begin -->", "<!-- coverage: end -->")
CONFIDENCE = 0.95
COUNTED = ("plain", "floors", "bounds", "residual", "interval")
KINDS = ("normal", "t(5)", "skewed", "AR(0.5)", "AR(0.8)", "clusters")
SIDES = ("above", "below")
STUDY = 2  # part of every seed: a new number draws tables that no earlier study has seen


def population(p: int) -> tuple[np.ndarray, np.ndarray, float]:
    """Mixing matrix of independent columns, its covariance, and ρ★."""
    size = 0.5 if p < 8 else 0.3
    mixing = np.eye(p) + size * np.random.default_rng(3).normal(size=(p, p))
    covariance = mixing.T @ mixing
    spread = np.sqrt(np.diag(covariance))
    return mixing, covariance, threshold(covariance / np.outer(spread, spread)).value


def draw(kind: str, n: int, mixing: np.ndarray, rng: Any) -> tuple[np.ndarray, dict[str, Any]]:
    """Rows of a table, and what is said about how they hang together."""
    p = len(mixing)
    if kind == "normal":
        return rng.normal(size=(n, p)) @ mixing, {}
    if kind == "t(5)":
        length = np.sqrt(rng.chisquare(5, size=(n, 1)) / 3.0)  # unit variance
        return (rng.normal(size=(n, p)) / length) @ mixing, {}
    if kind == "skewed":
        return (rng.exponential(size=(n, p)) - 1.0) @ mixing, {}
    if kind.startswith("AR"):
        phi = float(kind[3:-1])
        steps = rng.normal(size=(n, p))
        steps[1:] *= np.sqrt(1.0 - phi**2)
        for i in range(1, n):
            steps[i] += phi * steps[i - 1]
        return steps @ mixing, {"block_length": "auto"}
    groups = np.arange(n) % 40  # 40 clusters, half of the variance between them
    shared = rng.normal(size=(40, p))[groups]
    return np.sqrt(0.5) * (shared + rng.normal(size=(n, p))) @ mixing, {"groups": groups}


def in_population(coral: CORAL, covariance: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Fidelities and correlations of the outputs in the population."""
    B = coral.T_ / coral.scale_[:, None]
    G = B.T @ covariance @ B
    spread = np.sqrt(np.diag(G))
    own = np.diag(covariance @ B) / spread / np.sqrt(np.diag(covariance))
    return own, G / np.outer(spread, spread) - np.eye(len(G))


def one_table(kind: str, p: int, n: int, side: str, seed: int) -> tuple[float, ...]:
    """What holds for one table, and what it costs: the values that a cell averages."""
    warnings.simplefilter("ignore")
    start = time.process_time()
    mixing, covariance, rho_star = population(p)
    floor = asked(rho_star, side)
    rng = np.random.default_rng([STUDY, seed, p, n, KINDS.index(kind), SIDES.index(side)])
    X, said = draw(kind, n, mixing, rng)
    plain, _ = in_population(CORAL(floor).fit(X), covariance)
    report = confident_floors(CORAL(floor), X, confidence=CONFIDENCE, **said)
    sure, left = in_population(CORAL(report.floors).fit(X), covariance)
    sample = Resampler(CORAL(), X, **said)
    _, low, high = threshold_interval(sample, threshold(sample.table()).value, CONFIDENCE)
    return (
        plain.min() >= floor,
        sure.min() >= floor,
        (sure >= report.lower).all(),
        (np.abs(left).max(axis=1) <= report.residual_bound).all(),
        low <= rho_star <= high,
        plain.min(),
        sure.min(),
        report.floors.mean() - floor,
        report.objective_plain,
        report.objective,
        time.process_time() - start,
    )


def asked(rho_star: float, side: str) -> float:
    """The floor of a cell."""
    return rho_star - 0.03 if side == "below" else 0.5 * (1.0 + rho_star)


def cell(
    kind: str, p: int, n: int, side: str, tables: range, known: dict[str, Any] | None, jobs: int
) -> dict[str, Any]:
    """Count the tables in which the floors hold, with and without confidence.

    ``known`` is what is known from the tables before these.
    """
    rho_star = population(p)[2]
    calls = (delayed(one_table)(kind, p, n, side, seed) for seed in tables)
    names = (*COUNTED, "weakest_plain", "weakest", "raise", "price_plain", "price", "seconds")
    means = np.mean(np.array(Parallel(n_jobs=jobs)(calls), dtype=float), axis=0)
    if known is not None:
        before = np.array([known[name] for name in names])
        means = (tables.start * before + len(tables) * means) / tables.stop
    return {
        "kind": kind,
        "p": p,
        "n": n,
        "side": side,
        "floor": asked(rho_star, side),
        "rho_star": rho_star,
        "tables": tables.stop,
        **dict(zip(names, means.tolist(), strict=True)),
    }


def cells() -> list[tuple[str, int, int, str]]:
    """The most telling cells first, for a run that is cut short."""
    plain, series = KINDS[:3], KINDS[3:]
    order = [(k, 8, 60, s) for k in plain for s in SIDES]
    order += [(k, 8, 200, "above") for k in (*series, *plain)]
    order += [(k, p, n, "above") for n in (60, 200) for p in (4, 20) for k in plain]
    order += [(k, 8, 1000, "above") for k in (*plain, *series)]
    order += [
        (k, p, n, s) for p in (8, 4, 20) for n in (60, 200, 1000) for k in plain for s in SIDES
    ]
    order += [(k, p, 400, "below") for k in series for p in (4, 20)]
    return list(dict.fromkeys(order))


def as_table(records: list[dict[str, Any]]) -> str:
    """The results as a table in Markdown; arrows tell floors above ρ★ from those below."""
    counted = ("ρ★" if name == "interval" else name for name in COUNTED)
    header = ["rows", "p", "n", "floor", *counted, "price"]
    lines = [f"| {' | '.join(header)} |", "|---" * len(header) + "|"]
    for r in sorted(records, key=lambda r: (KINDS.index(r["kind"]), r["p"], r["n"], r["side"])):
        cells = [
            r["kind"],
            str(r["p"]),
            f"{r['n']:,}",
            f"{r['floor']:.3f}{'↑' if r['side'] == 'above' else '↓'}",
            *(f"{100 * r[name]:.1f}" for name in COUNTED),
            f"{_residual(r['price_plain'])}→{_residual(r['price'])}",
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _residual(value: float) -> str:
    return "0" if value < 0.005 else f"{value:.2f}"


def write(records: list[dict[str, Any]], page: Path) -> None:
    """Put the table between its marks in a page."""
    text = page.read_text("utf-8")
    begin, end = (text.index(mark) for mark in MARKS)
    page.write_text(f"{text[:begin]}{MARKS[0]}\n{as_table(records)}\n{text[end:]}", "utf-8")


def picture(path: Path, tables: int = 60) -> None:
    """Weakest fidelities of many tables: on the rows fitted and in the population."""
    import matplotlib.pyplot as plt

    from skcoral.show.pictures._style import BLUE, GREY, INK, ORANGE

    floor, (mixing, covariance, _) = 0.9, population(8)
    seen: list[list[float]] = [[], [], [], []]
    for seed in range(tables):
        X = np.random.default_rng([seed, 8, 200]).normal(size=(200, 8)) @ mixing
        for place, coral in enumerate((CORAL(floor), CORAL(floor, confidence=CONFIDENCE))):
            coral.fit(X)
            seen[2 * place].append(float(coral.fidelity_.min()))
            seen[2 * place + 1].append(float(in_population(coral, covariance)[0].min()))
    _, ax = plt.subplots(figsize=(7.5, 3.6), layout="constrained")
    jitter = np.random.default_rng(0).uniform(-0.16, 0.16, size=tables)
    for k, (values, colour) in enumerate(zip(seen, (GREY, ORANGE, GREY, BLUE), strict=True)):
        ax.scatter(k + jitter, values, s=14, color=colour, alpha=0.75, linewidths=0)
        kept = int((np.array(values) >= floor - 1e-9).sum())
        ax.annotate(f"{kept} of {tables} keep it", (k, 0.953), ha="center", color=INK, fontsize=9)
    ax.axhline(floor, color=INK, lw=1)
    ax.annotate("floor asked: 0.90", (2, floor), (0, 4), textcoords="offset points", ha="center")
    ax.set_xticks(range(4), ["rows fitted", "population", "rows fitted", "population"])
    for k, name in ((0.5, "CORAL(0.9)"), (2.5, "CORAL(0.9, confidence=0.95)")):
        ax.annotate(name, (k, 0.961), ha="center", color=INK, fontsize=10, weight="bold")
    ax.axvline(1.5, color=GREY, lw=0.6)
    ax.set(ylabel="weakest fidelity", xlim=(-0.5, 3.5), ylim=(0.85, 0.966))
    ax.spines[["top", "right"]].set_visible(False)
    ax.figure.savefig(path, dpi=150)


def main() -> None:
    """Run what is missing, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tables", type=int, default=200, help="tables drawn per cell")
    parser.add_argument("--results", type=Path, default=Path("coverage.jsonl"))
    parser.add_argument("--write", type=Path, help="page whose table is replaced")
    parser.add_argument("--picture", type=Path, help="where to draw the picture of that page")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--only-write", action="store_true", help="run nothing")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    known = options.results.read_text().splitlines() if options.results.exists() else []
    # a later line of the file replaces an earlier one about the same cell
    records = {(r["kind"], r["p"], r["n"], r["side"]): r for r in map(json.loads, known)}
    for key in [] if options.only_write else cells():
        before = records.get(key)
        tables = range(0 if before is None else before["tables"], options.tables)
        if not tables:
            continue
        records[key] = cell(*key, tables, before, options.jobs)
        with options.results.open("a") as file:
            file.write(json.dumps(records[key]) + "\n")
        print(as_table([records[key]]).splitlines()[-1], flush=True)
    if options.write:
        write(list(records.values()), options.write)
    if options.picture:
        picture(options.picture)


if __name__ == "__main__":
    main()
