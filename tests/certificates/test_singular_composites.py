"""Composites of linearly dependent variables: results pass their own check, or are refused."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from skcoral import CORAL, decorrelate, maximize_fidelity
from skcoral.certificates import certificate_text, check, parse_certificate, prove
from skcoral.core.lowrank import FactoredCorrelation
from skcoral.core.results import Decorrelation
from skcoral.core.solution import Certificate
from skcoral.exceptions import CertificateError

from .verifier import problems

# Two equal variables, in numbers that floats hold: an eigenvalue of zero, or of either sign.
COPIES = np.array([[4, 4, 2, 1], [4, 4, 2, 1], [2, 2, 4, 2], [1, 1, 2, 4]]) / 4.0
ROWS = np.random.default_rng(5).normal(size=(40, 4))
TOTAL = np.corrcoef(np.c_[ROWS, ROWS.sum(axis=1), ROWS[:, 0] - ROWS[:, 2]].T)
MATRICES = {"copies": COPIES, "totals": TOTAL}
WEIGHTS = np.array([[0.0, 1, 2], [1, 0, 0], [2, 0, 0]])
QUESTIONS: dict[str, Any] = {
    "highest": lambda R, B: decorrelate(R, anchors=B),
    "low": lambda R, B: decorrelate(R, 0.5, anchors=B),
    "high": lambda R, B: decorrelate(R, [0.9999, 0.98, 0.99], anchors=B),
    "next to one": lambda R, B: decorrelate(R, 1 - 3e-15, anchors=B),
    "one": lambda R, B: decorrelate(R, [1.0, 0.99, 1.0], anchors=B),
    "worst": lambda R, B: decorrelate(R, 0.999, anchors=B, criterion="worst"),
    "absolute": lambda R, B: decorrelate(R, 0.999, anchors=B, criterion="absolute"),
    "weighted": lambda R, B: decorrelate(R, 0.999, anchors=B, pair_weights=WEIGHTS),
    "budget": lambda R, B: maximize_fidelity(R, 0.01, anchors=B),
    "no budget": lambda R, B: maximize_fidelity(R, 0.0, anchors=B),
    "worst budget": lambda R, B: maximize_fidelity(R, 0.05, anchors=B, criterion="worst"),
    "VIF": lambda R, B: maximize_fidelity(R, 1.05, anchors=B, criterion="vif"),
}
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


def composites(R: np.ndarray) -> np.ndarray:
    return 1e3 * np.random.default_rng(len(R)).normal(size=(len(R), 3))


@pytest.mark.parametrize("question", QUESTIONS)
@pytest.mark.parametrize("matrix", MATRICES)
def test_results_pass_their_own_check(matrix: str, question: str) -> None:
    R = MATRICES[matrix]
    result = QUESTIONS[question](R, composites(R))
    text = certificate_text(result, R)
    assert result.is_certified
    for verdict in (check(result, R), prove(result, R), parse_certificate(text).verify(R)):
        assert verdict.passed, verdict.problems
    if question != "one":  # multipliers of 1e9 take more digits than that verifier has
        assert not problems(json.loads(text), R)


def wide() -> tuple[Decorrelation, Any]:
    rows = np.random.default_rng(2).normal(size=(9, 40))
    model = CORAL(0.99, anchors=np.random.default_rng(3).normal(size=(40, 3))).fit(rows)
    return model.result_, model.correlation_


@pytest.mark.parametrize("rho", [None, 0.3, 0.99, 1 - 3e-15])
@pytest.mark.parametrize("shape", [(5, 6), (9, 40)])
def test_tables_with_fewer_rows_than_columns(shape: tuple[int, int], rho: float | None) -> None:
    rng = np.random.default_rng(7)
    B = rng.normal(size=(shape[1], 3))
    model = CORAL(rho, anchors=B).fit(rng.normal(size=shape))
    result, R = model.result_, model.correlation_
    text = certificate_text(result, R)
    for verdict in (check(result, R), prove(result, R), parse_certificate(text).verify(R)):
        assert verdict.passed, verdict.problems


@pytest.mark.parametrize("judge", [check, prove])
def test_falsified_results_of_wide_tables(judge: Any) -> None:
    result, R = wide()
    assert judge(result, R).passed
    T, B = result.T.copy(), np.array(result.anchors)
    T[3, 1] += 1e-6
    B[3, 1] += 1e-4
    for change in (
        {"T": T},
        {"anchors": B},
        {"lower_bound": result.lower_bound + 1e-6},
        {"objective": result.objective + 1e-6},
        {"fidelity": result.fidelity + 1e-6},
        {"rho_min": result.rho_min + 1e-6},
        {"status": "exact"},
    ):
        assert not judge(replace(result, **change), R).passed, change
    other = np.random.default_rng(0).normal(size=R.factor.shape)
    assert not judge(result, FactoredCorrelation(other / np.linalg.norm(other, axis=0))).passed


def test_parts_of_wide_results_that_do_not_fit() -> None:
    result, R = wide()
    info = {"rank": 3, "criterion": "squared"}
    frame = {"factor": np.eye(3), "N": np.eye(3), "multipliers": np.ones(3), "kappa": np.ones(3)}
    for change, message in (
        ({"certificate": Certificate("frame", frame, info)}, "a rank below p is not combined"),
        ({"T": result.T[1:]}, r"shape \(40, 3\)"),
        ({"anchors": None}, "give R"),
        ({"anchors": np.array(result.anchors)[1:]}, "40 rows"),
    ):
        with pytest.raises(CertificateError, match=message):
            check(replace(result, **change), R)
    with pytest.raises(CertificateError, match="no matrix"):
        check(result, FactoredCorrelation(np.ones(40)))
    with pytest.raises(CertificateError, match="digits"):
        check(result, FactoredCorrelation(1e307 * R.factor))
    null = np.array(result.anchors)
    null[:, 0] = np.linalg.svd(R.factor)[2][-1]  # a composite without variance
    assert not check(replace(result, anchors=null), R).passed
