"""Bounds on a support against their formulas, and where rounding decides."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest
import scipy.linalg as sla

from certificates.results import ANCHORS, R, honest
from skcoral import decorrelate
from skcoral.bounds.arithmetic import Floats
from skcoral.bounds.columns import in_range, proved_columns
from skcoral.bounds.support import support_bound
from skcoral.core.linalg import correlation_of_covariance
from skcoral.core.solution import Certificate
from skcoral.datasets import make_system
from skcoral.exceptions import CertificateError

from .test_inequalities import P, conjugate_of, spd

MASK = np.eye(P) + np.eye(P, k=1) + np.eye(P, k=-2) > 0
pytestmark = pytest.mark.usefixtures("many_bits")


def frame_value(arrays: Any, rho: np.ndarray, criterion: str, norm: str) -> float:
    """The bound of a frame operator P, with generalised eigenvalues instead of factors of R."""
    mask = np.where(rho >= 1, np.eye(P), arrays["support"]) > 0
    floors = np.where(mask.sum(axis=0) == 1, 1.0, rho)
    PP, eta = R @ arrays["Q"] @ R, arrays["eta"]
    inner = arrays["Q"] @ R
    linear = -float(np.trace(inner))
    for k in range(P):
        o = np.flatnonzero(mask[:, k])
        form = PP[np.ix_(o, o)] - eta[k] * np.outer(R[o, k], R[o, k])
        theta = sla.eigh(form, R[np.ix_(o, o)], eigvals_only=True)[0]
        linear += theta + eta[k] * floors[k] ** 2
    if norm == "nuclear":
        size = np.abs(sla.eigh(PP, R, eigvals_only=True)).max()
        return float(0.5 * linear / max(1.0, size))
    value = linear - 0.5 * float(np.trace(inner @ inner))
    if criterion == "squared":
        return value
    pairs = P * (P - 1) / 2 if criterion == "worst" else 1.0
    return float(np.sqrt(max(value, 0.0) / pairs))


@pytest.mark.parametrize("norm", ["frobenius", "nuclear"])
@pytest.mark.parametrize("criterion", ["squared", "worst", "absolute"])
@pytest.mark.parametrize("size", [0.7, 1.0])
def test_frame_operators_that_prove_something(
    criterion: str, norm: str, size: float, arithmetic: Any
) -> None:
    """The solver's own points: of each the bounds on all criteria, none of which is zero."""
    result = honest("support, open" if norm == "frobenius" else "support, absolute")
    own = result.certificate.arrays
    arrays = {**own, "Q": size * own["Q"], "eta": size * own["eta"]}
    info = {"bound": "frame", "criterion": criterion, "norm": norm}
    point = Certificate("support", arrays, info)
    if norm == "nuclear" and criterion != "absolute":
        with pytest.raises(CertificateError, match="says nothing about"):
            support_bound(point, result.rho_min, R, arithmetic)
        return
    found = support_bound(point, result.rho_min, R, arithmetic)
    wanted = frame_value(arrays, result.rho_min, criterion, norm)
    assert wanted > 0.02
    assert wanted - 1e-10 <= found.lower <= wanted + 1e-13
    assert found.upper - found.lower <= 1e-12


@pytest.mark.parametrize("criterion", ["squared", "worst", "absolute"])
@pytest.mark.parametrize("bound", ["lifted", "frame", "nuclear"])
@pytest.mark.parametrize("scale", [0.05, 1.0])
@pytest.mark.parametrize("without", ["", "eta", "Q"])
def test_supports(without: str, bound: str, criterion: str, scale: float, arithmetic: Any) -> None:
    rng = np.random.default_rng(11)
    if bound == "nuclear" and criterion != "absolute":
        pytest.skip("says nothing about this criterion")
    rho = np.array([0.9, 1.0, 0.95, 0.7, 0.8, 0.9])
    mask = np.where(rho >= 1, np.eye(P), MASK) > 0
    floors = np.where(mask.sum(axis=0) == 1, 1.0, rho)
    arrays: dict[str, np.ndarray] = {"support": MASK.astype(float), "slope": np.zeros((P, P))}
    if bound == "lifted":
        H, lam = scale * spd(P, 3.0, seed=7), scale * rng.uniform(0.6, 1.0, P)
        arrays |= {"H": H, "multipliers": lam}
        rows, columns = np.nonzero(mask)
        Q = R[np.ix_(rows, rows)] * H[np.ix_(columns, columns)]
        pull = (R * lam)[rows, columns]
        value = 2 * float(floors @ lam) - float(np.trace(H)) - pull @ np.linalg.solve(Q, pull)
        penalty, outside = conjugate_of(criterion, H, 1 - np.eye(P))
        wanted = max((value - float(penalty)) / float(outside), 0.0)
    else:
        L = np.linalg.cholesky(R)
        G = rng.normal(size=(P, P)) * scale
        Q = np.linalg.solve(L.T, np.linalg.solve(L.T, G + G.T).T)
        Q, eta = 0.5 * (Q + Q.T) * (without != "Q"), scale * rng.uniform(0, 1, P)
        eta = eta * (without != "eta")
        arrays |= {"Q": Q, "eta": eta}
        wanted = frame_value(arrays, rho, criterion, bound)
    info = {"bound": "lifted" if bound == "lifted" else "frame", "criterion": criterion}
    if bound != "lifted":
        info["norm"] = "nuclear" if bound == "nuclear" else "frobenius"
    certificate = Certificate("support", arrays, info)
    found = support_bound(certificate, rho, R, arithmetic)
    size = 1.0 + abs(wanted)
    if wanted > 0:
        assert found.lower <= wanted + 1e-13 * size
    assert found.upper >= wanted - 1e-10 * size
    assert found.upper - found.lower <= 1e-12 * size
    assert abs(float(found.lower) - wanted) <= (1e-10 if wanted > 0 else 1e-8) * size


@pytest.mark.parametrize("criterion", ["worst", "absolute"])
def test_points_outside_the_domain_on_a_support(criterion: str, arithmetic: Any) -> None:
    """With all coefficients allowed the bound is that of the trade-off, whatever the scale."""
    result = honest(criterion)
    assert result.lower_bound > 0.1
    for scale in (1.0, 3.0, 10.0):
        arrays = {"support": np.ones((P, P)), "slope": np.zeros((P, P))}
        arrays |= {name: scale * a for name, a in result.certificate.arrays.items()}
        point = Certificate("support", arrays, {"bound": "lifted", "criterion": criterion})
        found = support_bound(point, result.rho_min, R, arithmetic)
        assert abs(float(found.lower) - result.lower_bound) <= 1e-9


@pytest.mark.parametrize("factor", [0.9, 1.1])
def test_a_square_on_a_support_that_is_not_completed(monkeypatch: Any, factor: float) -> None:
    """Solutions that a library gives wrong make the bound weaker, never false."""
    result = honest("support")
    true, exact_value = sla.cho_solve, result.lower_bound
    monkeypatch.setattr(sla, "cho_solve", lambda *a, **k: factor * true(*a, **k))
    found = support_bound(result.certificate, result.rho_min, R, Floats(2))
    assert found.lower < exact_value - 1e-7
    assert found.upper >= exact_value - 1e-9


@pytest.mark.parametrize("kind", ["support, open", "support, absolute"])
def test_inverses_that_a_library_gives_wrong(monkeypatch: Any, kind: str) -> None:
    """Coordinates that make R unity only nearly: the bound loses what they are off by."""
    result = honest(kind)
    info = result.certificate.info
    wanted = frame_value(result.certificate.arrays, result.rho_min, info["criterion"], info["norm"])
    true = sla.lapack.dtrtri
    for off in (1e-9, -1e-9):
        with monkeypatch.context() as patch:
            patch.setattr(
                sla.lapack, "dtrtri", lambda *a, s=1 + off, **k: (s * true(*a, **k)[0], 0)
            )
            found = support_bound(result.certificate, result.rho_min, R, Floats(2))
        assert wanted - 1e-6 <= found.lower <= wanted + 1e-12


def test_a_support_of_many_coefficients() -> None:
    """Beyond a few hundred coefficients definiteness is proved in undivided factors."""
    p = 22
    system = make_system(p)
    dual = decorrelate(system, 0.99).certificate.arrays
    H, lam = dual["H"], dual["multipliers"]
    arrays = {"support": np.ones((p, p)), "slope": np.zeros((p, p)), "H": H, "multipliers": lam}
    certificate = Certificate("support", arrays, {"bound": "lifted", "criterion": "squared"})
    assert p * p > 400
    found = support_bound(certificate, np.full(p, 0.99), system, Floats(3))
    value = 2 * 0.99 * lam.sum() - np.trace(H) - float(np.sum(np.triu(H, 1) ** 2))
    value -= float(np.trace(np.diag(lam) @ system @ np.diag(lam) @ np.linalg.inv(H)))
    assert value > 0.1
    assert found.lower <= value + 1e-12
    assert found.upper - found.lower <= 1e-11
    indefinite = H - 1.5 * np.linalg.eigvalsh(H)[0] * np.eye(p)
    for wrong in (indefinite, H - np.eye(p)):
        lie = Certificate("support", {**arrays, "H": wrong}, certificate.info)
        with pytest.raises(CertificateError, match="positive definite"):
            support_bound(lie, np.full(p, 0.95), system, Floats(3))


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_the_size_of_a_matrix_is_proved(monkeypatch: Any, sign: float) -> None:
    """Eigenvalues that a library gives too small are not believed, at either end."""
    result = honest("support, absolute")
    arrays = {**result.certificate.arrays}
    arrays["Q"] = sign * 3 * arrays["Q"]
    point = Certificate("support", arrays, result.certificate.info)
    bound = partial(support_bound, point, result.rho_min, R, Floats(2))
    wanted = frame_value(arrays, result.rho_min, "absolute", "nuclear")
    assert abs(float(bound().lower) - wanted) <= 1e-10
    true = sla.eigh
    monkeypatch.setattr(sla, "eigh", lambda *a, **k: true(*a, **k) * 0.999)
    with pytest.raises(CertificateError, match="cannot be proved"):
        bound()


@pytest.mark.parametrize("seed", [142, 166, 188, 365])
def test_frames_of_nearly_collinear_variables(seed: int, arithmetic: Any) -> None:
    """Coordinates make R unity only to 1e-6 there: the bound allows for it, and is found."""
    rng = np.random.default_rng(seed)
    axes = np.linalg.qr(rng.normal(size=(4, 4)))[0]
    system = correlation_of_covariance((axes * np.r_[1e-10, rng.uniform(0.5, 2, 3)]) @ axes.T)
    G = rng.normal(size=(4, 4))
    arrays = {"Q": 0.1 * (G + G.T), "eta": rng.uniform(0, 1, 4), "support": np.ones((4, 4))}
    info = {"bound": "frame", "criterion": "squared", "norm": "frobenius"}
    point = Certificate("support", arrays, info)
    found = support_bound(point, np.full(4, 0.9), system, arithmetic)
    assert found.lower <= found.upper


def test_composites_of_any_size_and_floors_of_zero() -> None:
    """Anchors are scaled by powers of two into a range whose squares are floats."""
    B = ANCHORS * 10.0 ** np.array([-200, -1, 3, 250])
    largest = np.abs(in_range(B)).max(axis=0)
    assert ((largest >= 1) & (largest < 2)).all()
    floors = proved_columns(np.ones((P, 4)), np.zeros(4), R, B, Floats(2)).floors
    assert not floors.lower.any()
    assert not floors.upper.any()
