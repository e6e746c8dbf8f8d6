"""Honest results of every kind, and what it means to refuse one."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import flint
import numpy as np
import pytest

from skcoral import decorrelate, maximize_fidelity, threshold
from skcoral.bounds.arithmetic import PRECISION, Balls, Floats
from skcoral.certificates import check, evaluation, prove
from skcoral.core.solution import Certificate
from skcoral.datasets import make_system
from skcoral.exceptions import CertificateError, NotCertifiedWarning
from skcoral.solvers.support import support_from_threshold

R = make_system(6)
PAIRS = np.abs(np.subtract.outer(range(6), range(6))).astype(float)
ANCHORS = np.random.default_rng(5).normal(size=(6, 4))
MASK = support_from_threshold(R, 0.2)

MAKERS: dict[str, Callable[[], Any]] = {
    "threshold": lambda: threshold(R),
    "edge": lambda: decorrelate(R),
    "exact": lambda: decorrelate(R, [0.97, 0.96, 0.0, 0.5, 0.9, 0.9]),
    "exact, anchors": lambda: decorrelate(R, 0.3, anchors=ANCHORS),
    "squared": lambda: decorrelate(R, 0.99),
    "worst": lambda: decorrelate(R, 0.99, criterion="worst"),
    "absolute": lambda: decorrelate(R, 0.99, criterion="absolute"),
    "weighted": lambda: decorrelate(R, 0.99, pair_weights=PAIRS),
    "weighted worst": lambda: decorrelate(R, 0.99, pair_weights=PAIRS, criterion="worst"),
    "a floor of one": lambda: decorrelate(R, [1.0, 0.99, 0.99, 0.99, 0.9, 0.2]),
    "anchors": lambda: decorrelate(R, 0.99, anchors=ANCHORS),
    "budget": lambda: maximize_fidelity(R, 0.05),
    "no budget": lambda: maximize_fidelity(R, 0.0),
    "vif": lambda: maximize_fidelity(R, 1.1, criterion="vif"),
    "vif, anchors": lambda: maximize_fidelity(R, 1.1, criterion="vif", anchors=ANCHORS),
    "vif of one": lambda: maximize_fidelity(R, 1.0, criterion="vif"),
    "open": lambda: decorrelate(R, 0.99, max_iter=2),
    "support": lambda: decorrelate(R, 0.99, support=MASK, n_starts=5),
    "support, open": lambda: decorrelate(R, 0.85, support=MASK, n_starts=5),
    "support, worst": lambda: decorrelate(R, 0.9, support=MASK, n_starts=5, criterion="worst"),
    "support, absolute": lambda: decorrelate(
        R, 0.9, support=MASK, n_starts=5, criterion="absolute"
    ),
    "support, exact": lambda: decorrelate(R, 0.5, support=np.tril(np.ones((6, 6))), n_starts=5),
}
_MADE: dict[str, Any] = {}


def honest(kind: str) -> Any:
    if kind not in _MADE:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", NotCertifiedWarning)
            _MADE[kind] = MAKERS[kind]()
    return _MADE[kind]


def failed(result: Any, matrix: Any = R, judge: Callable[..., Any] = check) -> set[str]:
    """The claims that do not hold."""
    return {claim.name for claim in judge(result, matrix).claims if not claim.holds}


def broken(result: Any, *claims: str, matrix: Any = R) -> None:
    """Exactly these claims do not hold, whoever judges."""
    for judge in (check, prove):
        assert failed(result, matrix, judge) == set(claims), judge(result, matrix)


def verdict(judge: Callable[..., Any], result: Any, matrix: Any) -> str:
    """Why a result is refused; an empty text if it is not."""
    try:
        found = judge(result, matrix)
    except CertificateError as error:
        return str(error) or "refused"
    return "" if found.passed else "; ".join(found.problems)


def refused(result: Any, matrix: Any = R) -> bool:
    """Whether both judges refuse, each with words."""
    return bool(verdict(check, result, matrix)) and bool(verdict(prove, result, matrix))


def with_arrays(result: Any, **arrays: Any) -> Any:
    """The same claims with other arrays in the proof; None leaves one out."""
    c = result.certificate
    parts = {name: a for name, a in {**c.arrays, **arrays}.items() if a is not None}
    return replace(result, certificate=Certificate(c.kind, parts, c.info))


@pytest.fixture(autouse=True)
def few_columns_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Correlations of small results come in several blocks, as those of large ones do."""
    monkeypatch.setattr(evaluation, "_BLOCK", 7)


@pytest.fixture(params=list(MAKERS))
def kind(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def many_bits() -> Iterator[None]:
    """Balls as precise as those of ``prove``."""
    before, flint.ctx.prec = flint.ctx.prec, PRECISION
    yield
    flint.ctx.prec = before


@pytest.fixture(params=["two", "three", "balls"])
def arithmetic(request: pytest.FixtureRequest, many_bits: None) -> Any:
    """Each arithmetic that bounds are evaluated in."""
    return {"two": Floats(2), "three": Floats(3), "balls": Balls(flint)}[request.param]
