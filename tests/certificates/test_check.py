"""``check`` passes true results and refuses altered ones."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from skcoral import decorrelate, frontier, threshold
from skcoral.certificates import check, prove
from skcoral.certificates.certify import certify_threshold
from skcoral.core.problem import Settings
from skcoral.core.solution import Certificate
from skcoral.datasets import load_wine, make_system
from skcoral.exceptions import CertificateError, NotCertifiedWarning
from skcoral.solvers.exact import solve_threshold

R = np.asarray(load_wine().correlation)


def test_a_feasible_but_worse_answer_is_not_optimal() -> None:
    worse = decorrelate(R, 0.93)
    liar = dataclasses.replace(
        decorrelate(R, 0.9), T=worse.T, fidelity=worse.fidelity, objective=worse.objective
    )
    verdict = check(liar, R)
    assert not verdict.passed
    assert any("gap" in problem for problem in verdict.problems)


def test_an_exact_but_not_best_answer_fails() -> None:
    other = decorrelate(R)  # meets the floors of 0.8 too, with a smaller mean
    liar = dataclasses.replace(decorrelate(R, 0.8), T=other.T, fidelity=other.fidelity)
    for verdict in (check(liar, R), prove(liar, R)):
        assert any("mean fidelity" in problem for problem in verdict.problems)
    # Whoever does not claim the largest mean is not held to it.
    assert check(dataclasses.replace(liar, status="best_found"), R).passed


def test_an_early_end_is_proved_for_what_it_is() -> None:
    with pytest.warns(NotCertifiedWarning):
        early = certify_threshold(
            solve_threshold(R, Settings(tuple(map(str, range(13))), max_iter=2))
        )
    for verdict in (check(early, R), prove(early, R)):
        assert verdict.passed, verdict.problems
        assert 1e-4 < verdict.gap < 1e-1


def test_any_dual_point_gives_a_valid_bound() -> None:
    """The inequality holds for weights and matrices that no solver has seen."""
    th = threshold(R)
    rng = np.random.default_rng(0)
    for _ in range(20):
        weights = rng.uniform(0.01, 1, 13)
        A = rng.normal(size=(13, 13))
        point = Certificate("threshold", {"weights": weights, "S": A @ A.T + 0.1 * np.eye(13)})
        assert check(dataclasses.replace(th, certificate=point), R).upper >= th.lower


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
