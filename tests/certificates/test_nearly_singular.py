"""Results stand up to their own check: nearly collinear variables, extreme floors and weights."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from skcoral import decorrelate, maximize_fidelity, threshold
from skcoral.certificates import check, prove
from skcoral.core.linalg import correlation_of_covariance
from skcoral.exceptions import CoralError

Array = Any


def _chain(p: int) -> Array:
    return np.abs(np.subtract.outer(range(p), range(p))) <= 1


ASKED: dict[str, Callable[[Array, Any], Any]] = {
    "threshold": lambda R, rng: threshold(R),
    "highest floor": lambda R, rng: decorrelate(R),
    "low floors": lambda R, rng: decorrelate(R, rng.uniform(0, 0.6, len(R))),
    "high floors": lambda R, rng: decorrelate(R, rng.uniform(0.6, 1, len(R))),
    "worst": lambda R, rng: decorrelate(R, 0.95, criterion="worst"),
    "absolute": lambda R, rng: decorrelate(R, 0.95, criterion="absolute"),
    "budget": lambda R, rng: maximize_fidelity(R, 0.05),
    "vif": lambda R, rng: maximize_fidelity(R, 2.0, criterion="vif"),
    "anchors, low": lambda R, rng: decorrelate(
        R, rng.uniform(0, 0.6, len(R) - 1), anchors=rng.normal(size=(len(R), len(R) - 1))
    ),
    "anchors, high": lambda R, rng: decorrelate(
        R, rng.uniform(0.6, 1, len(R) - 1), anchors=rng.normal(size=(len(R), len(R) - 1))
    ),
    "anchors, highest": lambda R, rng: decorrelate(
        R, anchors=rng.normal(size=(len(R), len(R) - 1))
    ),
    "support": lambda R, rng: decorrelate(R, 0.99, support=_chain(len(R)), n_starts=3),
    "support, worst": lambda R, rng: decorrelate(
        R, 0.5, support=_chain(len(R)), n_starts=3, criterion="worst"
    ),
}

SLOW = ("vif", "support, worst")


def _of_condition(condition: float, rng: Any, p: int = 4) -> Array:
    """A correlation matrix: one small eigenvalue, or a geometric fall."""
    Q = np.linalg.qr(rng.normal(size=(p, p)))[0]
    fall = np.geomspace(1 / condition, 1, p)
    values = fall if rng.random() < 0.5 else np.r_[1 / condition, rng.uniform(0.5, 2, p - 1)]
    return correlation_of_covariance((Q * values) @ Q.T)


# Each question with one condition in the ordinary suite, with all four in the slow one.
CASES = [
    pytest.param(asked, c, marks=() if c == (1e10, 1e12)[i % 2] else pytest.mark.slow)
    for i, asked in enumerate(ASKED)
    for c in (1e9, 1e10, 1e11, 1e12)
]


@pytest.mark.parametrize(("asked", "condition"), CASES)
def test_own_check(asked: str, condition: float) -> None:
    rng = np.random.default_rng(int(np.log10(condition)))
    for _ in range(2 if asked in SLOW else 4):
        R = _of_condition(condition, rng)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                result = ASKED[asked](R, rng)
        except CoralError:
            continue  # refused in words: too nearly singular for what was asked
        verdict = check(result, R)
        assert verdict.passed, (result.status, verdict.problems)
        assert prove(result, R).passed


@pytest.mark.parametrize(
    ("seed", "floor"), [(14, 0.93), pytest.param(16, None, marks=pytest.mark.slow)]
)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_a_total_among_the_variables(seed: int, floor: float | None) -> None:
    """The bound of a singular matrix is what its certificate proves, and no less."""
    rng = np.random.default_rng(seed)
    p = int(rng.integers(5, 8))
    X = rng.normal(size=(4 * p, p))
    X[:, -1] = X[:, :-1].sum(axis=1)
    R = np.corrcoef(X.T)
    verdict = check(decorrelate(R, floor, criterion="absolute"), R)
    assert verdict.passed, verdict.problems


@pytest.mark.parametrize("seed", [10, 22, 29])
def test_large_coefficients_keep_unit_variance(seed: int) -> None:
    """Coefficients of 1e5 beside floors of one: each column is scaled as far as its digits go."""
    rng = np.random.default_rng(seed)
    Q = np.linalg.qr(rng.normal(size=(4, 4)))[0]
    R = correlation_of_covariance((Q * np.r_[1 / 9e11, rng.uniform(0.5, 2, 3)]) @ Q.T)
    result = decorrelate(R, 1 - rng.choice([0, 1e-14, 1e-9, 1e-2, 0.5], 4))
    verdict = check(result, R)
    assert verdict.passed, verdict.problems


@pytest.mark.parametrize("criterion", ["squared", "worst", "absolute"])
@pytest.mark.parametrize("floor", [0.1, 0.999])
def test_large_weights_on_correlations_that_vanish(criterion: str, floor: float) -> None:
    k = np.arange(6)
    for R in (0.999 ** np.abs(k[:, None] - k), 0.9 + 0.1 * np.eye(6)):
        answer = decorrelate(R, floor, criterion=criterion, pair_weights=np.full((6, 6), 1e8))
        assert check(answer, R).problems == ()
