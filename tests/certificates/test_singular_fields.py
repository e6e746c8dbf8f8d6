"""Single fields of certificates of matrices of rank below p: what is refused, and how."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from skcoral import decorrelate, threshold
from skcoral.certificates import check, prove
from skcoral.core.solution import Certificate
from skcoral.exceptions import CertificateError

from .conftest import R, honest, verdict
from .test_singular import HONEST as SINGULAR
from .test_singular import R as SINGULAR_R
from .test_singular import with_arrays

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


def test_a_factor_of_unit_columns() -> None:
    """A longer factor is one of another matrix, even if the reader's rows are as long."""
    result = SINGULAR["welch"]
    A = result.certificate.arrays["factor"]
    for step, wrong in ((1e-9, True), (1e-12, False)):
        longer = replace(with_arrays(result, factor=(1 + step) * A), R=None)
        try:
            found = check(longer, factor=(1 + step) * A)
            words = "; ".join(found.problems)
        except CertificateError as error:
            words = str(error)
        assert ("unit length" in words) == wrong


@pytest.mark.parametrize(("size", "infinite"), [(0.0, False), (0.2e-10, False), (5e-10, True)])
@pytest.mark.parametrize("criterion", ["squared", "worst"])
def test_floors_of_one_beside_a_singular_matrix(
    size: float, infinite: bool, criterion: Any
) -> None:
    """A floor of one costs nothing where its output is correlated with none, and no number else."""
    A = SINGULAR["welch"].certificate.arrays["factor"]
    B = np.zeros((6, 9))
    B[:5, 1:], B[:5, 0], B[5, 0] = A, size * A[:, 0], np.sqrt(1 - size**2)
    system = B.T @ B
    np.fill_diagonal(system, 1.0)
    result = decorrelate(system, [1.0, 1.0] + [0.999] * 7, criterion=criterion)
    assert result.certificate.kind == {"squared": "frame", "worst": "tradeoff"}[criterion]
    correlated = np.abs(result.correlation - np.eye(9)).max(axis=0)[:2] > 1e-10
    assert np.isinf(result.prices[:2]).tolist() == correlated.tolist()
    # The worst pair may leave other outputs correlated with one that need not be.
    assert criterion == "worst" or correlated.tolist() == [infinite, True]
    for judge in (check, prove):
        assert judge(result, system).passed
        assert criterion == "worst" or judge(result, factor=B).passed
    for j, value in ((0, 0.0 if correlated[0] else np.inf), (0, 1.0), (1, 0.0), (1, 1.0)):
        prices = result.prices.copy()
        prices[j] = value
        lie = replace(result, prices=prices)
        for given in ({"R": system}, {"factor": B})[: 1 + (criterion == "squared")]:
            found = check(lie, **given)
            assert {c.name for c in found.claims if not c.holds} == {"prices"}, (j, value)


@pytest.mark.parametrize("name", ["welch, worst", "frame"])
def test_prices_of_a_singular_matrix(name: str) -> None:
    result = SINGULAR[name]
    for field in ("prices", "weights"):
        value = getattr(result, field)
        for step, wrong in ((3e-6, True), (-3e-6, True), (0.3e-6, False)):
            one = np.zeros(8)
            one[2] = step * max(1.0, value[2])
            found = check(replace(result, **{field: value + one}), SINGULAR_R)
            assert (field in {c.name for c in found.claims if not c.holds}) == wrong


def test_the_worst_pair_of_a_frame() -> None:
    """A bound on the sum of squares bounds the largest; the slope follows by the chain rule."""
    result = SINGULAR["frame"]
    c = result.certificate
    worst = float(np.abs(np.triu(result.correlation, 1)).max())
    bound = np.sqrt(check(result, SINGULAR_R).lower / 28)
    made = replace(
        result,
        criterion="worst",
        certificate=Certificate("frame", c.arrays, {**c.info, "criterion": "worst"}),
        objective=worst,
        lower_bound=float(bound),
        status="best_found",
    )
    slopes = 2 * c.arrays["multipliers"] * 0.5 * bound / check(result, SINGULAR_R).lower
    # numerically: the bound at raised floors
    prices = np.where(result.rho_min >= 1, np.inf, slopes)
    made = replace(made, prices=prices, weights=0.5 * slopes)
    assert check(made, SINGULAR_R).passed, check(made, SINGULAR_R).problems
    step = 1e-6
    j = int(np.argmax(slopes))
    floors = result.rho_min.copy()
    floors[j] += step
    raised = check(replace(made, rho_min=floors), SINGULAR_R).lower
    assert (raised - bound) / step == pytest.approx(slopes[j], rel=1e-4)
    assert "prices" in verdict(check, replace(made, prices=2 * prices), SINGULAR_R)


def test_pair_weights_of_a_singular_matrix_prove_nothing_by_the_rank() -> None:
    result = SINGULAR["welch"]
    weights = 1 - np.eye(8)
    made = replace(result, pair_weights=weights, lower_bound=0.0, status="best_found")
    assert check(made, SINGULAR_R).passed, check(made, SINGULAR_R).problems
    assert verdict(check, replace(made, lower_bound=1e-6), SINGULAR_R)
    frame = replace(SINGULAR["frame"], pair_weights=weights)
    assert "not combined with pair weights" in verdict(check, frame, SINGULAR_R)
    anchored = replace(SINGULAR["frame"], anchors=np.eye(8))
    assert "anchors" in verdict(check, anchored, SINGULAR_R)


def test_results_and_matrices_that_do_not_belong_together() -> None:
    with pytest.raises(CertificateError, match="comes with a Threshold or a Decorrelation"):
        check("result", R)  # type: ignore[arg-type]
    with pytest.raises(CertificateError, match="R, or a factor"):
        check(honest("squared"))
    with pytest.raises(CertificateError, match="rank below p; give R"):
        check(honest("squared"), factor=np.eye(6))
    with pytest.raises(CertificateError, match="R is singular"):
        check(replace(honest("squared"), R=None), np.ones((6, 6)))
    arrays = {"multipliers": np.ones(6), "H": np.eye(6)}
    other = Certificate("tradeoff", arrays, {"criterion": None})
    with pytest.raises(CertificateError, match="'tradeoff' does not belong to a Threshold"):
        check(replace(threshold(R), certificate=other), R)


@pytest.mark.parametrize(("size", "wrong"), [(4e-9, True), (4e-10, False)])
def test_directions_beyond_the_rank(size: float, wrong: bool) -> None:
    """What R has beyond the rank that is claimed: 1e-10 for each of its variables."""
    result = replace(SINGULAR["lifted"], R=None)
    near = (1 - size) * SINGULAR_R + size * np.eye(8)
    found = {c.name for c in check(result, near).claims if not c.holds}
    assert ("rank" in found) == wrong
