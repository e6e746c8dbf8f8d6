"""What it means to refuse a result, whoever judges; and the arithmetics."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import flint
import numpy as np
import pytest

from skcoral.bounds.arithmetic import PRECISION, Balls, Floats
from skcoral.certificates import certificate_text, check, evaluation, prove
from skcoral.core import criteria
from skcoral.core.lowrank import FactoredCorrelation
from skcoral.core.solution import Certificate
from skcoral.exceptions import CertificateError

from . import verifier
from .results import FULL, R


def failed(result: Any, matrix: Any = R, judge: Callable[..., Any] = check) -> set[str]:
    """The claims that do not hold."""
    return {claim.name for claim in judge(result, matrix).claims if not claim.holds}


def broken(result: Any, *claims: str, matrix: Any = R) -> None:
    """Exactly these claims do not hold, whoever judges."""
    for judge in (check, prove):
        assert failed(result, matrix, judge) == set(claims), judge(result, matrix)


def verdict(judge: Callable[..., Any], result: Any, matrix: Any = R) -> str:
    """Why a result is refused; an empty text if it is not."""
    try:
        judgement = judge(result, matrix)
    except CertificateError as error:
        return str(error) or "refused"
    return "" if judgement.passed else "; ".join(judgement.problems)


def refused(result: Any, matrix: Any = R) -> bool:
    """Whether both judges refuse, each with words."""
    return bool(verdict(check, result, matrix)) and bool(verdict(prove, result, matrix))


def verifier_refuses(result: Any, matrix: Any) -> bool:
    """Whether the stand-alone verifier refuses a result with all of its arrays."""
    dense = matrix.toarray() if isinstance(matrix, FactoredCorrelation) else matrix
    return bool(verifier.problems(json.loads(certificate_text(result, matrix)), dense))


def with_arrays(result: Any, **arrays: Any) -> Any:
    """The same claims with other arrays in the proof; None leaves one out."""
    c = result.certificate
    parts = {name: a for name, a in {**c.arrays, **arrays}.items() if a is not None}
    return replace(result, certificate=Certificate(c.kind, parts, c.info))


def with_T(result: Any, T: Any, matrix: Any = R, **more: Any) -> Any:
    """The same claim about another transformation, with everything reported of it as it is."""
    S = matrix.toarray() if isinstance(matrix, FactoredCorrelation) else matrix
    G = T.T @ S @ T
    reported = {"T": T, "correlation": 0.5 * (G + G.T), "fidelity": np.einsum("ij,ij->j", S, T)}
    reported["objective"] = criteria.value(result.criterion, G, result.pair_weights)
    return replace(result, **reported, **more)


@pytest.fixture(autouse=True)
def few_columns_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Correlations of small results come in several blocks, as those of large ones do."""
    monkeypatch.setattr(evaluation, "_BLOCK", 7)


@pytest.fixture(params=list(FULL))
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
