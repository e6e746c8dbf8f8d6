"""The same numbers by a conic solver, by descent on the caps, and by closed forms."""

import numpy as np
import pytest
from scipy.optimize import minimize

import conic
from skcoral import decorrelate, threshold

SIZES = [3, 3, 4, 4, 5, 5, 6, 7, 8, 9, 10, 12]


def floors_for(R, seed):
    """Common floors above the threshold for even seeds, mixed ones (some without) for odd seeds."""
    rng = np.random.default_rng(seed)
    rho = threshold(R).upper
    if seed % 2 == 0:
        return np.full(len(R), rho + rng.uniform(0.2, 0.9) * (1 - rho))
    floors = rng.uniform(0.3, 0.995, len(R))
    floors[rng.integers(len(R))] = 0.995
    floors[rng.integers(len(R))] = 0.0
    return floors


@pytest.mark.parametrize(("seed", "p"), list(enumerate(SIZES)))
def test_conic_solver_agrees(random_correlation, naive, seed, p):
    R = random_correlation(p, seed)
    floors = floors_for(R, seed)
    for criterion in ("squared", "worst", "absolute"):
        result = decorrelate(R, floors, criterion=criterion)
        reference = naive.sdp(R, floors, criterion)
        assert result.objective == pytest.approx(reference, abs=1e-6 * max(1.0, reference))
        assert result.lower_bound == pytest.approx(reference, abs=1e-6 * max(1.0, reference))


@pytest.mark.parametrize("criterion", ["squared", "worst", "absolute"])
@pytest.mark.parametrize("system", ["p6", "p18", "wdi", "wine"])
def test_conic_solver_agrees_on_the_papers_systems(systems, naive, verify, system, criterion):
    R = systems[system]
    result = decorrelate(R, 0.98, criterion=criterion)
    reference = naive.sdp(R, 0.98, criterion)
    assert result.objective == pytest.approx(reference, abs=1e-6 * max(1.0, reference))
    verify(R, result)


@pytest.mark.parametrize("criterion", ["squared", "worst", "absolute"])
@pytest.mark.parametrize("seed", [0, 1])
def test_conic_solver_agrees_with_pair_weights(random_correlation, naive, verify, criterion, seed):
    p = 6
    R = random_correlation(p, 40 + seed)
    rng = np.random.default_rng(seed)
    omega = rng.uniform(0.2, 3.0, (p, p))
    omega = np.triu(omega, 1) + np.triu(omega, 1).T
    if seed:
        omega[0, 1] = omega[1, 0] = omega[2, 5] = omega[5, 2] = 0.0
    floors = np.full(p, 0.97)
    result = decorrelate(R, floors, criterion=criterion, pair_weights=omega)
    reference = naive.sdp(R, floors, criterion, omega)
    assert result.objective == pytest.approx(reference, abs=1e-6 * max(1.0, reference))
    verify(R, result)


def descend_on_caps(R, rho, T):
    """Riemannian-style descent: free vectors, normalised onto the rims of the caps."""
    values, vectors = np.linalg.eigh(R)
    A = (vectors * np.sqrt(values)) @ vectors.T
    p = len(R)
    cosine, sine = rho, np.sqrt(1 - rho**2)

    def build(x):
        U = x.reshape(p, p)
        U = U - A * np.sum(A * U, axis=0)
        length = np.linalg.norm(U, axis=0)
        return cosine * A + sine * U / length, U, length

    def value(x):
        W, U, length = build(x)
        E = W.T @ W
        np.fill_diagonal(E, 0.0)
        unit = U / length
        gradient = 2 * sine * W @ E / length
        gradient = gradient - A * np.sum(A * gradient, axis=0)
        gradient = gradient - unit * np.sum(unit * gradient, axis=0)
        return 0.5 * np.sum(E**2), gradient.ravel()

    found = minimize(
        value, (A @ T).ravel(), jac=True, method="L-BFGS-B",
        options={"maxiter": 5000, "ftol": 1e-16, "gtol": 1e-11, "maxcor": 30},
    )  # fmt: skip
    return float(found.fun)


@pytest.mark.parametrize(
    ("system", "rho"), [("p6", 0.99), ("p18", 0.97), ("wine", 0.85), ("wine", 0.99), ("wdi", 0.99)]
)
def test_descent_on_the_caps_ends_at_the_same_value(systems, system, rho):
    R = systems[system]
    reached = descend_on_caps(R, rho, threshold(R).T)
    result = decorrelate(R, rho)
    assert reached >= result.lower_bound - 1e-10
    assert reached == pytest.approx(result.objective, abs=1e-8)


def test_prices_are_the_derivatives(systems):
    R = systems["wine"]
    floors = np.linspace(0.86, 0.97, 13)
    for criterion in ("squared", "absolute"):
        result = decorrelate(R, floors, criterion=criterion)
        step = 1e-4
        for j in (0, 5, 12):
            up, down = floors.copy(), floors.copy()
            up[j] += step
            down[j] -= step
            change = (
                decorrelate(R, up, criterion=criterion).objective
                - decorrelate(R, down, criterion=criterion).objective
            )
            assert result.prices[j] == pytest.approx(change / (2 * step), rel=1e-3, abs=1e-3)


def test_worst_pair_ties_go_to_the_least_squares(random_correlation, naive):
    cp = pytest.importorskip("cvxpy")
    R = random_correlation(6, 11)
    floors = np.array([0.99, 0.99, 0.9, 0.9, 0.9, 0.85])
    result = decorrelate(R, floors, criterion="worst")
    p = len(R)
    C, G = cp.Variable((p, p)), cp.Variable((p, p), symmetric=True)
    E = G - np.eye(p)
    problem = cp.Problem(
        cp.Minimize(0.5 * cp.sum_squares(E)),
        [
            cp.bmat([[R, C], [C.T, G]]) >> 0,
            cp.diag(G) == 1,
            cp.diag(C) >= floors,
            cp.abs(E) <= result.objective * (1 + 1e-6),
        ],
    )
    conic.solve(problem)
    squares = naive.objective(R, result.T, "squared")
    assert squares == pytest.approx(problem.value, rel=1e-3)
    # Squares alone would leave a worse pair: the tie-break is not the criterion.
    assert decorrelate(R, floors).objective < squares
