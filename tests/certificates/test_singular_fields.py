"""Single fields of certificates of matrices of rank below p: what is refused, and how."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from skcoral import decorrelate
from skcoral.certificates import check, prove
from skcoral.core.lowrank import FactoredCorrelation
from skcoral.core.solution import Certificate

from .conftest import failed, verdict
from .test_singular import HONEST as SINGULAR
from .test_singular import R as SINGULAR_R

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


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
        assert criterion == "worst" or judge(result, FactoredCorrelation(B)).passed
    for j, value in ((0, 0.0 if correlated[0] else np.inf), (0, 1.0), (1, 0.0), (1, 1.0)):
        prices = result.prices.copy()
        prices[j] = value
        lie = replace(result, prices=prices)
        for given in (system, FactoredCorrelation(B))[: 1 + (criterion == "squared")]:
            assert failed(lie, given) == {"prices"}, (j, value)


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
