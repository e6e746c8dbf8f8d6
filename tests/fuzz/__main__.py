"""Try random problems for a given time and count what went wrong: ``python tests/fuzz``."""

from __future__ import annotations

import argparse
import json
import secrets
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from skcoral import CORAL, decorrelate
from skcoral.certificates import certificate_text, check, parse_certificate
from skcoral.certificates.codec import checksum
from skcoral.core.limits import VISITOR, use
from skcoral.exceptions import CoralError
from skcoral.models import load_model, save_model
from skcoral.tables.columns import profile
from skcoral.tables.reading import open_table

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1]))

import files

import judge
import problems

COUNTS = ("tried", "refused", "open", "wrong", "crashed", "forged")


class Tally:
    """Counts by kind of problem, and the first few failures of each."""

    def __init__(self, show: int = 3) -> None:
        self.counts: dict[str, Counter[str]] = {}
        self.failures: list[str] = []
        self.show = show

    def add(self, kind: str, what: str, detail: str = "") -> None:
        counter = self.counts.setdefault(kind, Counter())
        counter[what] += 1
        if what in ("wrong", "crashed", "forged") and counter[what] <= self.show:
            self.failures.append(f"{kind}, {what}: {detail}")

    def table(self) -> str:
        """The counts as a table."""
        counts = pd.DataFrame(self.counts, index=COUNTS).T.fillna(0).astype(int)
        counts.loc["all"] = counts.sum()
        return counts.to_string()

    @property
    def bad(self) -> int:
        """Everything that must not happen."""
        return sum(c[name] for c in self.counts.values() for name in ("wrong", "crashed", "forged"))


def solve(tally: Tally, kind: str, problem: problems.Problem, rng: Any) -> None:
    """Solve one problem, judge the answer, and try to pass untrue ones off as true."""
    names = [f"x{j}" for j in range(len(problem.R))]
    named = pd.DataFrame(problem.R, index=names, columns=names)
    result = decorrelate(named, **problem.asked)
    if result.status in ("best_found", "not_converged"):
        tally.add(kind, "open")
    wrongs = judge.wrongs(problem.R, result, problem.asked)
    if wrongs:
        tally.add(kind, "wrong", "; ".join(wrongs))
    for what, forgery in judge.forgeries(rng, result):
        try:
            passed = check(forgery, named).passed
        except ValueError:
            passed = False
        if passed:
            tally.add(kind, "forged", what)


def read(tally: Tally, kind: str, rng: Any) -> None:
    """Read a file of no known origin, by the library and within a visitor's limits."""
    name, data = files.table_file(rng)
    with use(VISITOR):
        table = open_table(data, name=name)
        profile(table)
        table.to_frame()


def fit(tally: Tally, kind: str, rng: Any) -> None:
    """Fit a table of numbers and measure the outputs on its rows."""
    X = files.finite_table(rng)
    model = CORAL(float(rng.uniform(0, 1))).fit(X)
    Y = np.asarray(model.transform(X))
    if len(Y) > 1 and not model.result_.notes.rounding:
        # Columns far from zero keep fewer digits: what their rows can tell.
        digits = 1e-13 * float((np.abs(X).max(axis=0) / X.std(axis=0, ddof=1)).max())
        reach = float(np.abs(np.asarray(model.components_ * model.scale_)).sum(axis=1).max())
        off = float(np.abs(Y.std(axis=0, ddof=1) - 1).max())
        if off > 1e-6 + digits * reach:
            tally.add(kind, "wrong", f"standard deviations on the rows are off by {off:.1e}")


def load(tally: Tally, kind: str, rng: Any, model: dict[str, Any], folder: Path) -> None:
    """Load a model with one value altered and the checksum that fits."""
    altered = json.loads(files.altered_json(rng, model))
    altered["checksum"] = checksum(altered["content"])
    path = folder / "model.json"
    path.write_text(json.dumps(altered))
    loaded = load_model(path)
    result, R = loaded.result_, loaded.correlation_
    if np.abs(np.diag(result.T.T @ R @ result.T) - 1).max() > 1e-5:
        tally.add(kind, "forged", "a transformation without unit variances was loaded")


def verify(tally: Tally, kind: str, rng: Any, honest: list[Any]) -> None:
    """Verify a certificate file with some values altered and the checksum that fits."""
    result, R, content = honest[int(rng.integers(len(honest)))]
    for _ in range(int(rng.integers(1, 4))):
        content = json.loads(files.altered_json(rng, content))
    content["checksum"] = checksum(content["content"])
    file = parse_certificate(json.dumps(content))
    if not file.verify(R, rigorous=bool(rng.random() < 0.2)).passed:
        return
    off = max(
        result.lower_bound - file.result.objective, file.result.lower_bound - result.objective
    )
    if off > 1e-6 and np.array_equal(file.result.rho_min, result.rho_min):
        tally.add(kind, "forged", "a certificate with other bounds was accepted")
    if file.result.status == "optimal" and file.result.gap > 2e-7:
        tally.add(kind, "forged", "a certificate with a gap was accepted as optimal")


def attempt(tally: Tally, kind: str, seed: int, work: Callable[[Any], None]) -> None:
    """One problem: what the library refuses in words is counted, anything else is a crash."""
    tally.add(kind, "tried")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            warnings.simplefilter("error", RuntimeWarning)
            work(np.random.default_rng(seed))
    except CoralError:
        tally.add(kind, "refused")
    except Exception as error:
        last = traceback.format_exc(limit=-2).replace("\n", " ")
        tally.add(kind, "crashed", f"seed {seed}: {type(error).__name__}: {last[-300:]}")


def works(folder: Path) -> dict[str, Callable[[Tally, str, Any], None]]:
    """Every kind of work by its name."""
    save_model(CORAL(0.9).fit(np.random.default_rng(0).normal(size=(40, 4))), folder / "m.json")
    model = json.loads((folder / "m.json").read_text())
    honest = []
    for asked in (0.3, 0.97, [0.9, 0.99, 1.0, 0.5, 0.97]):
        R = problems.factor(np.random.default_rng(3), 5)
        for criterion in ("squared", "worst"):
            result = decorrelate(R, asked, criterion=criterion)
            honest.append((result, R, json.loads(certificate_text(result, R))))

    def dense(family: Any) -> Callable[[Tally, str, Any], None]:
        return lambda tally, kind, rng: solve(tally, kind, problems.dense(rng, family), rng)

    return {
        **{family.__name__.replace("_", " "): dense(family) for family in problems.FAMILIES},
        "support": lambda tally, kind, rng: solve(tally, kind, problems.restricted(rng), rng),
        "tables": fit,
        "files": read,
        "certificate files": lambda tally, kind, rng: verify(tally, kind, rng, honest),
        "model files": lambda tally, kind, rng: load(tally, kind, rng, model, folder),
    }


def run(
    seconds: float, seed: int, folder: Path, *, at_most: int | None = None, only: str = ""
) -> Tally:
    """Go round the kinds until the time is over; ``at_most`` rounds if given."""
    tally, end, k = Tally(), time.monotonic() + seconds, 0
    kinds = {kind: work for kind, work in works(folder).items() if only in kind}
    while time.monotonic() < end and (at_most is None or k < at_most):
        for number, (kind, work) in enumerate(kinds.items()):
            one = int(np.random.SeedSequence([seed, k, number]).generate_state(1)[0])
            attempt(tally, kind, one, lambda rng, w=work, n=kind: w(tally, n, rng))
        k += 1
    return tally


def main() -> int:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=None, help="fresh unless given")
    parser.add_argument("--only", default="", help="kinds whose names contain this")
    options = parser.parse_args()
    seed = secrets.randbelow(2**32) if options.seed is None else options.seed
    with tempfile.TemporaryDirectory() as folder:
        tally = run(options.seconds, seed, Path(folder), only=options.only)
    print(f"seed {seed}, {options.seconds:g} seconds")
    print(tally.table())
    for failure in tally.failures:
        print(failure)
    return 1 if tally.bad else 0


if __name__ == "__main__":
    sys.exit(main())
