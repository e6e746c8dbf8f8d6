"""``check`` passes true results and refuses altered ones."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from skcoral import decorrelate, frontier, threshold
from skcoral.certificates import check, prove
from skcoral.certificates.certify import certify_threshold
from skcoral.core.problem import Settings
from skcoral.core.results import Decorrelation
from skcoral.core.solution import Certificate
from skcoral.datasets import load_wine, make_system
from skcoral.exceptions import CertificateError, NotCertifiedWarning
from skcoral.solvers.exact import solve_threshold

R = np.asarray(load_wine().correlation)


def results() -> dict[str, Decorrelation]:
    return {
        "threshold": decorrelate(R),
        "exact": decorrelate(R, 0.8),
        "squared": decorrelate(R, 0.9),
        "worst": decorrelate(R, 0.9, criterion="worst"),
        "absolute": decorrelate(R, 0.9, criterion="absolute"),
    }


@pytest.fixture(scope="module")
def honest() -> dict[str, Decorrelation]:
    return results()


KINDS = ["threshold", "exact", "squared", "worst", "absolute"]


@pytest.mark.parametrize("kind", KINDS)
def test_true_results_pass(honest: dict[str, Decorrelation], kind: str) -> None:
    result = honest[kind]
    verdict = check(result, R)
    assert verdict.passed, verdict.problems
    assert verdict.upper == pytest.approx(result.objective, abs=1e-12)
    assert verdict.gap <= 1e-7
    proof = prove(result, R)
    assert proof.rigorous
    assert proof.passed, proof.problems
    assert proof.lower <= verdict.upper + 1e-12
    assert proof.gap <= 1e-7


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("T", [np.eye(13), np.zeros((13, 13)), np.full((13, 13), 0.1)], ids=str)
def test_another_transformation_fails(
    honest: dict[str, Decorrelation], kind: str, T: np.ndarray
) -> None:
    liar = dataclasses.replace(honest[kind], T=T)
    assert not check(liar, R).passed
    assert not prove(liar, R).passed


@pytest.mark.parametrize("kind", KINDS)
def test_higher_floors_than_met_fail(honest: dict[str, Decorrelation], kind: str) -> None:
    liar = dataclasses.replace(honest[kind], rho_min=honest[kind].rho_min + 2e-9 + 0.01)
    assert not check(liar, R).passed
    assert not prove(liar, R).passed


@pytest.mark.parametrize("kind", ["squared", "worst", "absolute"])
def test_overstated_bounds_and_understated_objectives_fail(
    honest: dict[str, Decorrelation], kind: str
) -> None:
    result = honest[kind]
    for judge in (check, prove):
        assert not judge(dataclasses.replace(result, objective=0.99 * result.objective), R).passed
        assert not judge(dataclasses.replace(result, lower_bound=1.01 * result.objective), R).passed


def test_a_feasible_but_worse_answer_is_not_optimal(honest: dict[str, Decorrelation]) -> None:
    worse = decorrelate(R, 0.93)
    liar = dataclasses.replace(
        honest["squared"], T=worse.T, fidelity=worse.fidelity, objective=worse.objective
    )
    verdict = check(liar, R)
    assert not verdict.passed
    assert any("gap" in problem for problem in verdict.problems)


def test_an_exact_but_not_best_answer_fails(honest: dict[str, Decorrelation]) -> None:
    other = decorrelate(R)  # meets the floors of 0.8 too, with a smaller mean
    liar = dataclasses.replace(honest["exact"], T=other.T, fidelity=other.fidelity)
    for verdict in (check(liar, R), prove(liar, R)):
        assert any("mean fidelity" in problem for problem in verdict.problems)
    # Whoever does not claim the largest mean is not held to it.
    assert check(dataclasses.replace(liar, status="best_found"), R).passed


def test_lower_floors_than_possible_are_not_the_highest(honest: dict[str, Decorrelation]) -> None:
    result = honest["threshold"]
    liar = dataclasses.replace(result, rho_min=result.rho_min - 1e-3)
    for verdict in (check(liar, R), prove(liar, R)):
        assert any("high" in problem for problem in verdict.problems)


def test_falsified_thresholds() -> None:
    th = threshold(R)
    assert check(th, R).passed
    assert prove(th, R).gap <= 1e-9
    assert not check(dataclasses.replace(th, T=np.eye(13)), R).passed
    for judge in (check, prove):
        assert not judge(dataclasses.replace(th, lower=th.lower + 1e-6), R).passed
        assert not judge(dataclasses.replace(th, upper=th.lower - 1e-6), R).passed


def test_an_early_end_is_proved_for_what_it_is() -> None:
    with pytest.warns(NotCertifiedWarning):
        early = certify_threshold(
            solve_threshold(R, Settings(tuple(map(str, range(13))), max_iter=2))
        )
    for verdict in (check(early, R), prove(early, R)):
        assert verdict.passed, verdict.problems
        assert 1e-4 < verdict.gap < 1e-1


@pytest.mark.parametrize("judge", [check, prove])
def test_variables_in_another_order_are_noticed(judge) -> None:
    frame = load_wine().to_frame().corr()
    result = threshold(frame)
    assert judge(result, frame).passed
    with pytest.raises(CertificateError, match=r"another order.*R\.loc"):
        judge(result, frame.iloc[::-1, ::-1])


def test_any_dual_point_gives_a_valid_bound() -> None:
    """The inequality holds for weights and matrices that no solver has seen."""
    th = threshold(R)
    rng = np.random.default_rng(0)
    for _ in range(20):
        weights = rng.uniform(0.01, 1, 13)
        A = rng.normal(size=(13, 13))
        point = Certificate("threshold", {"weights": weights, "S": A @ A.T + 0.1 * np.eye(13)})
        assert check(dataclasses.replace(th, certificate=point), R).upper >= th.lower


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"weights": -np.ones(13), "S": np.eye(13)}, "negative number"),
        ({"weights": np.zeros(13), "S": np.zeros((0, 0))}, "all weights are zero"),
        ({"weights": np.ones(13)}, "no array S"),
        ({"weights": np.ones(13), "S": -np.eye(13)}, "positive definite"),
        ({"weights": np.ones(12), "S": np.eye(12)}, "must be 13 numbers, got 12"),
        ({"weights": np.full(13, np.nan), "S": np.eye(13)}, "shape|finite"),
    ],
)
def test_useless_dual_points_are_refused(arrays: dict[str, np.ndarray], message: str) -> None:
    th = dataclasses.replace(threshold(R), certificate=Certificate("threshold", arrays))
    for judge in (check, prove):
        with pytest.raises(CertificateError, match=message):
            judge(th, R)


def test_result_of_another_matrix_is_refused() -> None:
    th = threshold(make_system(6))
    with pytest.raises(CertificateError, match="6 by 6"):
        check(th, R)
    assert not check(threshold(make_system(13)), R).passed


def test_proof_at_fifty_variables() -> None:
    system = make_system(50)
    proof = prove(threshold(system), system)
    assert proof.passed
    assert proof.lower < 0.95  # so that 0.95 is impossible without residual correlation: decided
    assert proof.upper < 0.95


def test_ill_conditioned_matrix_is_proved_too() -> None:
    rng = np.random.default_rng(2)
    Q, _ = np.linalg.qr(rng.normal(size=(10, 10)))
    C = (Q * np.logspace(0, -7.5, 10)) @ Q.T
    d = 1 / np.sqrt(np.diag(C))
    system = C * np.outer(d, d)
    system = (system + system.T) / 2
    np.fill_diagonal(system, 1)
    assert prove(threshold(system), system).gap <= 1e-9


@pytest.mark.parametrize("judge", [check, prove])
def test_what_carries_no_certificate(judge):
    R = [[1.0, 0.6], [0.6, 1.0]]
    with pytest.raises(CertificateError, match=r"got Frontier; of a fitted CORAL, use result_"):
        judge(frontier(R, [0.9]), R)
