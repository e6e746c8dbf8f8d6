"""A mutation run: small bugs are put into the source one at a time, and the tests have to notice.

    python benchmarks/mutants certificates --count 60 --seed 0
    python benchmarks/mutants tolerances

Each mutant is one change of one expression (a comparison, an operator, a number, a condition, a
call left out). The tests that execute the changed lines are run until one fails, in a fork of a
process that has everything loaded: most mutants take a second. Survivors are printed; those that
were judged to change nothing that is promised are listed in ``judged.txt`` with the reason, and do
not count. ``tolerances`` widens tenfold each tolerance that decides what a user is told: those of
`skcoral.core.tolerances` and of certificates, and what input counts as singular, flat, copied or
rounded.
"""

from __future__ import annotations

import argparse
import ast
import importlib
import random
import re
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from changes import Change, changed, changes
from patching import install
from running import Collected, names_used

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src/skcoral"
TESTS = {
    "bounds": [
        "tests/bounds",
        "tests/certificates",
        "tests/solvers/singular/test_rank_bound.py",
        "tests/solvers/support/test_anchors.py",
        "tests/solvers/support/test_moments.py",
    ],
    "certificates": [
        "tests/certificates",
        "tests/bounds",
        "tests/solvers/singular/test_rank_bound.py",
        "tests/solvers/singular/test_rank_factors.py",
    ],
    "solvers/exact": [
        "tests/solvers/exact",
        "tests/solvers/tradeoff/test_work.py",
        "tests/certificates/test_claims.py",
    ],
    "solvers/tradeoff": ["tests/solvers/tradeoff", "tests/test_choosing.py"],
    "solvers/singular": ["tests/solvers/singular", "tests/certificates/test_singular.py"],
    "solvers/support": ["tests/solvers/support", "tests/certificates/test_claims.py"],
    "stability": ["tests/stability"],
    "data": ["tests/data", "tests/estimator"],
    "tolerances": [
        "tests/certificates",
        "tests/bounds",
        "tests/core",
        "tests/data",
        "tests/solvers/tradeoff/test_solved.py",
        "tests/solvers/exact/test_best_exact.py",
        "tests/tables/test_matrices.py",
        "tests/test_api.py",
    ],
}
JUDGEMENTS = (
    *("core/tolerances", "core/problem", "core/lowrank", "core/deficiency"),
    *("core/validation", "core/criteria", "core/results", "data/correlation", "data/wide"),
    *("data/effects", "data/moments", "estimator/applying", "solvers/exact/solver"),
    *("solvers/singular/curve", "models/files", "solvers/support/solver"),
    *("solvers/support/lower_bounds", "tables/matrices"),
)


@dataclass(frozen=True)
class Mutant:
    """A change of a file."""

    file: Path
    change: Change
    tree: ast.Module

    @property
    def key(self) -> str:
        return self.change.key(str(self.file.relative_to(SOURCE)))

    def put_in(self) -> None:
        """Make the change in this process."""
        dotted = ".".join(self.file.relative_to(SOURCE.parent).with_suffix("").parts)
        install(importlib.import_module(dotted), changed(self.tree, self.change.number))


class Run:
    """One run over the mutants of a room."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.kills: dict[tuple[str, str], int] = {}
        self.collected = Collected(self.work)

    def mutants(self) -> list[Mutant]:
        room = self.options.room
        if room == "tolerances":
            rooms = ("bounds", "certificates")
            files = [file for room in rooms for file in sorted((SOURCE / room).glob("*.py"))]
            files += [SOURCE / f"{name}.py" for name in JUDGEMENTS]
        else:
            files = sorted((SOURCE / room).glob("*.py"))
        mutants = []
        for file in files:
            tree = ast.parse(file.read_text("utf-8"))
            mutants += [Mutant(file, change, tree) for change in changes(tree)]
        for key in sorted(_judged() - {m.key for m in mutants}):
            if key.startswith(f"{room}/"):
                print(f"judged, and no longer in the source: {key}")
        mutants = [m for m in mutants if re.search(self.options.only, m.key)]
        if room == "tolerances":
            return [m for m in mutants if m.change.names and _is_tolerance(m.change)]
        count = min(self.options.count, len(mutants))
        print(f"{room}: {len(mutants)} mutants, {count} sampled with seed {self.options.seed}")
        return random.Random(self.options.seed).sample(mutants, count)

    def work(self, collected: Collected) -> None:
        """Called by pytest when the tests are collected."""
        start = time.monotonic()
        importlib.import_module("skcoral.certificates.certify")
        collected.survey(SOURCE, self.options.survey)
        print(f"{len(collected.seconds)} tests surveyed in {time.monotonic() - start:.0f} s")
        judged = _judged()
        killed, survived, equivalent = 0, 0, 0
        for mutant in self.mutants():
            names = self._tests_of(mutant)
            limit = 10 + 4 * sum(collected.seconds[name] for name in names)
            killer = collected.killer(mutant.put_in, names, limit)
            if killer:
                killed += 1
                at = (mutant.file.name, killer)
                self.kills[at] = self.kills.get(at, 0) + 1
            elif mutant.key in judged:
                equivalent += 1
            else:
                survived += 1
                line = mutant.change.lines.start
                print(f"survived (line {line}, {len(names)} tests): {mutant.key}", flush=True)
        counted = max(killed + survived, 1)
        print(
            f"{self.options.room}: {killed} of {counted} killed ({killed / counted:.1%}), "
            f"{equivalent} judged to be equivalent, {time.monotonic() - start:.0f} s"
        )

    def _tests_of(self, mutant: Mutant) -> list[str]:
        """Tests that execute the change: those that found others first, then the fastest."""
        where = {(str(mutant.file.relative_to(SOURCE)), line) for line in mutant.change.lines}
        if mutant.change.names:
            where = {
                (str(file.relative_to(SOURCE)), line)
                for file in SOURCE.rglob("*.py")
                for line in names_used(file, mutant.change.names)
            }
        seconds, lines = self.collected.seconds, self.collected.lines
        names = [name for name in seconds if lines[name] & where]
        kills = self.kills
        names.sort(key=lambda name: (-kills.get((mutant.file.name, name), 0), seconds[name]))
        chosen, spent = [], 0.0
        for name in names:
            spent += seconds[name]
            if chosen and spent > self.options.seconds:
                break
            chosen.append(name)
        return chosen


def _is_tolerance(change: Change) -> bool:
    """Whether a constant is no count: 1e-9, and neither 512 nor the 0.0 of trial values."""
    value = ast.literal_eval(change.text) if change.kind == "number" else 0
    return isinstance(value, float) and value != 0


def _judged() -> set[str]:
    """Mutants that change nothing that is promised: ``key  # reason`` in a line."""
    text = (Path(__file__).parent / "judged.txt").read_text("utf-8")
    return {line.split("  # ")[0].strip() for line in text.splitlines() if "  # " in line}


def main() -> None:
    """Sample mutants of a room, run its tests on each, and print the score."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("room", choices=sorted(TESTS))
    parser.add_argument("--count", type=int, default=60)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=60.0, help="of tests for one mutant")
    parser.add_argument("--only", default="", help="regular expression that the key matches")
    parser.add_argument("--survey", type=Path, help="keep what the tests execute in this file")
    parser.add_argument("--tests", nargs="*", help="these tests instead of the room's")
    options = parser.parse_args()
    arguments = ["-qq", "-s", "-m", "not slow", "-o", "faulthandler_timeout=0"]
    arguments += ["-p", "no:cacheprovider", "-p", "no:benchmark"]
    paths = [str(ROOT / test) for test in options.tests or TESTS[options.room]]
    run = Run(options)
    code = pytest.main([*arguments, *paths], plugins=[run.collected])
    sys.exit(0 if code == pytest.ExitCode.NO_TESTS_COLLECTED else code)


if __name__ == "__main__":
    main()
