"""What the solver emits passes the independent checker, and altered results do not."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from skcoral import decorrelate, threshold
from skcoral.certificates import check, prove
from skcoral.core.solution import Certificate
from skcoral.exceptions import CertificateError
from skcoral.solvers.singular.dual import maximise_bound
from skcoral.solvers.singular.rank_bound import RankBound, multipliers_of_outputs

pytestmark = [
    pytest.mark.filterwarnings("ignore::skcoral.exceptions.SingularCorrelationWarning"),
    pytest.mark.filterwarnings("ignore::skcoral.exceptions.NotCertifiedWarning"),
]


def matrices(tables):
    return {
        "noise": np.corrcoef(tables.noise(7, 12).T),
        "sums": np.corrcoef(tables.sums(80, 9, 1, 1).T),
        "duplicates": np.array([[1.0, 1.0, 0.0], [1.0, 1.0, 0.0], [0.0, 0.0, 1.0]]),
        "rank one": np.ones((4, 4)),
    }


@pytest.mark.parametrize("kind", ["noise", "sums", "duplicates", "rank one"])
@pytest.mark.parametrize("criterion", ["squared", "worst", "absolute"])
@pytest.mark.parametrize("floor", [0.5, 0.9, 0.99, 1 - 1e-9, 1.0])
def test_results_pass(tables, kind, criterion, floor):
    R = matrices(tables)[kind]
    result = decorrelate(R, floor, criterion=criterion)
    verdict = check(result, R)
    assert verdict.passed, verdict.problems


def test_the_rank_proves_the_absolute_sum_of_duplicates(tables):
    """p - r, and not more: a larger bound is refused."""
    R = matrices(tables)["duplicates"]
    result = decorrelate(R, 0.9, criterion="absolute")
    assert (result.status, result.certificate.kind) == ("optimal", "frame")
    assert result.lower_bound == pytest.approx(1.0, abs=1e-12)
    assert not check(replace(result, lower_bound=1.001, objective=1.001), R).passed


@pytest.mark.parametrize("kind", ["noise", "sums", "duplicates", "rank one"])
def test_thresholds_pass(tables, kind):
    R = matrices(tables)[kind]
    verdict = check(threshold(R), R)
    assert verdict.passed, verdict.problems


@pytest.mark.parametrize("floor", [0.7, 0.99])
def test_proofs_in_ball_arithmetic(tables, floor):
    pytest.importorskip("flint")
    R = matrices(tables)["sums"]
    proof = prove(decorrelate(R, floor), R)
    assert proof.rigorous
    assert proof.passed, proof.problems


def refused(result, **where):
    try:
        return not check(result, **where).passed
    except CertificateError:
        return True


def test_altered_results_are_refused(tables):
    R = matrices(tables)["noise"]
    result = decorrelate(R, 0.99)
    assert result.certificate.kind == "frame"
    arrays, left_open = dict(result.certificate.arrays), np.corrcoef(tables.sums(100, 8, 1, 0).T)
    forged = {
        "objective": replace(result, objective=0.9 * result.objective),
        "bound": replace(result, lower_bound=1.001 * result.lower_bound),
        "T": replace(result, T=result.T + 1e-4 * np.eye(len(R))),
        "rank": replace(
            result,
            certificate=replace(
                result.certificate, info={**result.certificate.info, "rank": result.rank - 1}
            ),
        ),
        "status": replace(decorrelate(left_open, 0.9), status="optimal"),
    }
    for name in ("N", "multipliers", "kappa", "factor"):
        changed = {**arrays, name: 1.01 * arrays[name]}
        certificate = Certificate("frame", changed, result.certificate.info)
        forged[name] = replace(result, certificate=certificate)
    for name, other in forged.items():
        matrix = left_open if name == "status" else R
        assert refused(other, R=matrix), name


@pytest.mark.parametrize("floor", [0.9, 0.95, 0.99])
@pytest.mark.parametrize("apart", [0.0, 1e-15, 1e-14, 1e-13, 1e-12])
def test_bounds_of_almost_equal_columns_hold_for_the_given_matrix(apart, floor):
    R = np.array([[1.0, 1.0 - apart, 0.3], [1.0 - apart, 1.0, 0.3], [0.3, 0.3, 1.0]])
    answer = decorrelate(R, floor, criterion="worst")
    # copies of one column that both keep the floor are at best twice its angle apart
    assert answer.objective >= 2 * floor**2 - 1 - 1e-12
    assert answer.lower_bound == pytest.approx(2 * floor**2 - 1, abs=5e-6)
    report = check(answer, R)
    assert report.passed, report.problems


@pytest.mark.parametrize("top", [1.0, 1 - 1e-10])
def test_columns_that_miss_unit_length_prove_no_more(tables, top):
    """A shorter column makes a floor of one infeasible: large multipliers would prove anything."""
    A = tables.factor_of(tables.sums(40, 5, 1, 2))
    floors = np.array([top, 0.9, 0.9, 0.9, 0.95])
    result = decorrelate(A.T @ A, floors)
    bound = RankBound(A, floors)
    point = bound.maximise(lambda at: at.left < 1e-6)
    by_outputs = multipliers_of_outputs(A, A @ result.T, floors)
    by_outputs["kappa"] = np.abs(by_outputs["kappa"])
    frame = maximise_bound(A, floors, allowed=lambda _: 1e-9, max_iter=200).multipliers()
    tried = set()
    for kind, dual in (("frame", frame), ("rank", bound.multipliers(point)), ("rank", by_outputs)):
        for size in (1e4, 1e8, 1e11):
            for off in (-4e-11, 4e-11):
                arrays = {name: np.array(a) for name, a in dual.items()}
                arrays["multipliers"][0] += size
                if "kappa" in arrays:
                    arrays["kappa"][0] += size
                else:
                    arrays["H"][0, 0] += size
                factor = A * np.array([1.0 + off, 1, 1, 1, 1])
                try:
                    proved = tables.bound_of(kind, arrays, factor, floors)
                except CertificateError:  # too large to prove anything
                    continue
                tried.add(kind)
                assert proved <= result.objective + 1e-9, (kind, size, off)
    assert tried >= ({"frame", "rank"} if top == 1.0 else {"rank"})
