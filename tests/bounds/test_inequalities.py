"""Every bound of a certificate against its formula, written down once more: inverses and all.

Dual points are random, not optimal: each term counts. The interval has to contain the value of the
formula in multiple precision, and to be no wider than the digits of the arithmetic.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import flint
import numpy as np
import pytest
import scipy.linalg as sla

from certificates.results import ANCHORS, PAIRS, R, honest
from skcoral.bounds.arithmetic import Enclosure, Floats
from skcoral.bounds.dual import definite
from skcoral.bounds.exact import floor_room, mean_room
from skcoral.bounds.frame import threshold_bound
from skcoral.bounds.rank import factor_bound
from skcoral.bounds.tradeoff import complete_square, conjugate, floors_of_columns
from skcoral.certificates.evaluation import Attained, FactorOutputs, Outputs, evaluate
from skcoral.core.solution import Certificate
from skcoral.datasets import make_system
from skcoral.exceptions import CertificateError

P = 6
WIDTH = 1e-14  # relative to the terms of a sum: some roundings
pytestmark = pytest.mark.usefixtures("many_bits")


def exact(A: Any) -> Any:
    """A matrix in multiple precision; vectors are columns."""
    A = np.atleast_2d(np.asarray(A, dtype=float).T).T
    return flint.arb_mat(*A.shape, [flint.arb(a) for a in A.ravel().tolist()])


def contains(enclosure: Enclosure, value: Any, width: float, scale: float = 1.0) -> None:
    value = value.entries()[0] if isinstance(value, flint.arb_mat) else value
    assert flint.arb(float(enclosure.lower)) <= value <= flint.arb(float(enclosure.upper))
    assert float(enclosure.upper - enclosure.lower) <= width * scale, float(
        enclosure.upper - enclosure.lower
    )


def spd(p: int, condition: float = 30.0, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    Q = np.linalg.qr(rng.normal(size=(p, p)))[0]
    A = (Q * np.geomspace(1.0, 1 / condition, p)) @ Q.T
    return 0.5 * (A + A.T)


def gram(B: Any) -> tuple[Any, list[Any]]:
    """``BᵀRB`` of anchors, and their lengths."""
    C = exact(B).transpose() * exact(R) * exact(B)
    return C, [C[j, j].sqrt() for j in range(C.nrows())]


def square(C: Any, d: Any, H: Any) -> Any:
    """``tr(DCDH⁻¹) + tr H`` with the diagonal matrix of d: what a completed square takes away."""
    D = flint.arb_mat(len(d), len(d))
    for j, each in enumerate(d):
        D[j, j] = flint.arb(each)
    return (D * C * D * exact(H).inv()).trace() + exact(H).trace()


def dot(a: Any, b: Any) -> Any:
    """``Σ a_j b_j``."""
    return sum((flint.arb(x) * flint.arb(y) for x, y in zip(a, b, strict=True)), flint.arb(0))


def conjugate_of(criterion: str, H: np.ndarray, w: np.ndarray) -> tuple[Any, Any]:
    """The penalty, and the factor that (λ, H) has to be divided by."""
    penalty, total, most = flint.arb(0), flint.arb(0), flint.arb(0)
    for i in range(len(H)):
        for j in range(i):
            h = abs(flint.arb(H[i, j]))
            if w[i, j] > 0:
                penalty += h * h / flint.arb(w[i, j])
                total += 2 * h / flint.arb(w[i, j])
                most = max(most, 2 * h / flint.arb(w[i, j]), key=float)
    if criterion == "squared":
        return penalty, flint.arb(1)
    outside = total if criterion == "worst" else most
    return flint.arb(0), outside if float(outside) > 1 else flint.arb(1)


@pytest.mark.parametrize("scale", [0.02, 1.0])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("anchored", [False, True])
@pytest.mark.parametrize("criterion", ["squared", "worst", "absolute"])
@pytest.mark.parametrize("idle", [False, True])
def test_the_trade_off(
    criterion: str,
    anchored: bool,
    weighted: bool,
    scale: float,
    idle: bool,
    arithmetic: Any,
) -> None:
    """φ ≥ 2ρᵀλ - tr H - φ*(off H) - tr(D R D H⁻¹)."""
    rng = np.random.default_rng(11)
    k = 4 if anchored else P
    B = ANCHORS if anchored else np.eye(P)
    H = scale * spd(k, seed=3)
    lam = scale * rng.uniform(0.1, 1.0, k)
    if idle:
        lam[1] = 0.0  # its row of H counts all the same
    rho = rng.uniform(0.5, 1.0, k)
    w = PAIRS[:k, :k] if weighted else 1 - np.eye(k)
    result = honest("anchors" if anchored else "squared")
    result = replace(
        result,
        rho_min=rho,
        criterion=criterion,
        pair_weights=PAIRS[:k, :k] if weighted else None,
        certificate=Certificate("tradeoff", {"multipliers": lam, "H": H}, {"criterion": criterion}),
    )
    enclosure = evaluate(result, Attained(result, R, arithmetic), R, arithmetic).bound
    penalty, outside = conjugate_of(criterion, H, w)
    C, length = gram(B)
    kappa = [flint.arb(a) / b for a, b in zip(lam, length, strict=True)]
    value = 2 * dot(lam, rho) - square(C, kappa, H) - penalty
    contains(enclosure, value / outside, WIDTH, 1.0 + 2 * abs(float(value)))


@pytest.mark.parametrize("least", [1e-6, 1e-10])
def test_the_trade_off_next_to_singular(least: float, arithmetic: Any) -> None:
    """H and R nearly singular, multipliers large: what is lost is known, and in the interval."""
    rng = np.random.default_rng(11)
    H = spd(P, 1 / least, seed=4)
    near = make_system(P, seed=3)
    near = near * (1 - 1e-6) + 1e-6
    lam = rng.uniform(1, 1e3, P)
    floors = floors_of_columns(np.eye(P), np.full(P, 0.9))
    enclosure = complete_square(arithmetic, near, np.eye(P), lam, H, floors)
    value = 2 * dot(lam, np.full(P, 0.9)) - square(exact(near), lam, H)
    contains(enclosure, value, 1e-14 / least if least < 1e-8 else 1e-9, abs(float(value)))


@pytest.mark.parametrize("what", ["mean", "floor"])
@pytest.mark.parametrize("anchored", [False, True])
def test_exact_decorrelators(anchored: bool, what: str, arithmetic: Any) -> None:
    """Σ d_j f_j ≤ [tr(S⁻¹DRD) + tr S] / 2, with weights of zero where only floors are judged."""
    rng = np.random.default_rng(11)
    k = 4 if anchored else P
    B = ANCHORS if anchored else np.eye(P)
    T = honest("exact, anchors" if anchored else "exact").T
    d = rng.uniform(1.0, 3.0, k)
    if what == "floor":
        d[1] = 0.0
    on = np.flatnonzero(d)
    S, rho = spd(len(on), seed=5), rng.uniform(0.2, 0.9, k)
    outputs = Outputs(T, B, rho, R, arithmetic)
    room = mean_room if what == "mean" else floor_room
    names = ("mean_weights", "mean_S") if what == "mean" else ("weights", "S")
    enclosure = room(dict(zip(names, (d, S), strict=True)), outputs)
    C, size = gram(B)
    inside = flint.arb_mat(len(on), len(on), [C[int(i), int(j)] for i in on for j in on])
    value = square(inside, [flint.arb(d[j]) / size[j] for j in on], S) / 2 - dot(d, rho)
    if what == "floor":
        value /= dot(d, np.ones(k))
    else:
        image = exact(B).transpose() * exact(R) * exact(T)
        for j in range(k):
            value += flint.arb(rho[j]) - image[j, j] / size[j]
        value /= k
    contains(enclosure, value, WIDTH, 3.0 + 3 * abs(float(value)))


def test_beside_the_outputs_that_bind(arithmetic: Any) -> None:
    """The same with b_j - T_B T_Bᵀ R b_j instead of b_j; orthogonal outputs are not assumed."""
    rng = np.random.default_rng(11)
    T = rng.normal(size=(P, P))
    T /= np.sqrt(np.diag(T.T @ R @ T))
    lam = np.array([0.4, 0.6, 0, 0, 0, 0])
    d = np.array([0, 0, *rng.uniform(1, 3, 4)])
    S, rho = spd(4, seed=6), rng.uniform(0.2, 0.9, P)
    arrays = {"weights": lam, "S": np.eye(2), "mean_weights": d, "mean_S": S}
    enclosure = mean_room(arrays, Outputs(T, np.eye(P), rho, R, arithmetic))
    E, fixed = exact(np.eye(P)[:, 2:]), exact(T[:, :2])
    B = E - fixed * exact(T[:, :2].T @ (R @ np.eye(P)[:, 2:]))
    value = square(B.transpose() * exact(R) * B, d[2:], S) / 2
    f = np.einsum("ij,ij->j", R, T)
    for j in range(2, P):
        value += flint.arb(rho[j]) * (1 - flint.arb(d[j])) - flint.arb(f[j])
    value /= P
    middle = float(value)
    assert enclosure.lower - 1e-15 <= middle <= enclosure.upper + 1e-15
    assert enclosure.upper - enclosure.lower <= 1e-13


@pytest.mark.parametrize("size", [1e-6, 1e-2])
def test_a_square_completed_anywhere_bounds_as_well(monkeypatch: Any, size: float) -> None:
    """The point at which the square is completed need not be its minimum: the rest is counted."""
    H, lam = spd(P, seed=3), np.linspace(0.2, 1.0, P)
    value = 2 * dot(lam, np.full(P, 0.9)) - square(exact(R), lam, H)
    true, noise = sla.lapack.dpotrs, np.random.default_rng(0).normal(size=(P, P))

    def off(*arguments: Any, **options: Any) -> Any:
        X, info = true(*arguments, **options)
        return X + size * noise, info

    monkeypatch.setattr(sla.lapack, "dpotrs", off)
    floors = floors_of_columns(np.eye(P), np.full(P, 0.9))
    enclosure = complete_square(Floats(2), R, np.eye(P), lam, H, floors)
    contains(enclosure, value, 1e4 * size * size)
    assert enclosure.upper - enclosure.lower >= size * size  # it was not at the minimum


def frame_form(A: Any, N: Any, lam: Any, kappa: Any) -> float:
    """Σ λ_j² a_jᵀ (N + κ_j I)⁻¹ a_j."""
    shifted = [N + k * np.eye(len(N)) for k in kappa]
    return float(
        sum(x**2 * a @ np.linalg.solve(M, a) for x, a, M in zip(lam, A.T, shifted, strict=True))
    )


def frame_bound(A: Any, N: Any, lam: Any, kappa: Any, rho: Any) -> float:
    """The bound of a frame on the sum of squares, by its formula."""
    r, p = A.shape
    nu = (p - np.trace(N)) / r
    value = nu * p - p / 2 - 0.5 * np.sum((N + nu * np.eye(r)) ** 2)
    return float(value + 2 * rho @ lam - kappa.sum() - frame_form(A, N, lam, kappa))


def squares_bound(dual: Certificate, rho: Any, A: Any, arithmetic: Any) -> Any:
    """The bound of a frame on the sum of squares."""
    return factor_bound(dual, "squared", None, rho, A, arithmetic).bound


@pytest.mark.parametrize("least", [0.0, 0.3])
def test_frames(least: float, arithmetic: Any) -> None:
    """Both inequalities of rank r, with N singular and with N definite."""
    rng = np.random.default_rng(11)
    r, p = 4, 9
    A = rng.normal(size=(r, p))
    A /= np.linalg.norm(A, axis=0)
    N = spd(r, 5.0, seed=8)
    N = N - (np.linalg.eigvalsh(N)[0] - least) * np.eye(r)
    N = 0.5 * (N + N.T) + (2e-16 * np.eye(r) if least == 0 else 0)
    lam, kappa, rho = rng.uniform(0, 1, p), rng.uniform(0.2, 1, p), rng.uniform(0.5, 1, p)
    wanted = frame_bound(A, N, lam, kappa, rho)
    arrays = {"factor": A, "N": N, "multipliers": lam, "kappa": kappa}
    enclosure = squares_bound(Certificate("frame", arrays, {"rank": r}), rho, A, arithmetic)
    assert enclosure.lower - 1e-13 <= wanted <= enclosure.upper + 1e-13
    assert enclosure.upper - enclosure.lower <= 2e-13
    arrays = {"factor": A, "N": N, "weights": lam, "kappa": kappa}
    enclosure = threshold_bound(Certificate("frame_threshold", arrays, {"rank": r}), A, arithmetic)
    wanted = 0.5 * (p / r * np.trace(N) + kappa.sum() + frame_form(A, N, lam, kappa)) / lam.sum()
    assert enclosure.lower - 1e-13 <= wanted <= enclosure.upper + 1e-13
    assert enclosure.upper - enclosure.lower <= 2e-13
    zeros = {"N": np.zeros((r, r)), "multipliers": np.zeros(p), "kappa": np.zeros(p)}
    welch = squares_bound(
        Certificate("frame", {"factor": A, **zeros}, {"rank": r}), rho, A, arithmetic
    )
    contains(welch, flint.arb(p * p) / r / 2 - flint.arb(p) / 2, 2e-13)
    for part in ("multipliers", "kappa"):
        values = {"multipliers": lam, "kappa": kappa}[part].copy()
        values[2] = -1e-3
        lie = Certificate("frame", {**arrays, "multipliers": lam, part: values}, {"rank": r})
        with pytest.raises(CertificateError, match="negative"):
            squares_bound(lie, rho, A, arithmetic)
    for wrong in (N - (least + 1e-3) * np.eye(r), -N):
        lie = Certificate("frame", {**arrays, "multipliers": lam, "N": wrong}, {"rank": r})
        with pytest.raises(CertificateError, match="semidefinite"):
            squares_bound(lie, rho, A, arithmetic)


def test_a_point_that_does_not_complete_the_square_costs_its_distance(monkeypatch: Any) -> None:
    """Eigenvalues that a library gives wrong make the bound of a frame weaker, never false."""
    rng = np.random.default_rng(12)
    r, p = 3, 5
    A = rng.normal(size=(r, p))
    A /= np.linalg.norm(A, axis=0)
    N, lam, kappa, rho = spd(r, 5.0, seed=8), rng.uniform(0.5, 1, p), np.full(p, 0.01), np.ones(p)
    wanted = frame_bound(A, N, lam, kappa, rho)
    arrays = {"factor": A, "N": N, "multipliers": lam, "kappa": kappa}
    certificate = Certificate("frame", arrays, {"rank": r})
    assert squares_bound(certificate, rho, A, Floats(2)).lower == pytest.approx(wanted, abs=1e-12)
    true = np.linalg.eigh
    monkeypatch.setattr(np.linalg, "eigh", lambda M: (true(M)[0] * 1.2, true(M)[1]))
    assert squares_bound(certificate, rho, A, Floats(2)).lower < wanted - 1e-3


@pytest.mark.parametrize("share", [0.0, 0.1, 0.3, 0.49])
def test_the_worst_number_in_a_radius(share: float) -> None:
    """One by one the bound is sharp: z²/a at the least a."""
    for a in (0.7, 3.0, 1e-9):
        proof = definite(Floats(2), np.array([[a]]), np.array([[share * a]]))
        assert proof is not None
        wanted = 4.0 / (a * (1 - share))
        assert wanted <= proof.inverse_form(np.array([[2.0]])) <= wanted * (1 + 1e-7)
    assert definite(Floats(2), np.array([[1.0]]), np.array([[1.001]])) is None


def test_floors_of_composites_to_more_digits_than_a_float_has(arithmetic: Any) -> None:
    rho = np.array([0.9, 1.0, 0.3, 1 - 1e-15])
    floors = Outputs(ANCHORS, ANCHORS, rho, R, arithmetic).floors
    for j in range(4):
        b = exact(ANCHORS[:, j : j + 1])
        value = flint.arb(rho[j]) * (b.transpose() * exact(R) * b)[0, 0].sqrt()
        lack = value - flint.arb(float(floors.near[j]))
        assert (
            flint.arb(float(floors.rest.lower[j])) <= lack <= flint.arb(float(floors.rest.upper[j]))
        )
        assert floors.rest.upper[j] - floors.rest.lower[j] <= 1e-20
        assert abs(float(lack)) < 1e-15


def test_definite_with_a_radius() -> None:
    """What is not known is counted against it: the worst matrix in the radius is definite too."""
    rng = np.random.default_rng(5)
    A = spd(5, 20.0, seed=9)
    z = rng.normal(size=5)
    least = np.linalg.eigvalsh(A)[0]
    for share, proved in ((0.02, True), (0.08, True), (0.3, False), (2.0, False)):
        radius = np.full((5, 5), share * least)
        proof = definite(Floats(2), A, radius)
        assert (proof is not None) == proved
        if proof is None:
            continue
        worst = 0.0
        for _ in range(300):
            noise = rng.choice([-1.0, 1.0], size=(5, 5))
            noise = np.triu(noise) + np.triu(noise, 1).T
            other = A + radius * noise
            assert np.linalg.eigvalsh(other)[0] > 0
            worst = max(worst, float(z @ np.linalg.solve(other, z)))
        assert worst <= proof.inverse_form(np.abs(z))


@pytest.mark.parametrize("criterion", ["squared", "worst", "absolute"])
def test_pairs_of_weight_zero_have_no_part_in_the_conjugate(criterion: str) -> None:
    H, weights = np.zeros((4, 4)), np.zeros((4, 4))
    for i, j, h, w in ((0, 1, 0.5, 2.0), (0, 2, -3.0, 0.5), (1, 3, 0.25, 1.0)):
        H[i, j] = H[j, i] = h
        weights[i, j] = weights[j, i] = w
    value, outside = conjugate(criterion, H, weights)
    ratios = [2 * 0.5 / 2.0, 2 * 3.0 / 0.5, 2 * 0.25]
    expected = {
        "squared": (0.25 / 2 + 9 / 0.5 + 0.0625, 1.0),
        "worst": (0.0, sum(ratios)),
        "absolute": (0.0, max(ratios)),
    }
    assert (float(value.middle), float(outside.middle)) == pytest.approx(expected[criterion])
    H[2, 3] = H[3, 2] = 1e-300
    with pytest.raises(CertificateError, match="weight zero"):
        conjugate(criterion, H, weights)


def test_correlations_of_outputs_of_a_factor(arithmetic: Any) -> None:
    """The interval contains ``TᵀAᵀAT`` of the floats T and A, and what rounding took of ``AT``."""
    rng = np.random.default_rng(6)
    A, T = rng.normal(size=(3, 8)), rng.normal(size=(8, 8)) * 10.0 ** rng.integers(-3, 4, 8)
    true = exact(A) * exact(T)
    true = true.transpose() * true
    outputs, lengths = FactorOutputs(T, A, arithmetic), [true[j, j] for j in range(8)]
    squares = (dot(true.entries(), true.entries()) - dot(lengths, lengths)) / 2
    contains(outputs.squares, squares, 1e-12, float(squares))
    for columns, block in outputs.blocks():
        assert columns == slice(0, 8)
        for i in range(8):
            for j in range(8):
                low, high = flint.arb(float(block.lower[i, j])), flint.arb(float(block.upper[i, j]))
                assert low <= true[i, j] <= high, (i, j)
                size = float(np.linalg.norm(A @ T[:, i]) * np.linalg.norm(A @ T[:, j]))
                assert float(high - low) <= 1e-13 * size
