"""Theorems of docs/theory that need a convex solver, or more than a few lines, to be checked."""

import cvxpy as cp
import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.stats import ortho_group

import conic
import problems
from skcoral import decorrelate, maximize_fidelity, threshold
from skcoral.baselines import minimum_torsion
from skcoral.core.tolerances import LIMIT_GAP


def correlation(seed, p):
    """A correlation matrix without structure, of moderate condition."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(4 * p, p)) @ rng.normal(size=(p, p)) * rng.exponential(size=p)
    return np.corrcoef(X.T)


def factor(R):
    return np.linalg.cholesky(R).T


def lifted(R):
    """The Gram matrix of variables and outputs as a variable, with C, G and its constraints."""
    p = len(R)
    gram = cp.Variable((2 * p, 2 * p), PSD=True)
    C, G = gram[:p, p:], gram[p:, p:]
    return C, G, [gram[:p, :p] == R, cp.diag(G) == 1]


@pytest.mark.parametrize("seed", range(4))
def test_every_contraction_is_dominated_by_an_orthogonal_matrix(seed):
    R = correlation(seed, 5)
    rng = np.random.default_rng(seed)
    K = np.eye(5) + rng.normal(size=(5, 5)) * 0.7
    K = K / np.linalg.norm(K, 2)
    floors = np.sum(factor(R) * K, axis=0)
    answer = decorrelate(R, np.maximum(floors, 0))
    assert answer.status == "exact"
    assert np.all(np.diag(R @ answer.T) >= floors - 1e-9)


@pytest.mark.parametrize("seed", range(4))
def test_outputs_outside_the_span_are_dominated_by_a_transformation(seed):
    R = correlation(seed, 4)
    rng = np.random.default_rng(seed)
    A = np.vstack([factor(R), np.zeros((4, 4))])
    W = A + rng.normal(size=(8, 4)) * 0.3
    W = W / np.linalg.norm(W, axis=0)
    G, fidelity = W.T @ W, np.sum(A * W, axis=0)
    assert fidelity.min() > 0
    weights = 1 / np.abs(G)
    np.fill_diagonal(weights, 0)
    answer = decorrelate(R, fidelity, criterion="worst", pair_weights=weights)
    assert answer.objective <= 1 + 1e-7
    correlations = answer.T.T @ R @ answer.T
    assert np.all(np.abs(correlations) <= np.abs(G) * (1 + 1e-6) + 1e-9)


def test_nothing_is_lost_for_another_convex_monotone_criterion():
    """Cubes, which are none of the three criteria: the lifted minimum is attained by some T."""
    R, rho, p = correlation(0, 4), np.array([0.95, 0.9, 0.97, 0.99]), 4
    C, G, constraints = lifted(R)
    pairs = [(i, j) for i in range(p) for j in range(i)]
    cubes = sum(cp.power(cp.abs(G[i, j]), 3) for i, j in pairs)
    problem = cp.Problem(cp.Minimize(cubes), [*constraints, cp.diag(C) >= rho])
    conic.solve(problem)
    A, at = factor(R), tuple(np.transpose(pairs))

    def outputs(x):
        return x.reshape(p, p)

    end = minimize(
        lambda x: np.sum(np.abs((outputs(x).T @ outputs(x))[at]) ** 3),
        (A @ decorrelate(R, rho).T).ravel(),
        method="SLSQP",
        constraints=[
            {"type": "eq", "fun": lambda x: np.sum(outputs(x) ** 2, axis=0) - 1},
            {"type": "ineq", "fun": lambda x: np.sum(A * outputs(x), axis=0) - rho},
        ],
        options={"ftol": 1e-13, "maxiter": 500},
    )
    assert problem.value > 1e-3
    assert end.fun == pytest.approx(problem.value, rel=1e-4)


def test_in_the_coordinates_of_the_transformation_there_are_other_local_maxima():
    """Outputs of the other orientation: best among their neighbours, far from the best of all."""
    R, limit = np.array([[1.0, 0.8], [0.8, 1.0]]), 1.25
    A = factor(R)

    def outputs(x):
        return np.array([np.cos(x[:2]), np.sin(x[:2])])

    def common(x):
        return np.sum(A * outputs(x), axis=0)

    start = np.array([0.9, -0.3])
    assert np.linalg.det(outputs(start)) * np.linalg.det(A) < 0
    end = minimize(
        lambda x: -x[2],
        np.append(start, 0.0),
        method="SLSQP",
        constraints=[
            {"type": "ineq", "fun": lambda x: common(x) - x[2]},
            {"type": "ineq", "fun": lambda x: 1 - 1 / limit - np.cos(x[0] - x[1]) ** 2},
        ],
    )
    apart = np.arccos(np.sqrt(1 - 1 / limit))
    assert -end.fun == pytest.approx(np.cos((np.arccos(0.8) + apart) / 2), abs=1e-6)
    best = maximize_fidelity(R, limit, criterion="vif")
    highest = np.cos((apart - np.arccos(0.8)) / 2)
    assert best.rho_min[0] <= highest + 1e-12
    assert highest <= best.goal.rho_upper + 1e-12
    assert best.goal.rho_upper - best.rho_min[0] <= 0.01 * LIMIT_GAP
    assert best.rho_min[0] > 0.3 - end.fun


@pytest.mark.parametrize("criterion", ["squared", "worst", "absolute"])
@pytest.mark.parametrize("seed", [4, 9])
def test_the_tie_break_leaves_the_largest_mean(criterion, seed):
    """Beside the outputs that are correlated, the others have the largest sum of fidelities."""
    R, rho = correlation(seed, 5), np.array([0.995, 0.2, 0.995, 0.6, 0.3])
    answer = decorrelate(R, rho, criterion=criterion)
    assert answer.status == "optimal"
    idle = np.abs(answer.correlation - np.eye(5)).max(axis=0) < 1e-7
    assert idle.sum() >= 2
    A = factor(R)
    Q = np.linalg.qr(A @ answer.T[:, ~idle], mode="complete")[0][:, (~idle).sum() :]
    K = cp.Variable((idle.sum(), idle.sum()))
    f = cp.diag((Q.T @ A[:, idle]).T @ K)
    problem = cp.Problem(cp.Maximize(cp.sum(f)), [cp.sigma_max(K) <= 1, f >= rho[idle]])
    conic.solve(problem)
    assert answer.fidelity[idle].sum() == pytest.approx(problem.value, abs=1e-6)


@pytest.mark.parametrize("seed", range(4))
def test_minimum_torsion_is_the_global_maximum_and_the_only_fixed_point(seed):
    """Ascent from random orthogonal matrices never gets above it and ends there, up to signs."""
    R = correlation(seed, 4)
    A = factor(R)
    best = np.sum(np.diag(R @ minimum_torsion(R).T) ** 2)
    rises = 0
    for Q in ortho_group.rvs(4, size=30, random_state=seed):
        f = np.sum(A * Q, axis=0)
        for _ in range(3000):
            U, _, V = np.linalg.svd(A * f)
            moved = np.sum(A * (U @ V), axis=0)
            if np.abs(moved - f).max() < 1e-13:
                break
            f = moved
        rises += np.sum(f**2) > np.sum((A * Q).sum(axis=0) ** 2)
        assert np.sum(f**2) == pytest.approx(best, abs=1e-8)
    assert rises == 30
    # detection with equal priors, over all measurements: the same value
    measurement = [cp.Variable((4, 4), PSD=True) for _ in range(4)]
    success = [a @ M @ a for a, M in zip(A.T, measurement, strict=True)]
    problem = cp.Problem(cp.Maximize(sum(success)), [sum(measurement) == np.eye(4)])
    conic.solve(problem)
    assert best == pytest.approx(problem.value, abs=1e-6)


@pytest.mark.parametrize("seed", range(3))
def test_the_squared_threshold_is_the_value_of_minimax_detection(seed):
    R = correlation(seed, 4)
    A = factor(R)
    measurement, worst = [cp.Variable((4, 4), PSD=True) for _ in range(4)], cp.Variable()
    success = [a @ M @ a >= worst for a, M in zip(A.T, measurement, strict=True)]
    problem = cp.Problem(cp.Maximize(worst), [sum(measurement) == np.eye(4), *success])
    conic.solve(problem)
    edge = threshold(R)
    assert edge.value**2 == pytest.approx(problem.value, abs=1e-6)
    prior = np.array([constraint.dual_value for constraint in success]).ravel()
    assert prior == pytest.approx(edge.weights, abs=1e-4)


def test_multipliers_of_the_largest_mean_exist_at_the_threshold_unless_some_floors_are_idle(wine):
    """All variables binding, or the others uncorrelated with them: the weights stay bounded."""
    blocks = np.zeros((5, 5))
    blocks[:3, :3] = [[1, 0.7, 0.4], [0.7, 1, 0.4], [0.4, 0.4, 1]]
    blocks[3:, 3:] = [[1, 0.1], [0.1, 1]]
    for R, binding, bounded in (
        (np.array([[1, 0.6, 0.5], [0.6, 1, 0.5], [0.5, 0.5, 1]]), 3, True),
        (blocks, 3, True),
        (wine.correlation, 12, False),
    ):
        edge = threshold(R)
        assert np.sum(edge.weights > 0) == binding
        near, nearer = (decorrelate(R, edge.value - room).weights.max() for room in (1e-5, 1e-7))
        assert (nearer < 1.1 * near) == bounded
        assert bounded or nearer > 5 * near


@pytest.mark.parametrize("p", [2, 5, 20])
def test_every_regular_table_keeps_seventy_percent_within_half_a_correlation_and_a_vif_of_two(p):
    R = problems.common(np.random.default_rng(p), p)
    assert np.diag(np.linalg.inv(R)).max() > 2
    by_vif = maximize_fidelity(R, 2.0, criterion="vif").rho_min[0]
    by_pair = maximize_fidelity(R, 0.5, criterion="worst").rho_min[0]
    assert min(by_vif, by_pair) >= np.sqrt(0.5)
