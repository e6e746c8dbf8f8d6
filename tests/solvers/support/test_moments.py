"""Second-order moments: the relaxation, its bound, and what the solver makes of them."""

from __future__ import annotations

from itertools import combinations_with_replacement
from typing import Any

import numpy as np
import pytest

import conic
import skcoral.solvers.support.moments as moments_module
from skcoral import decorrelate
from skcoral.bounds.arithmetic import Floats
from skcoral.bounds.support import support_bound
from skcoral.core.arrays import Array, Mask
from skcoral.core.solution import Certificate
from skcoral.exceptions import InvalidArgumentError
from skcoral.solvers.support.caps import Caps, feasible_set
from skcoral.solvers.support.moments import Relaxation, bound_by_moments


def problem(seed: int) -> tuple[Array, Mask]:
    """A correlation matrix and a random symmetric support."""
    rng = np.random.default_rng(seed)
    p = int(rng.integers(4, 7))
    R = np.corrcoef(rng.normal(size=(p + 2, p)).T)
    mask = rng.random((p, p)) < 0.5
    mask |= mask.T
    np.fill_diagonal(mask, True)
    return R, mask


def proved(caps: Caps, arrays: dict[str, Array], criterion: str) -> float:
    """What a dual point proves of a criterion."""
    info = {"bound": "moments", "criterion": criterion}
    arrays = {**arrays, "support": caps.mask.astype(float)}
    certificate = Certificate("support", arrays, info)
    return float(support_bound(certificate, caps.floors, caps.R, Floats(2)).lower)


def points(caps: Caps, n: int, seed: int = 0) -> Array:
    """Random points of the caps."""
    rng = np.random.default_rng(seed)
    drawn = np.where(caps.valid, rng.normal(size=(n, caps.p, caps.m)), 0.0)
    return caps.onto_caps(drawn)


def moment_matrix(relaxation: Relaxation, caps: Caps, U: Array) -> Array:
    """``y yᵀ`` of one point, by definition."""
    y = [1.0]
    for u, n, basis in zip(U, relaxation.sizes, relaxation.forms, strict=True):
        s = u[:n]
        H = basis[1:].reshape(-1, n, n)
        y.extend(np.einsum("a,hab,b->h", s, H, s))
    return np.outer(y, y)


@pytest.mark.parametrize("worst", [False, True])
@pytest.mark.parametrize("floor", [0.0, 0.6])
def test_normal_equations_and_completed_multipliers(worst: bool, floor: float) -> None:
    R, mask = problem(2)
    caps = feasible_set(R, mask, np.full(len(R), floor))
    relaxation = Relaxation(caps, worst=worst)
    rng = np.random.default_rng(1)
    x = rng.normal(size=(relaxation.N, relaxation.N))
    x = x + x.T
    x[0, 0] = 1.3 if worst else 0.0
    blocks = relaxation.blocks(x, constant=0.0)
    image = relaxation.collected(blocks)
    np.testing.assert_allclose(relaxation.normal(x), image, atol=1e-12)
    # Σ ω r² = ⟨S, X⟩ + constant + what the other blocks contribute, for any multipliers.
    duals = [rng.normal(size=b.shape) for b in blocks]
    duals = [d + d.swapaxes(-1, -2) for d in duals]
    duals[-1] = np.abs(duals[-1]) if worst else duals[-1]
    duals = [P - A for P, A in zip(relaxation.projected(duals), duals, strict=True)]
    S, weights, bound = relaxation.completed(duals)
    X = moment_matrix(relaxation, caps, points(caps, 1)[0])
    further = relaxation._further(X, 0.0)
    others = [relaxation._up(X, j, k) for j, k in relaxation.pairs]
    others += further[: len(further) - worst]
    spent = sum(
        np.sum(d * b) for d, b in zip(duals[1 + len(relaxation.sizes) :], others, strict=False)
    )
    E = caps.outputs(points(caps, 1))[0]
    expected = float(weights @ (E @ E.T)[np.triu_indices(len(E), 1)] ** 2)
    assert np.sum(S * X) + bound + spent == pytest.approx(expected, abs=1e-10)
    assert np.linalg.eigvalsh(S)[0] >= -1e-12


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("floor", [0.0, 0.7])
def test_any_dual_point_gives_a_bound(seed: int, floor: float) -> None:
    R, mask = problem(seed)
    p, rng = len(R), np.random.default_rng(seed)
    caps = feasible_set(R, mask, np.full(p, floor))
    solved = bound_by_moments(caps, np.inf, lambda _: True)
    E = np.einsum("sia,sja->sij", *[caps.outputs(points(caps, 500, seed))] * 2)
    least = float(np.min(np.sum(np.triu(E, 1) ** 2, axis=(1, 2))))
    bounds = []
    for size in (0.0, 1e-6, 1e-3, 1.0):
        noisy = {name: a + size * rng.normal(size=a.shape) for name, a in solved.items()}
        noisy |= {"S": 0.5 * (noisy["S"] + noisy["S"].T), "weights": solved["weights"]}
        bounds.append(proved(caps, noisy, "squared"))
        assert bounds[-1] <= least + 1e-12
    assert bounds[0] >= bounds[1] - 1e-3


def conic_value(R: Array, mask: Mask, floors: Array, *, worst: bool) -> float:
    """The relaxation as it is written in products of entries, by a conic solver."""
    cvxpy = pytest.importorskip("cvxpy")
    pytest.importorskip("clarabel")
    caps = feasible_set(R, mask, floors)
    sizes = caps.valid.sum(axis=1)
    entries = [(k, a) for k in range(caps.p) for a in range(sizes[k])]
    of_column = [[e for e in entries if e[0] == k] for k in range(caps.p)]
    moments: dict[Any, Any] = {}

    def E(*names: Any) -> Any:
        """The moment of a product; odd ones vanish."""
        if any(sum(e[0] == k for e in names) % 2 for k in range(caps.p)):
            return 0.0
        return moments.setdefault(tuple(sorted(names)), cvxpy.Variable()) if names else 1.0

    def matrix(basis: list[tuple[Any, ...]], factor: Any = E) -> Any:
        return cvxpy.bmat([[factor(*a, *b) for b in basis] for a in basis])

    y = [(), *(c for o in of_column for c in combinations_with_replacement(o, 2))]
    # The last square of a column is one less the others: without it the matrix can be definite.
    rules = [matrix([c for c in y if not any(c == (o[-1], o[-1]) for o in of_column)]) >> 0]
    squares = []
    for j in range(caps.p):
        for k in range(j + 1, caps.p):
            rules.append(matrix([(a, b) for a in of_column[j] for b in of_column[k]]) >> 0)
            B = caps.frames[j] @ caps.frames[k].T
            terms = [(a, b) for a in of_column[j] for b in of_column[k]]
            squares.append(
                sum(
                    B[a[1], b[1]] * B[c[1], d[1]] * E(a, b, c, d)
                    for a, b in terms
                    for c, d in terms
                )
            )
    for o in of_column:
        for c in y:
            rules.append(sum(E(e, e, *c) for e in o) == E(*c))
    for k in range(caps.p):
        first, rho = of_column[k][0], float(caps.floors[k])
        if sizes[k] > 1 and rho > 0:
            for o in of_column:
                rules.append(
                    matrix(
                        [(e,) for e in o],
                        lambda *n, first=first, rho=rho: E(first, first, *n) - rho**2 * E(*n),
                    )
                    >> 0
                )
    objective = cvxpy.maximum(*squares) if worst else sum(squares)
    program = cvxpy.Problem(cvxpy.Minimize(objective), rules)
    loose = dict.fromkeys(("tol_gap_abs", "tol_gap_rel", "tol_feas", "tol_ktratio"), 1e-6)
    return float(conic.solve(program, **loose))


@pytest.mark.parametrize(
    ("seed", "floor", "worst"), [(0, 0.0, False), (1, 0.8, False), (1, 0.0, True), (0, 0.8, True)]
)
def test_a_conic_solver_finds_the_same_relaxation(
    seed: int, floor: float, worst: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(seed)
    R = np.corrcoef(rng.normal(size=(6, 4)).T)
    mask = np.eye(4, dtype=bool)
    for i, j in ((0, 1), (1, 2), (2, 3), (0, 3)):
        mask[i, j] = mask[j, i] = True
    floors = np.full(4, floor)
    caps = feasible_set(R, mask, floors)
    wanted = conic_value(R, mask, floors, worst=worst)
    monkeypatch.setattr(moments_module, "TIME_LIMIT", 4.0)
    dual = bound_by_moments(caps, wanted, lambda _: False, worst=worst)
    found = proved(caps, dual, "worst" if worst else "squared") ** (2 if worst else 1)
    # The largest of several moments converges slowly: in the time given to a few digits.
    assert found == pytest.approx(wanted, rel=2e-3, abs=3e-4 if worst else 2e-5)
    assert found <= wanted + 1e-5


def test_moments_close_a_gap_that_quick_bounds_leave() -> None:
    R, mask = problem(14)
    quick = decorrelate(R, support=mask, n_starts=50)
    answer = decorrelate(R, support=mask, n_starts=50, proof="moments")
    assert quick.status == "best_found"
    assert answer.status == "optimal"
    assert answer.certificate.info["bound"] == "moments"
    assert answer.objective == pytest.approx(quick.objective)


def test_the_callback_ends_the_search() -> None:
    R, mask = problem(18)
    bounds: list[float] = []

    def stop_soon(_: int, objective: float, lower: float) -> bool:
        assert lower <= objective
        bounds.append(lower)
        return lower > 0.49

    answer = decorrelate(R, support=mask, n_starts=20, proof="moments", callback=stop_soon)
    assert answer.status == "best_found"
    assert 0.49 < answer.lower_bound < 0.5146
    assert bounds == sorted(bounds)


def test_what_moments_are_refused_for() -> None:
    with pytest.raises(InvalidArgumentError, match="goes with support or bounds"):
        decorrelate(np.eye(3), proof="moments")
    with pytest.raises(InvalidArgumentError, match="proof"):
        decorrelate(np.eye(3), support=0.1, proof="slow")
    R = np.corrcoef(np.random.default_rng(0).normal(size=(90, 30)).T)
    mask = np.ones((30, 30), dtype=bool)
    mask[0, 1:] = mask[1:, 0] = False
    with pytest.raises(InvalidArgumentError, match="largest"):
        Relaxation(feasible_set(R, mask, np.zeros(30)), worst=False)


@pytest.mark.slow
def test_most_of_the_gap_closes_in_small_problems(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(moments_module, "TIME_LIMIT", 4.0)
    shares = []
    for seed in range(50):
        R, mask = problem(seed)
        quick = decorrelate(R, support=mask, n_starts=50)
        if quick.status == "best_found":
            answer = decorrelate(R, support=mask, n_starts=50, proof="moments")
            left = quick.objective - quick.lower_bound
            shares.append((answer.lower_bound - quick.lower_bound) / left)
    assert len(shares) >= 5  # the quick bounds leave a gap in six of them
    assert np.mean(shares) >= 0.9
