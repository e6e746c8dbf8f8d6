"""Certificates of matrices of rank r < p: through R, and through a factor alone."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from skcoral import decorrelate, threshold
from skcoral.bounds.arithmetic import Floats
from skcoral.bounds.rank import factor_bound
from skcoral.certificates import certificate_text, check, parse_certificate, prove
from skcoral.certificates.ledger import Ledger
from skcoral.core.linalg import correlation_of_covariance
from skcoral.core.lowrank import FactoredCorrelation
from skcoral.core.solution import Certificate

from .conftest import failed, refused, verdict, with_arrays
from .results import ROWS, honest
from .results import SINGULAR as R

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")
judges = pytest.mark.parametrize("judge", [check, prove])


def test_a_rank_of_one() -> None:
    twins = np.array([[1.0, -1.0], [-1.0, 1.0]])
    for result in (decorrelate(twins, 0.9), threshold(twins)):
        assert result.rank == 1
        assert parse_certificate(certificate_text(result, twins)).verify(twins).passed


def test_a_factor_of_fewer_directions() -> None:
    """Outputs held in fewer dimensions than there are would have a larger least residual."""
    for name in ("welch", "frame"):
        result = honest(f"rank, {name}")
        A = result.certificate.arrays["factor"][:-1]
        A = A / np.linalg.norm(A, axis=0)
        c = result.certificate
        arrays = {**c.arrays, "factor": A}
        arrays["N"] = arrays["N"][:-1, :-1]
        lie = Certificate(c.kind, arrays, {**c.info, "rank": 4})
        problems = verdict(check, replace(result, certificate=lie), R)
        assert "factor" in problems
        assert refused(replace(result, certificate=lie), R)


@pytest.mark.parametrize(("size", "infinite"), [(0.0, False), (0.2e-10, False), (5e-10, True)])
@pytest.mark.parametrize("criterion", ["squared", "worst"])
def test_floors_of_one_beside_a_singular_matrix(
    size: float, infinite: bool, criterion: Any
) -> None:
    """A floor of one costs nothing where its output is correlated with none, and no number else."""
    A = honest("rank, welch").certificate.arrays["factor"]
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
        for asked in (system, FactoredCorrelation(B))[: 1 + (criterion == "squared")]:
            assert failed(lie, asked) == {"prices"}, (j, value)


def test_the_worst_pair_of_a_frame() -> None:
    """A bound on the sum of squares bounds the largest; the slope follows by the chain rule."""
    result = honest("rank, frame")
    c = result.certificate
    worst = float(np.abs(np.triu(result.correlation, 1)).max())
    bound = np.sqrt(check(result, R).lower / 28)
    made = replace(
        result,
        criterion="worst",
        certificate=Certificate("frame", c.arrays, {**c.info, "criterion": "worst"}),
        objective=worst,
        lower_bound=float(bound),
        status="best_found",
    )
    slopes = 2 * c.arrays["multipliers"] * 0.5 * bound / check(result, R).lower
    # numerically: the bound at raised floors
    prices = np.where(result.rho_min >= 1, np.inf, slopes)
    made = replace(made, prices=prices, weights=0.5 * slopes)
    assert check(made, R).passed, check(made, R).problems
    step = 1e-6
    j = int(np.argmax(slopes))
    floors = result.rho_min.copy()
    floors[j] += step
    raised = check(replace(made, rho_min=floors), R).lower
    assert (raised - bound) / step == pytest.approx(slopes[j], rel=1e-4)
    assert "prices" in verdict(check, replace(made, prices=2 * prices), R)


def test_pair_weights_of_a_singular_matrix_prove_nothing_by_the_rank() -> None:
    result = honest("rank, welch")
    weights = 1 - np.eye(8)
    made = replace(result, pair_weights=weights, lower_bound=0.0, status="best_found")
    assert check(made, R).passed, check(made, R).problems
    assert verdict(check, replace(made, lower_bound=1e-6), R)
    frame = replace(honest("rank, frame"), pair_weights=weights)
    assert "not combined with pair weights" in verdict(check, frame, R)
    anchored = replace(honest("rank, frame"), anchors=np.eye(8))
    assert "anchors" in verdict(check, anchored, R)


def test_a_bound_on_the_worst_pair_is_not_linear_in_the_floors() -> None:
    """It is a root of one that is: its tangent would exclude floors that are possible."""
    rows = np.random.default_rng(0).normal(size=(3, 5))
    S = np.corrcoef(rows.T)
    frame = decorrelate(S, 0.999)
    assert frame.certificate.kind == "frame"
    certificate = replace(frame.certificate, info={**frame.certificate.info, "criterion": "worst"})
    given = certificate, "worst", None, frame.rho_min
    proof = factor_bound(*given, certificate.arrays["factor"], Floats(3))
    top = proof.highest_floor(0.99, "worst", 0.999)
    pairs, lam = 10, certificate.arrays["multipliers"]
    squares = pairs * float(proof.bound.lower) ** 2
    assert top == pytest.approx(0.999 + (pairs * 0.99**2 - squares) / (2 * lam.sum()), rel=1e-9)
    tangent = 0.999 + (0.99 - float(proof.bound.lower)) / proof.slopes.sum()
    assert tangent < top - 1e-6


# Rank and factor, at the size of their tolerances.


def moved_matrix(step: float) -> Any:
    """The matrix of a factor that is moved until its largest entry is off by a step."""
    A = honest("rank, welch").certificate.arrays["factor"]
    change = np.random.default_rng(0).normal(size=A.shape)

    def moved(size: float) -> Any:
        return correlation_of_covariance((A + size * change).T @ (A + size * change))

    return moved(1e-6 * step / np.abs(moved(1e-6) - R).max())


def moved_rows(step: float) -> Any:
    rows = ROWS.copy()
    rows[0] *= 1 + step / np.abs(ROWS[0]).max()
    return FactoredCorrelation(rows)


def beside_the_rank(step: float) -> Any:
    """Along a vector of the null space; the bound for p variables is p times 1e-10."""
    v = np.linalg.eigh(R)[1][:, 0]
    return correlation_of_covariance(R + step * np.outer(v, v))


@judges
@pytest.mark.parametrize(
    ("claim", "kind", "other", "within", "beyond"),
    [
        ("factor", "rank, welch", moved_matrix, 0.3e-10, 4e-10),
        ("factor", "rank, frame", moved_matrix, 0.3e-10, 4e-10),
        ("factor", "rank, welch", moved_rows, 0.2e-10, 4e-10),
        ("rank", "rank, lifted", beside_the_rank, 2e-10, 3e-9),
    ],
)
def test_matrices_at_their_tolerance(
    judge: Any, claim: str, kind: str, other: Any, within: float, beyond: float
) -> None:
    result = replace(honest(kind), R=None)
    assert claim in failed(result, other(beyond), judge)
    assert claim not in failed(result, other(within), judge)


@judges
def test_columns_of_unit_length(judge: Any) -> None:
    A = honest("rank, welch").certificate.arrays["factor"].copy()
    A[:, 2] *= 1 + 0.2e-10
    judge(with_arrays(honest("rank, welch"), factor=A), R)
    A[:, 2] *= 1 + 1.8e-10
    assert "unit length" in verdict(judge, with_arrays(honest("rank, welch"), factor=A), R)


@pytest.mark.parametrize(("ratio", "counts"), [(5e-13, True), (4e-14, False)])
def test_a_direction_that_counts(ratio: float, counts: bool) -> None:
    """Twins and a third variable: the second eigenvalue is 4/3 of what it lacks to a triplet."""
    r = 1 - 2.25 * ratio
    twins = np.array([[1.0, r, 1.0], [r, 1.0, r], [1.0, r, 1.0]])
    assert np.linalg.eigvalsh(twins)[1] == pytest.approx(3 * ratio, rel=0.05)
    claim = SimpleNamespace(
        rank=2, names=tuple("abc"), certificate=SimpleNamespace(info={"rank": 2})
    )
    ledger = Ledger(claim, twins, None, Floats(3))
    ledger.claim_rank()
    assert all(claim.holds for claim in ledger.claims) == counts
