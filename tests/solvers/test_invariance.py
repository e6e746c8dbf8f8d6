"""Order and signs of the variables do not matter, and the same question has the same bits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from skcoral import decorrelate, maximize_fidelity, threshold
from skcoral.datasets import load_wine, make_system

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")

WINE = np.asarray(load_wine().correlation)
SYSTEM = make_system(6, seed=8)
SINGULAR = np.corrcoef(np.random.default_rng(0).normal(size=(6, 7)).T)
CRITERIA = ("squared", "worst", "absolute")


def tradeoff(criterion: str) -> Callable[[Any, Any], Any]:
    return lambda R, floors: decorrelate(R, floors, criterion=criterion)


def on_support(R: Any, floors: Any) -> Any:
    return decorrelate(R, floors, support=np.abs(R) > 0.25, n_starts=10)


def limited(R: Any, floors: Any) -> Any:
    return maximize_fidelity(R, 1.7, criterion="vif")


# question, matrix, floors, how well the values agree, and the coefficients
QUESTIONS: dict[str, tuple[Any, Any, tuple[float, float], float, float]] = {
    "threshold": (lambda R, floors: threshold(R), WINE, (0, 0), 1e-10, 1e-6),
    "exact": (tradeoff("squared"), WINE, (0.6, 0.82), 1e-10, 1e-6),
    **{c: (tradeoff(c), WINE, (0.85, 0.97), 1e-7, 1e-6) for c in CRITERIA},
    "VIF": (limited, WINE, (0, 0), 1e-8, 1e-4),
    "support": (on_support, SYSTEM, (0.9, 0.99), 1e-8, 1e-4),
    "singular": (tradeoff("squared"), SINGULAR, (0.98, 0.999), 1e-7, 1e-4),
}


def numbers(answer: Any) -> list[float]:
    """What an answer promises in one number each."""
    if hasattr(answer, "upper"):
        return [answer.lower, answer.upper]
    return [answer.objective, answer.lower_bound, answer.mean_fidelity]


@pytest.mark.parametrize("question", QUESTIONS)
def test_order_and_signs_of_the_variables_do_not_matter(question: str) -> None:
    ask, R, ends, close, coefficients = QUESTIONS[question]
    rng = np.random.default_rng(0)
    floors, order = rng.uniform(*ends, len(R)), rng.permutation(len(R))
    signs = rng.choice([-1.0, 1.0], len(R))
    one = ask(R, floors)
    other = ask((R * np.outer(signs, signs))[np.ix_(order, order)], floors[order])
    np.testing.assert_allclose(numbers(other), numbers(one), rtol=0, atol=close)
    turned = (one.T * np.outer(signs, signs))[np.ix_(order, order)]
    np.testing.assert_allclose(R_metric(R, order, signs, other.T - turned), 0, atol=coefficients)


def R_metric(R: Any, order: Any, signs: Any, change: Any) -> Any:
    """What a change of coefficients does to the fidelities of all variables."""
    return (R * np.outer(signs, signs))[np.ix_(order, order)] @ change


@pytest.mark.parametrize("question", QUESTIONS)
def test_the_same_question_has_the_same_bits(question: str) -> None:
    ask, R, ends, _, _ = QUESTIONS[question]
    floors = np.random.default_rng(1).uniform(*ends, len(R))
    one, other = (ask(R.copy(), floors) for _ in range(2))
    assert numbers(one) == numbers(other)
    for name in ("T", "weights", "fidelity"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
