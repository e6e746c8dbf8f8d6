"""Every number and word of a claim, falsified: by the judges of the package and stand-alone.

Numbers are falsified just beyond their tolerance and just within it, while all other claims are
made to hold, so that the falsified one is the reason for the refusal: a tolerance three times as
wide or as narrow fails here. The ordinary suite takes each number of some kinds of results, the
slow one those of all kinds.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from skcoral.certificates import check
from skcoral.core.lowrank import FactoredCorrelation, LowRankTransform
from skcoral.exceptions import CertificateError

from .conftest import broken, failed, refused, verifier_refuses, with_arrays
from .results import KINDS, R, about, honest

LARGE = ["large, squared", "large, absolute"]
Lies = Iterator[tuple[Any, str, bool]]


def nudged(value: Any, step: float, at: int | None = None) -> Any:
    """A number, or an array in one place that is finite, moved by a step."""
    if isinstance(value, FactoredCorrelation):
        return FactoredCorrelation(nudged(value.factor, step, at))
    if isinstance(value, LowRankTransform):
        return LowRankTransform(nudged(value.left, step, at), value.right)
    out = np.array(value)
    out.flat[place_in(out) if at is None else at] += step
    return out if out.ndim else float(out)


def place_in(value: Any) -> int:
    places = np.flatnonzero(np.isfinite(np.ravel(value)))
    return int(places[min(5, len(places) - 1)])


def moved(result: Any, field: str, steps: dict[float, bool], claim: str = "") -> Lies:
    for step, wrong in steps.items():
        yield (
            replace(result, **{field: nudged(getattr(result, field), step)}),
            claim or field,
            wrong,
        )


def with_goal(result: Any, claim: str, values: dict[str, dict[float, bool]]) -> Lies:
    for name, steps in values.items():
        for value, wrong in steps.items():
            yield replace(result, goal=replace(result.goal, **{name: value})), claim, wrong


def both_sides(size: float, most: float = 0.3) -> dict[float, bool]:
    return {3 * size: True, -3 * size: True, most * size: False, -most * size: False}


def lies_about(name: str, result: Any, matrix: Any) -> Lies:
    """Changes of one number, the claim that they are refused by, and whether they are."""
    is_threshold, low = not hasattr(result, "objective"), "rank" in result.certificate.info
    by_factor = "factor" in result.certificate.arrays
    scale = 1.0 if is_threshold else max(1.0, result.objective)
    goal = type(getattr(result, "goal", None)).__name__
    if name == "fidelity":
        yield from moved(result, name, both_sides(1e-9))
    elif is_threshold and name in ("lower", "upper"):
        step, side = 1e-9 if low else 1e-12, 1 if name == "lower" else -1
        value = getattr(check(result, matrix), name)
        for size, wrong in ((5 * step, True), (0.3 * step, False), (-3e-9, True), (-3e-10, False)):
            yield replace(result, **{name: value + side * size}), name, wrong
    elif is_threshold and name == "tol":
        yield from moved(result, name, {5e-7: True, -1.0: True, -float(result.tol): True})
    elif is_threshold and name == "weights":
        yield from moved(result, name, {1e-15: True, -1e-15: True})
    elif is_threshold:
        return
    elif name == "correlation":
        yield from moved(result, name, both_sides(1e-9))
    elif name == "objective":
        yield from moved(result, name, both_sides(1e-9 * scale))
    elif name == "lower" and result.certificate.is_exact:
        yield from moved(result, "lower_bound", {1e-300: True}, "lower bound")
    elif name == "lower":
        proved = replace(result, lower_bound=check(result, matrix).lower)
        large = max(1.0, proved.lower_bound)
        steps = {3e-9 * scale: True, 0.5e-9 * scale: False}
        steps |= {-3e-7 * large: True, -0.5e-7 * large: False}
        yield from moved(proved, "lower_bound", steps, "lower bound")
    elif name in ("prices", "weights") and np.isfinite(getattr(result, name)).any():
        near = 1e-6 if by_factor or result.is_restricted else 1e-9 if name == "prices" else 0.0
        value = getattr(result, name)
        size = max(1.0, abs(float(value[place_in(value)])))
        steps = {3 * near * size + 1e-15 * size: True, 0.1 * near * size: near == 0.0}
        yield from moved(result, name, {step: wrong for step, wrong in steps.items() if step})
    elif name == "goal" and goal == "Budget":
        top, spent = result.goal.rho_upper, float(result.objective)
        sides = {5e-9: True, 0.5e-9: False}
        budgets = {spent - by * scale: wrong for by, wrong in sides.items() if spent > 1e-6}
        yield from with_goal(result, "budget", {"budget": budgets})
        below = {top - 5e-9: True, top - 0.2e-9: False} if top < 1 else {}
        yield from with_goal(result, "largest floor", {"rho_upper": below})
    elif name == "goal" and goal == "VifLimit":
        unique, top = 1.0 / result.goal.largest_vif, result.goal.rho_upper
        steps = both_sides(1e-9, 0.2)
        largest = {1.0 / (unique + step): wrong for step, wrong in steps.items()}
        yield from with_goal(result, "largest VIF", {"largest_vif": largest})
        tops = {top + step: wrong for step, wrong in steps.items()}
        yield from with_goal(result, "largest floor", {"rho_upper": tops})


# numbers of few kinds
OWN = {"lower": "threshold", "upper": "threshold", "tol": "threshold", "goal": "budget|vif"}
NAMES = ["fidelity", "correlation", "objective", "prices", "weights", *OWN]
ALL = [*KINDS, *LARGE]


def is_quick(i: int, name: str, j: int, kind: str) -> bool:
    """Over the diagonal, and the numbers that few kinds have."""
    return (i + j) % 9 == 0 or any(word in kind for word in OWN.get(name, "none").split("|"))


CASES = [
    pytest.param(name, kind, marks=() if is_quick(i, name, j, kind) else pytest.mark.slow)
    for i, name in enumerate(NAMES)
    for j, kind in enumerate(ALL)
]


@pytest.mark.parametrize(("name", "kind"), CASES)
def test_numbers_at_their_tolerance(name: str, kind: str) -> None:
    result, matrix = about(kind)
    for lie, claim, wrong in lies_about(name, result, matrix):
        broken(lie, *[claim] * wrong, matrix=matrix)


# By how much a number has to be changed to be another one, at most.
MATTERS = {"prices": 5e-6, "weights": 5e-6, "lower_bound": 3e-6, "T": 1e-5, "pair_weights": 1e-3}
MATTERS |= {
    "rho_upper": 2e-7,
    "budget": 1e-6,
    "max_vif": 1e-6,
    "largest_vif": 1e-6,
    "anchors": 1e-3,
}
every = pytest.mark.parametrize("kind", KINDS)


def changes_of(result: Any, rng: Any, count: int) -> Iterator[tuple[str, Any]]:
    """Some numbers of every field, changed in the last place that matters and grossly."""
    slack = result.fidelity - getattr(result, "rho_min", 0)
    for name in {"rho_min", "lower", "upper", "fidelity", "correlation", "objective", *MATTERS}:
        record = result if hasattr(result, name) else getattr(result, "goal", None)
        value = getattr(record, name, None)
        if value is None:
            continue
        inner = getattr(value, "factor", getattr(value, "left", value))
        given = np.flatnonzero(np.isfinite(inner) & (np.not_equal(inner, 0) | (name != "T")))
        for at in rng.permutation(given)[:count].tolist():
            number = float(np.ravel(inner)[at])
            size = MATTERS.get(name, 3e-9) * max(1.0, abs(number))
            steps = [size, -size] + [0.5 * max(1.0, abs(number))] * (count > 1)
            if name == "rho_min":  # lower floors that do not bind are another truth
                steps = [float(slack[at]) + 2e-9, float(slack[at]) + 0.1]
            elif name == "rho_upper":  # a bound that is higher than proved is true
                steps = [-size, -0.5]
            elif name in ("anchors", "pair_weights") and number == 0:
                continue
            for step in steps:
                other = {name: nudged(value, step, at)}
                goal = other if record is result else {"goal": replace(record, **other)}
                yield name, replace(result, **goal)


@every
@pytest.mark.parametrize("count", [1, pytest.param(8, marks=pytest.mark.slow)])
def test_every_number(kind: str, count: int) -> None:
    result, matrix = about(kind)
    for name, lie in changes_of(result, np.random.default_rng(KINDS.index(kind)), count):
        assert refused(lie, matrix), name
        unknown = name in ("prices", "weights") and result.certificate.kind == "support"
        assert unknown or verifier_refuses(lie, matrix), name


OTHER_WORDS = {
    "status": ["exact", "optimal", "best_found", "not_converged"],
    "criterion": ["worst", "squared"],
}


@every
def test_every_word(kind: str) -> None:
    result, matrix = about(kind)
    for name in set(OTHER_WORDS) & set(vars(result)):
        word, words = getattr(result, name), OTHER_WORDS[name]
        if name == "criterion" and result.certificate.is_exact:
            words = []  # no residual correlation is none by any criterion
        for other in {"", f"{word}x", *words} - {word}:
            either = {word, other} == {"best_found", "not_converged"}  # for an open gap
            assert either or refused(replace(result, **{name: other}), matrix), other
    for other in {"", "exact", "tradeoff"} - {result.certificate.kind}:
        proof = replace(result.certificate, kind=other)
        assert refused(replace(result, certificate=proof), matrix), other


@every
@pytest.mark.parametrize("count", [2, pytest.param(4, marks=pytest.mark.slow)])
def test_dual_points(kind: str, count: int) -> None:
    """Arrays of a proof may be replaced by others that prove as much, and by no others."""
    result, matrix = about(kind)
    for name, a in result.certificate.arrays.items():
        beside = a + np.eye(*a.shape) if a.ndim == 2 else a[::-1]
        for other in (1.5 * a, beside, 0.5 * a, -a)[:count]:
            if np.allclose(other, a, atol=1e-7) or (name == "factor" and other[0, 0] == -a[0, 0]):
                continue  # the product of -A with itself is that of A
            lie = with_arrays(result, **{name: other})
            if name in ("weights", "multipliers") and np.all(other >= 0):
                prices = {"prices": 2 * other} if name == "multipliers" else {}
                lie = replace(lie, weights=other, **prices)
            try:
                judgement = check(lie, matrix)
            except CertificateError:
                continue
            if judgement.passed:  # then it has to be true, and as sharp as promised
                assert judgement.lower <= getattr(result, "objective", judgement.upper) + 1e-7
            else:
                assert judgement.problems
                assert name in ("slope", "eta") or verifier_refuses(lie, matrix), name


def test_a_limit_that_is_exceeded() -> None:
    result = honest("vif")
    unique = 1.0 / result.goal.largest_vif
    for limit, wrong in ((1 / (unique + 3e-9), True), (1 / (unique + 0.3e-9), False), (0.0, True)):
        goal = replace(result.goal, max_vif=limit)
        assert ("VIF" in failed(replace(result, goal=goal))) == wrong, limit


def test_the_two_sides_of_a_threshold() -> None:
    th, edge = honest("threshold"), about("wide, threshold")[0]
    heavy = th.weights * (1 + 5e-9)
    broken(replace(with_arrays(th, weights=heavy), weights=heavy), "weights")
    turned = th.T.copy()
    turned[:, 0] += 5e-8 * turned[:, 1]
    assert "uncorrelated" in failed(replace(th, T=turned, fidelity=np.diag(R @ turned)))
    matrix, kappa = about("wide, threshold")[1], edge.certificate.arrays["kappa"]
    weak = with_arrays(edge, kappa=0.9 * kappa)
    above = check(weak, matrix).upper
    assert above > edge.upper + 1e-6
    broken(weak, "upper", "gap", matrix=matrix)
    broken(replace(weak, upper=above), matrix=matrix)
