"""How the two judges come to a verdict: with which digits, and when one defers to the other."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import flint
import numpy as np
import pytest

from skcoral import frontier
from skcoral.bounds.arithmetic import PRECISION, Balls
from skcoral.certificates import Check, Claim, check, checking, prove
from skcoral.core.lowrank import FactoredCorrelation
from skcoral.core.solution import Certificate
from skcoral.exceptions import CertificateError

from .conftest import R, honest
from .results import about
from .test_singular import HONEST as SINGULAR
from .test_singular import Z

RESULT = honest("squared")


def judged(*claims: Claim, rigorous: bool = False) -> Check:
    problems = tuple(claim.problem for claim in claims if not claim.holds)
    return Check(not problems, 0.0, 1.0, problems, rigorous, claims)


SAID_TOO_LITTLE = Claim("status", False, "too little", modest=True)
TRUE = Claim("status", True)
WRONG = Claim("floors", False, "missed")


@pytest.mark.parametrize(
    ("proved", "seen", "problems"),
    [
        ([TRUE], [TRUE], ()),
        ([SAID_TOO_LITTLE], [TRUE], ()),  # more digits than floating point can see
        ([SAID_TOO_LITTLE], [SAID_TOO_LITTLE], ("too little",)),
        ([SAID_TOO_LITTLE], [TRUE, WRONG], ()),
        ([SAID_TOO_LITTLE, TRUE], [TRUE], ()),
        ([SAID_TOO_LITTLE, WRONG], [TRUE], ("too little", "missed")),
        ([WRONG], [TRUE], ("missed",)),
    ],
)
def test_a_claim_that_says_too_little(
    monkeypatch: pytest.MonkeyPatch, proved: list[Claim], seen: list[Claim], problems: Any
) -> None:
    def judge(_: Any, __: Any, ___: Any, arithmetic: Any) -> Check:
        rigorous = isinstance(arithmetic, Balls)
        assert flint.ctx.prec == (PRECISION if rigorous else before)
        return judged(*(proved if rigorous else seen), rigorous=rigorous)

    before = flint.ctx.prec
    monkeypatch.setattr(checking, "_checked", judge)
    proof = prove(RESULT, R)
    assert (proof.passed, proof.problems) == (not problems, problems)
    assert proof.rigorous
    assert flint.ctx.prec == before


def test_a_matrix_or_a_factor() -> None:
    frame = SINGULAR["frame"]
    assert check(frame, FactoredCorrelation(Z)).passed
    for value in (np.nan, np.inf):
        rows = Z.copy()
        rows[1, 2] = value
        with pytest.raises(CertificateError, match="not finite"):
            check(frame, FactoredCorrelation(rows))
    for names in (("a",) * 8, list(frame.names), tuple(range(8))):
        with pytest.raises(CertificateError, match="names"):
            check(frame.__class__(**{**vars(frame), "names": names}), FactoredCorrelation(Z))
    with pytest.raises(CertificateError, match="rank below p; give R"):
        check(RESULT, FactoredCorrelation(np.eye(6)))


def test_results_that_are_kept_as_factors_are_judged_by_one() -> None:
    wide, matrix = about("wide, frame")
    factored = replace(RESULT, correlation=FactoredCorrelation(np.eye(6)))
    for result, given in ((wide, matrix.toarray()), (factored, R)):
        with pytest.raises(CertificateError, match="judged with a FactoredCorrelation"):
            check(result, given)


def test_results_and_matrices_that_do_not_belong_together() -> None:
    arrays = {"multipliers": np.ones(6), "H": np.eye(6)}
    other = Certificate("tradeoff", arrays, {"criterion": None})
    for result, matrix, told in (
        ("result", R, "Threshold or a Decorrelation"),
        (frontier(R, [0.9]), R, "Frontier.*result_"),
        (replace(RESULT, R=None), np.ones((6, 6)), "R is singular"),
        (replace(honest("threshold"), certificate=other), R, "'tradeoff'.*Threshold"),
    ):
        for judge in (check, prove):
            with pytest.raises(CertificateError, match=told):
                judge(result, matrix)
