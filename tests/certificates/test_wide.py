"""Results kept as factors: values falsified just beyond the tolerance."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from skcoral import CORAL
from skcoral.certificates import certificate_text, check, parse_certificate, prove
from skcoral.core.lowrank import FactoredCorrelation, LowRankTransform
from skcoral.exceptions import CertificateError

from .conftest import broken as both_refuse
from .conftest import failed, verdict, with_arrays
from .results import WIDE_ROWS as ROWS
from .results import honest

ANSWER, EDGE = honest("wide, frame"), honest("wide, threshold")


def broken(result: Any, *claims: str) -> None:
    both_refuse(result, *claims, matrix=FactoredCorrelation(ROWS))


ONES = np.where(np.arange(14) % 5, 0.99, 1.0)


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize(
    ("criterion", "settings"),
    [
        ("worst", {"rho_min": 0.99}),
        ("worst", {"rho_min": ONES}),
        ("worst", {"max_correlation": 0.92}),
        ("absolute", {"rho_min": ONES}),
        ("absolute", {"rho_min": 0.99}),
    ],
)
def test_other_criteria_are_judged_by_the_rows(criterion: Any, settings: dict[str, Any]) -> None:
    """By the bound of the trade-off, with floors of one and budgets too."""
    X = np.random.default_rng(0).normal(size=(6, 14))
    model = CORAL(criterion=criterion, **settings).fit(X)
    result, matrix = model.result_, model.correlation_
    assert isinstance(result.T, LowRankTransform)
    assert result.certificate.kind == "tradeoff"
    for judge in (check, prove):
        judgement = judge(result, matrix)
        assert judgement.passed, judgement.problems
    file = parse_certificate(certificate_text(result, matrix))
    assert file.verify(matrix).passed
    assert not check(replace(result, lower_bound=1.001 * result.lower_bound), matrix).passed
    for name, a in result.certificate.arrays.items():
        assert verdict(check, with_arrays(result, **{name: 1.01 * a}), matrix), name


# Lies of the size of the promise, judged by the rows alone.


def test_bounds_beyond_what_is_possible() -> None:
    """No floor exceeds one and no residual is negative, whatever a poor point proves."""
    weak = with_arrays(EDGE, kappa=50 + EDGE.certificate.arrays["kappa"])
    assert check(weak, FactoredCorrelation(ROWS)).upper == 1.0
    broken(replace(weak, upper=1.0))
    nothing = replace(
        with_arrays(ANSWER, multipliers=np.zeros(40), kappa=np.full(40, 50.0)),
        lower_bound=0.0,
        weights=np.zeros(40),
        prices=np.zeros(40),
        status="best_found",
    )
    assert check(nothing, FactoredCorrelation(ROWS)).lower == 0
    broken(nothing)


def test_a_threshold_without_the_least_residual() -> None:
    A = EDGE.certificate.arrays["factor"]
    U = A @ EDGE.T
    across = np.random.default_rng(0).normal(size=8)
    across -= U[:, 0] * (across @ U[:, 0])
    across /= np.linalg.norm(across)
    claims = {}
    for size in (4e-3, 1e-3):  # a residual of 1.6e-5 and 1e-6 more, of 80
        right = EDGE.T.right.copy()
        right[:, 0] += (np.cos(size) - 1) * U[:, 0] + np.sin(size) * across
        T = LowRankTransform(EDGE.T.left, right)
        f = np.einsum("ij,ij->j", A, A @ T)
        lie = replace(EDGE, T=T, fidelity=f, lower=float(f.min()))
        claims[size] = failed(lie, FactoredCorrelation(ROWS))
    assert "least residual" in claims[4e-3]
    assert "least residual" not in claims[1e-3]


def test_bounds_of_a_threshold_that_cross() -> None:
    """A residual next to the least allows floors above the highest: one of the bounds is false."""
    A = EDGE.certificate.arrays["factor"]
    for step, wrong in ((1e-6, True), (1e-7, True), (1e-8, False)):
        T = (1 + step) * np.eye(40) + EDGE.T.left @ EDGE.T.right  # each nearer to its source
        T /= np.linalg.norm(A @ T, axis=0)
        f = np.einsum("ij,ij->j", A, A @ T)
        assert step > f.min() - EDGE.upper > 0.01 * step
        broken(replace(EDGE, T=T, fidelity=f, lower=float(f.min())), *["bounds in order"] * wrong)


def test_rows_that_do_not_fit() -> None:
    for other in (ROWS[:, :5], ROWS[0], np.ones(1), np.ones((9, 40, 1))):
        with pytest.raises(CertificateError, match=r"40 outputs|no matrix"):
            check(ANSWER, FactoredCorrelation(other))
