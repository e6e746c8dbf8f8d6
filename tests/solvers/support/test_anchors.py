"""Supports, signs and intervals for outputs that are anchored to composites."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from certificates import verifier
from skcoral import CORAL, decorrelate
from skcoral.bounds.arithmetic import Floats
from skcoral.bounds.columns import column, proved_columns
from skcoral.certificates import certificate_text, check
from skcoral.exceptions import (
    InfeasibleError,
    InvalidArgumentError,
)
from skcoral.models import load_model, save_model
from skcoral.solvers.support import pattern

from .certified import assert_feasible, by_slsqp, fidelity

CRITERIA = ("squared", "worst", "absolute")


def problem(seed: int) -> tuple[Any, Any, Any]:
    """A random matrix, composites (of any length) and a support in which each has something."""
    rng = np.random.default_rng(seed)
    p = int(rng.integers(3, 7))
    k = int(rng.integers(2, p + 1))
    A = rng.normal(size=(p, p)) + rng.uniform(0.5, 1.5) * np.eye(p)
    R = A @ A.T
    R /= np.sqrt(np.outer(np.diag(R), np.diag(R)))
    R = 0.5 * (R + R.T)
    np.fill_diagonal(R, 1.0)
    B = rng.normal(size=(p, k)) * (rng.random((p, k)) < 0.7) * 10.0 ** rng.integers(-2, 3, size=k)
    B[rng.permutation(p)[:k], np.arange(k)] += 1.0
    mask = rng.random((p, k)) < 0.6
    mask[rng.integers(p, size=k), np.arange(k)] = True
    return R, B, mask


def reach(R: Any, b: Any, allowed: Any) -> float:
    """Largest correlation of a composite with combinations of allowed sources: a multiple R."""
    on = np.flatnonzero(allowed)
    r = (R @ b)[on]
    return float(np.sqrt(r @ np.linalg.solve(R[np.ix_(on, on)], r) / (b @ R @ b)))


def reaches(R: Any, B: Any, mask: Any) -> Any:
    return np.array([reach(R, b, on) for b, on in zip(B.T, mask.T, strict=True)])


def some_slow(quick: int, count: int) -> list[Any]:
    """Seeds, of which those from ``quick`` on are for the slow suite."""
    slow = (pytest.param(seed, marks=pytest.mark.slow) for seed in range(quick, count))
    return [*range(quick), *slow]


@pytest.mark.parametrize("seed", some_slow(4, 12))
@pytest.mark.parametrize("criterion", CRITERIA)
def test_answers_are_feasible_and_checked(seed: int, criterion: str) -> None:
    R, B, mask = problem(seed)
    for share in (0.0, 0.7, 0.95):
        rho = share * reaches(R, B, mask)
        answer = decorrelate(R, rho, criterion=criterion, support=mask, anchors=B, n_starts=12)
        assert_feasible(R, mask, answer, B)
        assert answer.lower_bound <= answer.objective
        assert check(answer, R).passed
        assert not verifier.problems(json.loads(certificate_text(answer, R)), R)


@pytest.mark.parametrize("seed", range(4))
def test_another_solver_finds_nothing_better(seed: int) -> None:
    R, B, mask = problem(seed + 100)
    rho = 0.9 * reaches(R, B, mask)
    answer = decorrelate(R, rho, support=mask, anchors=B, n_starts=40)
    other = by_slsqp(R, mask, rho, 12, seed, B)
    assert answer.objective <= other + 1e-7
    assert answer.lower_bound <= other + 1e-7


@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize("seed", range(2))
def test_a_full_support_restricts_nothing(seed: int, criterion: str) -> None:
    """Without zeros the problem is that of the composites' correlations, which is convex."""
    R, B, mask = problem(seed + 200)
    full = np.ones_like(mask)
    for rho in (0.9, 0.97):
        dense = decorrelate(R, rho, criterion=criterion, anchors=B)
        answer = decorrelate(R, rho, criterion=criterion, anchors=B, support=full, n_starts=30)
        assert answer.objective == pytest.approx(dense.objective, abs=2e-7)
        assert answer.lower_bound <= dense.objective + 1e-9


@pytest.mark.parametrize("criterion", CRITERIA)
def test_variables_as_composites_change_nothing(simulated: Any, criterion: str) -> None:
    R = simulated(6, seed=2)
    mask = (np.abs(R) > 0.2) | np.eye(6, dtype=bool)
    plain = decorrelate(R, 0.95, criterion=criterion, support=mask)
    composed = decorrelate(R, 0.95, criterion=criterion, support=mask, anchors=3.0 * np.eye(6))
    assert composed.objective == pytest.approx(plain.objective, abs=1e-9)
    assert composed.lower_bound == pytest.approx(plain.lower_bound, abs=1e-7)
    np.testing.assert_allclose(composed.T, plain.T, atol=1e-5)
    np.testing.assert_allclose(composed.prices, plain.prices, atol=1e-4)


def test_signs_of_anchors_and_outputs_go_together(simulated: Any) -> None:
    R, rng = simulated(5), np.random.default_rng(3)
    B, mask = rng.normal(size=(5, 4)), rng.random((5, 4)) < 0.8
    mask[np.arange(4), np.arange(4)] = True
    rho = 0.8 * reaches(R, B, mask)
    flip = np.array([1.0, -1.0, -2.0, 0.5])
    first, second = (decorrelate(R, rho, support=mask, anchors=A) for A in (B, B * flip))
    assert first.objective == pytest.approx(second.objective, abs=1e-9)
    np.testing.assert_allclose(fidelity(R, B, second.T * np.sign(flip)), second.fidelity, atol=1e-9)


@pytest.mark.parametrize("seed", some_slow(2, 6))
def test_prices_are_derivatives(seed: int) -> None:
    """A floor of a composite that its support cannot reach costs in units of its own fidelity."""
    R, B, mask = problem(seed + 300)
    rho = 0.97 * reaches(R, B, mask)
    answer = decorrelate(R, rho, support=mask, anchors=B, n_starts=30)
    if answer.status == "exact":
        return
    for j in np.flatnonzero(mask.sum(axis=0) > 1):
        step = 1e-5
        ends = []
        for sign in (-1.0, 1.0):
            moved = rho.copy()
            moved[j] += sign * step
            ends.append(decorrelate(R, moved, support=mask, anchors=B, n_starts=30).objective)
        slope = (ends[1] - ends[0]) / (2 * step)
        assert slope == pytest.approx(answer.prices[j], rel=2e-2, abs=2e-3)


def test_a_floor_beyond_the_support_is_refused_with_the_highest_one(simulated: Any) -> None:
    R = simulated(5)
    B = pd.DataFrame(np.eye(5)[:, :2] + np.eye(5)[:, 2:4], columns=["up", "down"])
    most = reach(R, B["down"].to_numpy(), np.array([1, 0, 0, 0, 1], bool))
    support = {"down": [0, 4]}
    with pytest.raises(InfeasibleError, match=f"'down' allow a fidelity of at most {most:.5f}"):
        decorrelate(R, 0.999, anchors=B, support=support)
    highest = np.floor(1e6 * most) / 1e6
    answer = decorrelate(R, {"down": highest}, anchors=B, support=support)
    assert answer.fidelity[1] == pytest.approx(most, abs=2e-6)
    assert check(answer, R).passed


def test_a_floor_of_one_is_the_composite_itself(simulated: Any) -> None:
    R = simulated(5)
    B = np.array([[1.0, 0, 0], [0.3, 0, 0], [0, 1, 0], [0, -0.7, 1], [0, 0, 0.2]])
    mask = (B != 0) | (np.abs(R @ B) > 0.2)
    answer = decorrelate(R, [1.0, 0.9, 0.8], anchors=B, support=mask)
    length = np.sqrt(B[:, 0] @ R @ B[:, 0])
    np.testing.assert_allclose(answer.T[:, 0], B[:, 0] / length, atol=1e-14)
    assert check(answer, R).passed
    with pytest.raises(InfeasibleError, match="'anchor0'"):
        decorrelate(R, [1.0, 0.0, 0.0], anchors=B, support={0: [0], 1: [2], 2: [3]})


@pytest.mark.parametrize("seed", range(4))
def test_projections_in_closed_form(seed: int) -> None:
    R, B, mask = problem(seed + 400)
    for b, on in zip(B.T, mask.T, strict=True):
        projected = column(R, b, on, 0.0)
        inside = R[np.ix_(projected.sources, projected.sources)]
        np.testing.assert_allclose(
            projected.K @ inside @ projected.K.T, np.eye(len(projected.K)), atol=1e-12
        )
        assert projected.reach == pytest.approx(reach(R, b, on), abs=1e-12)
        pull = projected.K @ (R @ b)[projected.sources] / np.sqrt(b @ R @ b)
        np.testing.assert_allclose(pull, projected.reach * np.eye(len(pull))[0], atol=1e-12)


@pytest.mark.parametrize("kind", ["floats", "balls"])
def test_proved_floors_hold_and_lose_a_rounding_only(kind: str) -> None:
    arithmetic: Any = Floats()
    if kind == "balls":
        from skcoral.bounds.arithmetic import Balls

        arithmetic = Balls(pytest.importorskip("flint"))
    for seed in range(6):
        R, B, mask = problem(seed + 500)
        rho = 0.8 * reaches(R, B, mask)
        known = proved_columns(mask.astype(float), rho, R, B, arithmetic)
        for j, (b, on, floor) in enumerate(zip(B.T, mask.T, rho, strict=True)):
            if on.sum() > 1:
                wanted = floor / reach(R, b, on)
                assert wanted - 1e-12 <= known.floors.lower[j] <= wanted + 1e-12
                assert known.floors.upper[j] >= wanted - 1e-12


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("criterion", CRITERIA)
def test_moments_bound_composites(seed: int, criterion: str, monkeypatch: Any) -> None:
    import skcoral.solvers.support.moments as moments

    monkeypatch.setattr(moments, "TIME_LIMIT", 1.5)
    R, B, mask = problem(seed + 600)
    rho = 0.9 * reaches(R, B, mask)
    options: Any = {"support": mask, "anchors": B, "criterion": criterion, "n_starts": 12}
    quick = decorrelate(R, rho, **options)
    better = decorrelate(R, rho, proof="moments", **options)
    assert quick.lower_bound - 1e-9 <= better.lower_bound <= better.objective + 1e-12
    assert check(better, R).passed
    assert not verifier.problems(json.loads(certificate_text(better, R)), R)


@pytest.mark.filterwarnings("ignore:Values in x were outside bounds:RuntimeWarning")
@pytest.mark.parametrize("seed", some_slow(2, 4))
def test_signs_and_intervals_of_composites(seed: int) -> None:
    R, B, mask = problem(seed + 800)
    mask = mask | (B != 0)
    lower = np.where(B != 0, np.minimum(0.0, np.sign(B)) * 9.0, -0.3)
    upper = np.where(B != 0, np.maximum(0.0, np.sign(B)) * 9.0, 0.3)
    rho = np.full(B.shape[1], 0.85)
    answer = decorrelate(R, rho, support=mask, anchors=B, bounds=(lower, upper), n_starts=10)
    assert_feasible(R, mask, answer, B)
    assert (np.where(mask, lower, 0) <= answer.T).all()
    assert (np.where(mask, upper, 0) >= answer.T).all()
    assert check(answer, R).passed
    loose = decorrelate(R, rho, support=mask, anchors=B, n_starts=10)
    assert answer.objective >= loose.lower_bound - 1e-9
    other = by_slsqp(R, mask, rho, 8, seed, B, (lower, upper))
    assert answer.objective <= other + 1e-6


def table(rows: list[tuple[Any, ...]]) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=["source", "output", "lower", "upper"])


def test_a_table_of_pairs_has_the_support_and_the_intervals(simulated: Any) -> None:
    names = list("abcde")
    R = pd.DataFrame(simulated(5), index=names, columns=names)
    B = pd.DataFrame(
        [[1.0, 0], [1, 0], [0, 1], [0, 1], [0, 0]], index=names, columns=["first", "second"]
    )
    rows = [("a", "first", 0.0, None), ("b", "first", 0.0, 2.0), ("e", "first", -0.2, 0.2)]
    answer = decorrelate(R, 0.8, anchors=B, support=table(rows))
    wanted = np.array([[1, 0], [1, 0], [0, 1], [0, 1], [1, 0]], bool)
    np.testing.assert_array_equal(np.asarray(answer.T)[~wanted], 0.0)
    assert (answer.T[:2, 0] >= 0).all()
    assert abs(answer.T[4, 0]) <= 0.2
    lower, upper = np.full((5, 2), -np.inf), np.full((5, 2), np.inf)
    lower[:2, 0], upper[1, 0], lower[4, 0], upper[4, 0] = 0.0, 2.0, -0.2, 0.2
    same = decorrelate(R, 0.8, anchors=B, support=wanted, bounds=(lower, upper))
    np.testing.assert_array_equal(same.T, answer.T)
    with pytest.raises(InvalidArgumentError, match="not both"):
        decorrelate(R, 0.8, anchors=B, support=table(rows), bounds=(lower, upper))
    with pytest.raises(InvalidArgumentError, match="'z'"):
        decorrelate(R, 0.8, anchors=B, support=table([("z", "first", 0, 1)]))
    with pytest.raises(InvalidArgumentError, match="must be one number"):
        decorrelate(R, 0.8, anchors=B, support=table([("a", "first", "low", 1)]))
    pairs = pd.DataFrame({"source": ["a"], "output": ["b"]})
    np.testing.assert_array_equal(
        pattern(pairs, names),
        np.eye(5, dtype=bool) | (np.add.outer([4, 0, 0, 0, 0], range(5)) == 5),
    )


def test_every_way_of_saying_a_support_of_composites() -> None:
    B = np.array([[1.0, 0.0], [2.0, 0.0], [0.0, 1.0]])
    wanted = np.array([[1, 0], [0, 0], [1, 1]], bool)
    ways = [
        wanted,
        wanted.astype(int).tolist(),
        pd.DataFrame(wanted, index=list("abc"), columns=["u", "v"]).loc[list("bca"), ["v", "u"]],
        {"u": ["a", "c"]},
        {0: [0, 2]},
        [("a", "u"), ("c", "u")],
        pd.DataFrame({"source": ["a", "c"], "output": ["u", "u"]}),
    ]
    for way in ways:
        np.testing.assert_array_equal(pattern(way, list("abc"), ["u", "v"], B), wanted)
    with pytest.raises(InvalidArgumentError, match="3 by 2"):
        pattern(np.eye(3, dtype=bool), list("abc"), ["u", "v"], B)
    R = np.array([[1.0, 0.5, 0.0], [0.5, 1.0, 0.3], [0.0, 0.3, 1.0]])
    limited = decorrelate(R, 0.5, anchors=B, support=0.4)
    r = R @ B / np.sqrt(np.diag(B.T @ R @ B))
    np.testing.assert_array_equal(limited.T != 0, np.abs(r) > 0.4)


def test_the_estimator_takes_both(tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    X = rng.normal(size=(300, 5)) @ (np.eye(5) + 0.6 * rng.normal(size=(5, 5))) + 4.0
    names = list("abcde")
    frame = pd.DataFrame(X, columns=names)
    B = pd.DataFrame(
        [[1.0, 0], [1, 0], [0, 1], [0, 1], [0, 0]], index=names, columns=["first", "second"]
    )
    rows = [("a", "first", 0.0, None), ("b", "first", 0.0, None), ("e", "first", None, 0.0)]
    model = CORAL(0.7, anchors=B, support=table(rows), output_scale="unit").fit(frame)
    out = model.transform(frame)
    T = model.result_.T
    assert out.shape == (300, 2)
    assert (T[:2, 0] >= 0).all()
    assert T[4, 0] <= 0
    assert not T[2:4, 0].any()
    composite = (frame - frame.mean()) / frame.std() @ B["first"]
    assert np.corrcoef(composite, np.asarray(out)[:, 0])[0, 1] >= 0.7 - 1e-9
    assert check(model.result_, model.correlation_).passed
    save_model(model, tmp_path / "model.json")
    again = load_model(tmp_path / "model.json")
    np.testing.assert_array_equal(again.result_.T, T)
    np.testing.assert_array_equal(again.transform(frame), out)
    assert check(again.result_, again.correlation_).passed
