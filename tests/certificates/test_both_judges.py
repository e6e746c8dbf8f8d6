"""How the two judges come to a verdict: with which digits, and when one defers to the other."""

from __future__ import annotations

from dataclasses import replace
from unittest.mock import patch

import flint
import numpy as np
import pytest

from skcoral import frontier
from skcoral.bounds.arithmetic import PRECISION
from skcoral.certificates import check, checking, prove
from skcoral.core.lowrank import FactoredCorrelation
from skcoral.core.solution import Certificate
from skcoral.exceptions import CertificateError

from .conftest import R, honest
from .results import about
from .test_singular import HONEST as SINGULAR
from .test_singular import Z

RESULT = honest("squared")


def test_balls_are_precise_while_they_prove_and_no_longer() -> None:
    before = flint.ctx.prec
    with patch.object(checking, "_checked", lambda *_: flint.ctx.prec):
        assert (prove(RESULT, R), flint.ctx.prec) == (PRECISION, before)
    assert prove(RESULT, R).rigorous


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
