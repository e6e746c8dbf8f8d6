"""A round of the fuzz run, and its judge on falsified answers."""

import importlib.util
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from skcoral import decorrelate

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))
spec = importlib.util.spec_from_file_location("fuzz_run", HERE / "__main__.py")
fuzz_run = importlib.util.module_from_spec(spec)
spec.loader.exec_module(fuzz_run)
judge, problems = fuzz_run.judge, fuzz_run.problems


@pytest.mark.parametrize("only", ["factor", "equal", "nearly", "support", "tables", "files"])
def test_a_short_run_finds_nothing(tmp_path, only):
    tally = fuzz_run.run(60, 7, tmp_path, at_most=8, only=only)
    assert tally.counts
    assert all(counts["tried"] == 8 for counts in tally.counts.values())
    assert tally.bad == 0, tally.failures


@pytest.fixture(scope="module")
def solved():
    R = problems.factor(np.random.default_rng(3), 5)
    return R, decorrelate(R, 0.97)


def test_the_judge_accepts_true_answers(solved):
    R, result = solved
    assert judge.wrongs(R, result, {}) == []


@pytest.mark.parametrize(
    ("lie", "words"),
    [
        (lambda r: replace(r, T=1.001 * r.T), "variances"),
        (lambda r: replace(r, T=np.eye(5)[:, ::-1].copy()), "floor"),
        (lambda r: replace(r, objective=r.objective + 1e-5), "residual"),
        (lambda r: replace(r, lower_bound=r.objective + 1e-6), "crossed"),
        (lambda r: replace(r, lower_bound=1e3, objective=1e3), "identity"),
        (lambda r: replace(r, status="exact"), "its own check"),
    ],
)
def test_the_judge_rejects_false_answers(solved, lie, words):
    R, result = solved
    assert any(words in wrong for wrong in judge.wrongs(R, lie(result), {}))


def test_the_judge_sees_coefficients_outside_a_support(solved):
    R, result = solved
    wrongs = judge.wrongs(R, result, {"support": np.eye(5, dtype=bool)})
    assert "coefficients outside the support" in wrongs


def test_crashes_and_refusals_are_distinguished():
    tally = fuzz_run.Tally()

    def refused(_):
        decorrelate(np.eye(3), 2.0)

    fuzz_run.attempt(tally, "k", 1, refused)
    fuzz_run.attempt(tally, "k", 1, lambda _: 1 / 0)
    fuzz_run.attempt(tally, "k", 1, lambda _: np.float64(1) / np.float64(0))
    assert tally.counts["k"] == {"tried": 3, "refused": 1, "crashed": 2}
    assert tally.bad == 2
    assert "ZeroDivisionError" in tally.failures[0]
    assert tally.table().splitlines()[-1].split() == ["all", "3", "1", "0", "0", "2", "0"]
