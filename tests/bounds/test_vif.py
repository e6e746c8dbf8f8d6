"""Limits on the VIF: the bound on the floor by its formula, and each claim on both sides."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import flint
import numpy as np
import pytest

import conic
from certificates.conftest import failed
from certificates.results import ANCHORS, R, about, honest
from skcoral import maximize_fidelity
from skcoral.bounds.arithmetic import Floats
from skcoral.bounds.vif import least_unique, limited_room, proved_floor
from skcoral.certificates import check, prove
from skcoral.certificates.evaluation import Outputs
from skcoral.core.linalg import correlation_of_covariance
from skcoral.core.solution import Certificate, Floors, VifLimit
from skcoral.exceptions import CertificateError

from .test_inequalities import WIDTH, P, contains, dot, exact, gram, spd, square

pytestmark = pytest.mark.usefixtures("many_bits")


def dual(k: int, idle: bool) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(3)
    weights = rng.uniform(0.2, 1.0, k)
    weights[1] *= not idle
    return {
        "vif_weights": weights,
        "vif_H": spd(k, seed=3),
        "vif_roots": rng.normal(size=k),
        "vif_vectors": rng.normal(size=(k, k)),
    }


@pytest.mark.parametrize("idle", [False, True])
@pytest.mark.parametrize("anchored", [False, True])
def test_the_bound_on_the_floor(anchored: bool, idle: bool, arithmetic: Any) -> None:
    """[tr(DCDH⁻¹) + tr H + ‖Y‖² + Σ|H + YYᵀ| + Σ(s²v - 2sY)] / 2Σλ, less the mean floor."""
    k, limit = (4, 1.7) if anchored else (P, 1.7)
    B = ANCHORS if anchored else np.eye(P)
    T = honest("vif, anchors" if anchored else "vif").T
    arrays = dual(k, idle)
    rho = np.linspace(0.3, 0.9, k)
    enclosure = limited_room(arrays, limit, Outputs(T, B, rho, R, arithmetic))
    lam, H, s, Y = (arrays[f"vif_{name}"] for name in ("weights", "H", "roots", "vectors"))
    C, length = gram(B)
    value = square(C, [flint.arb(a) / b for a, b in zip(lam, length, strict=True)], H)
    value -= 2 * (dot(lam, rho) + dot(s, np.diag(Y))) - flint.arb(limit) * dot(s, s)
    both = exact(H) + exact(Y) * exact(Y).transpose()
    for i in range(k):
        for j in range(k):
            value += flint.arb(Y[i, j]) ** 2 + (abs(both[i, j]) if i != j else 0)
    contains(enclosure, value / dot(lam, np.full(k, 2.0)), 10 * WIDTH, 1.0 + abs(float(value)))


def test_points_that_prove_nothing_about_a_floor() -> None:
    T, arrays = honest("vif").T, dual(P, False)
    outputs = Outputs(T, np.eye(P), np.full(P, 0.9), R, Floats(2))
    for changes, words in (
        ({"vif_weights": np.zeros(P)}, "all zero"),
        ({"vif_H": -arrays["vif_H"]}, "not positive definite"),
        ({"vif_H": arrays["vif_H"] + np.eye(P, k=1)}, "not symmetric"),
    ):
        with pytest.raises(CertificateError, match=words):
            limited_room({**arrays, **changes}, 1.5, outputs)
        assert proved_floor(R, T, {**arrays, **changes}, 1.5) == np.inf
    parts = {n: a for n, a in honest("vif").certificate.arrays.items() if n.startswith("vif_")}
    floor = proved_floor(R, T, parts, 1.1)
    assert honest("vif").rho_min[0] <= floor <= honest("vif").goal.rho_upper + 1e-12
    huge = {**parts, "vif_weights": np.full(P, 1e100), "vif_H": 1e-160 * np.eye(P)}
    with np.errstate(all="ignore"):
        assert proved_floor(R, T, huge, 1.1) == np.inf


def claims(result: Any, **changes: Any) -> set[str]:
    """The claims that both judges refuse with these changes of the goal."""
    lie = replace(result, goal=replace(result.goal, **changes))
    assert failed(lie, R, check) == failed(lie, R, prove)
    return failed(lie)


def test_limits_are_for_full_rank_without_a_support() -> None:
    limit = VifLimit(1.5, 1.2, 1.0)
    for kind in ("support", "rank, frame", "rank, lifted", "wide, tradeoff"):
        result, matrix = about(kind)
        for judge in (check, prove):
            with pytest.raises(CertificateError, match="a limit on the VIF has no certificate"):
                judge(replace(result, goal=limit), matrix)
    for judge in (check, prove):
        with pytest.raises(CertificateError, match="about a limit on the VIF, the result is not"):
            judge(replace(honest("vif"), goal=Floors()), R)


@pytest.mark.parametrize("above", [0.0, 1e-3])
def test_a_limit_leaves_correlations(above: float) -> None:
    """Whatever is proved of its floor, an answer above the exact regime is not called exact."""
    result = honest("vif")
    goal = replace(result.goal, rho_upper=result.goal.rho_upper + above)
    lie = replace(result, goal=goal, status="exact")
    for judge in (check, prove):
        assert "status" in failed(lie, R, judge)


def test_floors_that_nothing_is_proved_of() -> None:
    """Without a proof the bound on the floor is one, and no less."""
    result = honest("vif")
    arrays = {n: a for n, a in result.certificate.arrays.items() if not n.startswith("vif_")}
    point = Certificate("tradeoff", arrays, result.certificate.info)
    bare = replace(result, certificate=point, status="best_found")
    for below, wrong in ((0.0, False), (0.3e-9, False), (3e-9, True), (0.001, True)):
        assert claims(bare, rho_upper=1 - below) == ({"largest floor"} if wrong else set())
    assert claims(bare, rho_upper=1 + 3e-9) == {"largest floor"}
    # The floors of exact decorrelators bound no others.
    exact_only = honest("vif of one")
    assert claims(exact_only, max_vif=1.1) == {"largest floor"}
    assert not claims(exact_only, max_vif=1.1, rho_upper=1.0)


def test_the_share_that_others_leave(arithmetic: Any) -> None:
    """The least 1 / (G⁻¹)_jj, of correlations known within a radius."""
    rng = np.random.default_rng(0)
    for near, width in ((0.5, 1e-14), (1 - 1e-6, 1e-11)):
        T = rng.normal(size=(3, 3))
        T[:, 1] = near * T[:, 0] + (1 - near) * T[:, 1]
        G = arithmetic.enclosed(T.T, T)
        enclosure = least_unique(G, arithmetic)
        inverse = (exact(T).transpose() * exact(T)).inv()
        largest = max((inverse[j, j] for j in range(3)), key=float)
        contains(enclosure, 1 / largest, width, float(np.abs(G.middle).max()))
    same = np.ones((2, 2))
    enclosure = least_unique(arithmetic.enclosed(same, 0.5 * same), arithmetic)
    assert (enclosure.lower, enclosure.upper) == (-np.inf, np.inf)


@pytest.mark.parametrize("seed", range(4))
def test_the_bound_on_the_floor_holds_whatever_the_multipliers(seed: int) -> None:
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(6, 3))
    R = correlation_of_covariance(A @ A.T + np.diag(rng.uniform(0.2, 1.0, 6)))
    best = conic.highest_floor(R, 1.7)
    answer = maximize_fidelity(R, 1.7, criterion="vif")
    point = answer.certificate.arrays
    assert best - 1e-6 <= proved_floor(R, answer.T, point, 1.7) <= best + 2e-6
    for size in np.geomspace(1e-6, 1, 20):
        roots = point["vif_roots"] * (1 + size * rng.normal(size=6))
        Y = point["vif_vectors"] + size * rng.normal(size=(6, 6))
        H = np.diag(np.diag(point["vif_H"]) + size * rng.uniform(size=6)) - Y @ Y.T
        H = H + size * np.eye(6) * max(0.0, -np.linalg.eigvalsh(H)[0] / size + 1)
        weights = rng.uniform(size=6)
        parts = {"vif_weights": weights, "vif_H": 0.5 * (H + H.T)}
        parts |= {"vif_roots": roots, "vif_vectors": Y}
        assert best - 1e-6 <= proved_floor(R, answer.T, parts, 1.7) < np.inf
