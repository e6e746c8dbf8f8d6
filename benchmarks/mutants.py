"""A mutation run: small bugs are put into the source one at a time, and the tests have to notice.

    python benchmarks/mutants.py certificates --count 60 --seed 0

Each mutant is one change of one expression (a comparison, an operator, a number, a condition, a
call left out) in a copy of the source. It counts as killed if the tests of its room fail or take
too long. Survivors are printed with their line, to be judged: some change nothing that matters.
"""

from __future__ import annotations

import argparse
import ast
import copy
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
TESTS = {
    "certificates": [
        "tests/certificates/test_small_lies.py",
        "tests/certificates/test_enclosures.py",
        "tests/certificates/test_singular.py",
        "tests/certificates/test_forgeries.py",
        "tests/certificates/test_files.py",
        "tests/certificates/test_check.py",
    ],
    "exact": ["tests/exact", "tests/certificates/test_small_lies.py"],
    "tradeoff": ["tests/tradeoff", "tests/certificates/test_small_lies.py"],
    "frames": ["tests/frames", "tests/certificates/test_singular.py"],
    "support": ["tests/support", "tests/certificates/test_small_lies.py"],
}
_COMPARE = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq, ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip
_OPERATE = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.Pow: ast.Mult,
    ast.MatMult: ast.Mult, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd,
}  # fmt: skip


def mutants(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Number and kind of every change that :func:`apply` can make."""
    for number, (node, kind) in enumerate(_places(tree)):
        yield number, f"{kind} at line {getattr(node, 'lineno', 0)}"


def apply(tree: ast.Module, wanted: int) -> ast.Module:
    """The tree with one change."""
    tree = copy.deepcopy(tree)
    node, kind = list(_places(tree))[wanted]
    if isinstance(node, ast.Compare):
        if kind == "opposite":
            swap = {ast.Lt: ast.GtE, ast.LtE: ast.Gt, ast.Gt: ast.LtE, ast.GtE: ast.Lt}
            node.ops[0] = swap[type(node.ops[0])]()
        else:
            node.ops[0] = _COMPARE[type(node.ops[0])]()
    elif isinstance(node, ast.BinOp):
        node.op = _OPERATE[type(node.op)]()
    elif isinstance(node, ast.BoolOp):
        node.op = ast.Or() if isinstance(node.op, ast.And) else ast.And()
    elif isinstance(node, ast.UnaryOp):
        node.op = ast.UAdd() if isinstance(node.op, ast.USub) else node.op
        if isinstance(node.op, ast.Not):
            node.operand, node.op = ast.UnaryOp(ast.Not(), node.operand), ast.Not()
    elif isinstance(node, ast.Constant):
        node.value = 10 * node.value if node.value else 1
    elif isinstance(node, ast.If):
        node.test = ast.Constant(kind == "always")
    elif isinstance(node, ast.Expr):
        node.value = ast.Constant(None)
    return ast.fix_missing_locations(tree)


def _places(tree: ast.Module) -> Iterator[tuple[ast.AST, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare) and type(node.ops[0]) in _COMPARE:
            yield node, "comparison"
            if type(node.ops[0]) in (ast.Lt, ast.LtE, ast.Gt, ast.GtE):
                yield node, "opposite"
        elif isinstance(node, ast.BinOp) and type(node.op) in _OPERATE and not _is_type(node):
            yield node, "operator"
        elif isinstance(node, ast.BoolOp):
            yield node, "and/or"
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.Not):
            yield node, "sign or not"
        elif isinstance(node, ast.Constant) and type(node.value) in (int, float):
            yield node, "number"
        elif isinstance(node, ast.If):
            yield node, "always"
            yield node, "never"
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            yield node, "call left out"


def _is_type(node: ast.BinOp) -> bool:
    """Whether ``a | b`` says "one of these types"."""
    parts = (node.left, node.right)
    return isinstance(node.op, ast.BitOr) and any(
        isinstance(p, ast.Name | ast.Attribute | ast.Subscript | ast.Constant) for p in parts
    )


def survives(copy_of: Path, tests: list[str], seconds: float) -> bool:
    """Run the tests in a child that has the heavy libraries loaded already."""
    child = os.fork()
    if child == 0:
        os.setsid()
        silent = os.open(os.devnull, os.O_WRONLY)
        os.dup2(silent, 1), os.dup2(silent, 2)
        os.chdir(copy_of)
        sys.path.insert(0, str(copy_of / "src"))
        import pytest

        arguments = ["-x", "-q", "-p", "no:cacheprovider", "-p", "no:benchmark", "-m", "not slow"]
        os._exit(int(pytest.main([*arguments, *tests])))
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status) == 0
        time.sleep(0.05)
    os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return False


def main() -> None:
    """Sample mutants of a room, run its tests on each, and print the score."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("room", choices=sorted(TESTS))
    parser.add_argument("--count", type=int, default=60)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=240.0, help="limit of one run")
    parser.add_argument("--only", default="", help="only files whose name contains this")
    options = parser.parse_args()
    import pandas  # noqa: F401  loaded once, before the forks
    import scipy.linalg
    import scipy.optimize  # noqa: F401
    import sklearn  # noqa: F401

    with tempfile.TemporaryDirectory() as folder:
        here = Path(folder)
        for part in ("src", "tests", "examples", "pyproject.toml"):
            source = ROOT / part
            (shutil.copytree if source.is_dir() else shutil.copy)(source, here / part)
        files = sorted((here / "src/skcoral" / options.room).glob("*.py"))
        trees = {f: ast.parse(f.read_text("utf-8")) for f in files if options.only in f.name}
        places = [(f, number, what) for f in trees for number, what in mutants(trees[f])]
        chosen = random.Random(options.seed).sample(places, min(options.count, len(places)))
        print(f"{options.room}: {len(places)} mutants, {len(chosen)} sampled", flush=True)
        if not survives(here, TESTS[options.room], 10 * options.seconds):
            raise SystemExit("the tests fail on the source as it is")
        killed = 0
        for file, number, what in chosen:
            text = file.read_text("utf-8")
            file.write_text(ast.unparse(apply(trees[file], number)), "utf-8")
            if survives(here, TESTS[options.room], options.seconds):
                line = text.splitlines()[int(what.rsplit(" ", 1)[1]) - 1].strip()
                print(f"survived: {file.name}: {what}: {line}", flush=True)
            else:
                killed += 1
            file.write_text(text, "utf-8")
        print(f"{options.room}: {killed} of {len(chosen)} killed ({killed / len(chosen):.0%})")


if __name__ == "__main__":
    main()
