"""R ≻ 0 is proved, not read off computed eigenvalues: matrices within a few roundings of singular.

The least eigenvalue of each is known in closed form from its entries, so the truth is exact.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from skcoral import decorrelate, threshold
from skcoral.bounds.arithmetic import Floats
from skcoral.bounds.dual import check_definite, definite, definite_form
from skcoral.certificates import check, prove
from skcoral.core.linalg import correlation_of_covariance
from skcoral.exceptions import CertificateError

ULP = 2.0**-53


def equal(p: int, r: float) -> np.ndarray:
    """Eigenvalues 1 - r and 1 + (p - 1) r."""
    return (1 - np.eye(p)) * r + np.eye(p)


def least(p: int, r: float) -> Fraction:
    """The least eigenvalue of :func:`equal`, exactly."""
    return min(1 - Fraction(r), 1 + (p - 1) * Fraction(r))


def cases() -> list[tuple[int, float]]:
    """Correlations that are some floats away from the one that makes the matrix singular."""
    out = []
    for p in (2, 3, 5, 9, 17, 33):
        for edge, step in ((1.0, ULP), (-1.0 / (p - 1), ULP / (p - 1))):
            out += [(p, edge + k * step) for k in (-40, -8, -4, -3, -2, -1, 0, 1, 2, 3, 4, 8, 40)]
    return out


def test_no_matrix_is_called_definite_that_is_not(arithmetic: Any) -> None:
    proved = 0
    for p, r in cases():
        if definite(arithmetic, equal(p, r)) is not None:
            assert least(p, r) > 0, (p, r)
            proved += 1
        else:
            assert least(p, r) < 64 * p * Fraction(ULP), (p, r)
    assert proved >= 20


@pytest.mark.parametrize("sign", [1, -1])
def test_large_forms(sign: int) -> None:
    """Of 410 variables, in undivided factors: next to singular nothing is proved."""
    p = 410
    for size in (1, 30, 1e4, 1e7):
        r = -1.0 / (p - 1) + sign * size * ULP / (p - 1)
        A = equal(p, r)
        form = definite_form(Floats(2), A)
        if form is not None:
            assert form.inverse_form(np.ones(p)) >= p / float(least(p, r))
        assert (form is not None) == (sign > 0 and size > 1e3)


def test_a_result_of_a_matrix_that_is_not_definite_is_refused() -> None:
    """The completed square holds for no other: the answer of a neighbour is no answer here."""
    R = equal(3, -0.4999)
    for answer in (threshold(R), decorrelate(R), decorrelate(R, 0.99)):
        assert check(answer, R).passed
        for r in (-0.5, -0.5 - ULP, -0.5 - 100 * ULP):
            for judge in (check, prove):
                with pytest.raises(CertificateError, match="R is singular"):
                    judge(answer, equal(3, r))
    with pytest.raises(CertificateError, match="eigenvalue of about"):
        check_definite(Floats(3), equal(2, 1.0))


def test_full_rank_is_a_fact_and_no_tolerance() -> None:
    """A direction that just counts is judged like any other: R ≻ 0 is proved."""
    rng = np.random.default_rng(0)
    Q = np.linalg.qr(rng.normal(size=(4, 4)))[0]
    R = correlation_of_covariance((Q * [3e-12, 0.8, 1.0, 1.2]) @ Q.T)
    assert definite(Floats(2), R) is not None
    answer = decorrelate(R, [1.0, 0.9, 0.9, 0.9])
    assert answer.rank == 4
    for judge in (check, prove):
        judgement = judge(answer, R)
        assert judgement.passed or "variance" in judgement.problems[0], judgement


def test_eigenvalues_below_zero_are_refused() -> None:
    vectors = np.linalg.qr(np.random.default_rng(4).normal(size=(4, 4)))[0]
    for least, fine in ((-5e-11, True), (-2e-10, False)):
        R = (vectors * [least, 0.5, 1.0, 2.0]) @ vectors.T
        R = 0.5 * (R + R.T)
        if fine:
            check_definite(Floats(3), R, slack=1e-10)
            continue
        with pytest.raises(CertificateError, match="singular"):
            check_definite(Floats(3), R, slack=1e-10)
