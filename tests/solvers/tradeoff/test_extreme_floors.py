"""Floors next to one and next to the threshold, and pairs of weight zero."""

import numpy as np
import pytest

import conic
import problems
from skcoral import decorrelate, threshold
from skcoral.certificates import check
from skcoral.datasets import make_system

CRITERIA = ("squared", "worst", "absolute")


@pytest.mark.parametrize(
    ("criterion", "all_count"), [*((c, False) for c in CRITERIA), ("worst", True)]
)
def test_ties_go_to_the_least_squares(random_correlation, naive, criterion, all_count):
    """Among all optima the least sum of squares over all pairs, by an independent solver."""
    cp = pytest.importorskip("cvxpy")
    rng = np.random.default_rng(4)
    p = 6
    R = random_correlation(p, 4)
    omega = np.ones((p, p))
    if not all_count:
        omega[0, 1] = omega[1, 0] = omega[2, 3] = omega[3, 2] = omega[0, 4] = omega[4, 0] = 0
    floors = np.array([0.995, 0.99, 0.97, 0.9, 0.95, 0.9]) - 0.01 * rng.uniform(size=p)
    result = decorrelate(R, floors, criterion=criterion, pair_weights=omega)
    C, G = cp.Variable((p, p)), cp.Variable((p, p), symmetric=True)
    E = G - np.eye(p)
    loss = {
        "squared": 0.5 * cp.sum(cp.multiply(omega, cp.square(E))),
        "worst": cp.max(cp.multiply(omega, cp.abs(E))),
        "absolute": 0.5 * cp.sum(cp.multiply(omega, cp.abs(E))),
    }[criterion]
    feasible = [cp.bmat([[R, C], [C.T, G]]) >> 0, cp.diag(G) == 1, cp.diag(C) >= floors]
    within = [loss <= result.objective + 1e-6]
    problem = cp.Problem(cp.Minimize(0.5 * cp.sum_squares(E)), feasible + within)
    conic.solve(problem)
    squares = naive.objective(R, result.T, "squared")
    assert squares == pytest.approx(problem.value, rel=5e-3)
    # Squares alone would leave more of the criterion: the tie-break is not the criterion.
    assert decorrelate(R, floors).objective < squares


@pytest.mark.parametrize("criterion", CRITERIA)
def test_floors_whose_pairs_do_not_count_among_themselves(criterion):
    R = np.full((4, 4), 0.7) + 0.3 * np.eye(4)
    omega = np.ones((4, 4))
    omega[:2, :2] = 0
    # The other two have no floor, so they can be uncorrelated with everything.
    floors = [0.999, 0.999, 0, 0]
    result = decorrelate(R, floors, criterion=criterion, pair_weights=omega)
    assert result.status in {"optimal", "exact"}
    assert result.objective == pytest.approx(0, abs=1e-9)
    # The tie-break turns the two away from each other as far as their floors allow.
    angle = np.arccos(0.7) + 2 * np.arccos(0.999)
    assert result.correlation[0, 1] == pytest.approx(np.cos(angle), abs=1e-6)


def test_outputs_without_a_price_take_no_part_in_the_proof():
    """The worst pair of this system has five of them; their floors bind in the tie-break only."""
    R = make_system(30)
    result = decorrelate(R, 0.99, criterion="worst")
    assert check(result, R).passed
    free = result.prices == 0
    assert 0 < free.sum() < 10
    np.testing.assert_allclose(result.fidelity[free], 0.99, atol=1e-9)
    H = result.certificate.arrays["H"]
    assert np.abs(H[free][:, ~free]).max() == 0
    # Without them, the least worst pair is the same.
    some = decorrelate(R[np.ix_(~free, ~free)], 0.99, criterion="worst")
    assert some.objective == pytest.approx(result.objective, abs=1e-8)


@pytest.mark.filterwarnings("ignore::skcoral.exceptions.NotCertifiedWarning")
@pytest.mark.parametrize(
    ("criterion", "seed"), [("squared", 96036), ("worst", 92221), ("absolute", 99536)]
)
def test_never_worse_than_the_exact_decorrelator_turned_to_its_floors(criterion, seed, naive):
    """Systems on which the iteration alone ends far from anything good."""
    rng = np.random.default_rng(seed)
    p = int(rng.integers(2, 16))
    loadings = rng.normal(size=(p, 2))
    C = loadings @ loadings.T + np.diag(10 ** rng.uniform(-5, 0, p))
    R = C / np.sqrt(np.outer(np.diag(C), np.diag(C)))
    rng.choice(2), rng.random()
    omega = np.triu(rng.random((p, p)) * (rng.random((p, p)) < 0.8), 1)
    omega = omega + omega.T
    exact = threshold(R)
    floor = exact.value + 1e-6
    away = exact.T - np.diag(exact.fidelity)
    away /= np.sqrt(np.diag(away.T @ R @ away))
    turned = np.diag(np.full(p, floor)) + np.sqrt(1 - floor**2) * away
    turned = np.where(exact.fidelity >= floor, exact.T, turned)
    result = decorrelate(R, floor, criterion=criterion, pair_weights=omega)
    assert check(result, R).passed
    known = naive.objective(R, turned, criterion, omega)
    # One in a hundred for the rounding of the floors, a millionth above the threshold.
    assert naive.objective(R, result.T, criterion, omega) <= 1.01 * known + 1e-10


@pytest.mark.parametrize("seed", [2, 5, 6, 8, 9])
def test_forty_variables_with_floors_within_rounding_of_one(seed):
    """Slacks of 1e-15 beside others of .15: the equations need all their digits."""
    rng = np.random.default_rng(seed)
    R = problems.factor(rng, 40)
    close = rng.random(40) < 0.5
    result = decorrelate(R, np.where(close, 1 - 10.0 ** rng.uniform(-15, -3, 40), 0.85))
    assert result.status == "optimal"
