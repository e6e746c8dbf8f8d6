"""What the solver emits passes the independent checker, and altered results do not."""

from __future__ import annotations

import numpy as np
import pytest

from skcoral import decorrelate, threshold
from skcoral.certificates import check
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


@pytest.mark.parametrize("kind", ["noise", "sums", "duplicates", "rank one"])
def test_thresholds_pass(tables, kind):
    R = matrices(tables)[kind]
    verdict = check(threshold(R), R)
    assert verdict.passed, verdict.problems


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
