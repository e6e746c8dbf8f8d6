"""Forged results: known ways to falsify one, and hundreds of random ones."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from unittest.mock import patch

import flint
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from skcoral import decorrelate, frontier, threshold
from skcoral.bounds.arithmetic import PRECISION
from skcoral.certificates import check, checking, prove
from skcoral.certificates.certify import certify_threshold
from skcoral.core import criteria
from skcoral.core.lowrank import FactoredCorrelation
from skcoral.core.problem import Settings
from skcoral.core.solution import Certificate
from skcoral.datasets import load_wine, make_system
from skcoral.exceptions import CertificateError, NotCertifiedWarning
from skcoral.solvers.exact import solve_threshold

from .conftest import refused, verdict, with_arrays
from .results import FULL, KINDS, MASK, ROWS, R, about, honest


def test_multipliers_below_rounding() -> None:
    """Floors of one: multipliers of 1e16 "certify" what is far above the optimum."""
    four = np.corrcoef(np.random.default_rng(0).normal(size=(8, 4)).T)
    good, lam = decorrelate(four, 1.0), np.full(4, 1e16)
    for scale in (1e16, 1e15, 1e12):
        H = scale * np.eye(4) + 0.5 * scale * (four - np.eye(4))
        lie = replace(with_arrays(good, multipliers=lam, H=H), weights=lam)
        lie = replace(lie, prices=np.full(4, np.inf))
        for claimed in (good.objective, 2.5 * good.objective):
            assert refused(replace(lie, lower_bound=claimed, objective=claimed), four)


@pytest.mark.parametrize("kind", ["absolute", "support, absolute"])
@pytest.mark.parametrize("criterion", ["worst", "squared"])
def test_an_answer_to_another_question(kind: str, criterion: Any) -> None:
    result = honest(kind)
    value = criteria.value(criterion, result.correlation)
    for lower in (value, result.lower_bound, 0.0):
        lie = replace(result, criterion=criterion, objective=value, lower_bound=lower)
        assert refused(replace(lie, status="optimal"))
        assert refused(replace(lie, status="best_found"))


def test_questions_that_were_not_asked(kind: str) -> None:
    """Weights of pairs, composites or another matrix, put into a result that has none."""
    result = honest(kind)
    k = len(result.names)
    changes: dict[str, Any] = {
        "pair_weights": np.full((k, k), 2.0),
        "anchors": np.eye(6)[::-1][:, :k].copy(),
        "R": make_system(6, seed=3),
    }
    for field, value in changes.items():
        if hasattr(result, field):
            assert refused(replace(result, **{field: value})), field


@pytest.mark.parametrize("kind", KINDS)
def test_parts_of_a_certificate(kind: str) -> None:
    result, matrix = about(kind)
    c = result.certificate
    for name, a in c.arrays.items():
        changes = [None, np.zeros((2, 2)), np.full(a.shape, np.nan), np.full(a.shape, 1e200)]
        if np.abs(a).max() > 1e-8 and name not in ("factor", "V"):  # -V has the products of V
            changes.append(-a)
        for wrong in changes:
            assert refused(with_arrays(result, **{name: wrong}), matrix), name
    assert refused(with_arrays(result, extra=np.zeros(1)), matrix)
    for info in ({**c.info, "a": 1}, *({**c.info, "rank": r} for r in (1, 6, 0, 2.0, True, "5"))):
        assert refused(replace(result, certificate=replace(c, info=info)), matrix), info


@pytest.mark.parametrize("count", [3, pytest.param(len(FULL), marks=pytest.mark.slow)])
def test_certificates_of_other_results(kind: str, count: int) -> None:
    """Any other certificate proves less, something else, or nothing."""
    result = honest(kind)
    start = list(FULL).index(kind) + 1
    for other in [*FULL, *FULL][start : start + count]:
        point = honest(other).certificate
        same = point.kind == result.certificate.kind and all(
            np.array_equal(point.arrays[n], result.certificate.arrays[n])
            for n in point.arrays
            if n in result.certificate.arrays
        )
        if not same:
            assert refused(replace(result, certificate=point)), other


def test_named_matrices() -> None:
    pd = pytest.importorskip("pandas")
    names = list("abcdef")
    frame = pd.DataFrame(R, index=names, columns=names)
    for result in (decorrelate(frame, 0.99), threshold(frame)):
        assert check(result, frame).passed
        assert check(result, R).passed  # a matrix without names contradicts none
        other = pd.DataFrame(R, index=list("abcdeg"), columns=list("abcdeg"))
        with pytest.raises(CertificateError, match="other variables than R: `f` where R has `g`"):
            check(result, other)
        for judge in (check, prove):
            with pytest.raises(CertificateError, match=r"another order.*R\.loc"):
                judge(result, frame.iloc[::-1, ::-1])
        for lie in (tuple("abcdeg"), tuple("bacdef"), tuple("abcdea"), list("abcdef"), (1,) * 6):
            with pytest.raises(CertificateError, match=r"name|order|variables"):
                prove(replace(result, names=lie), frame)


def test_another_support() -> None:
    result = honest("support, open")
    wider = MASK | np.eye(6, k=1, dtype=bool)
    for mask in (wider, np.eye(6, dtype=bool)):
        assert refused(with_arrays(result, support=mask.astype(float)))
    T = result.T.copy()
    i, j = np.argwhere(~MASK)[0]
    T[i, j] = 1e-300
    assert refused(replace(result, T=T))


DUAL = {"H": "multipliers", "S": "weights", "mean_S": "mean_weights", "N": "multipliers"}


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    kind=st.sampled_from(
        ["squared", "worst", "absolute", "weighted", "anchors", "exact", "edge", "rank, frame"]
    ),
    seed=st.integers(0, 10**6),
    spread=st.floats(-8, 1),
    claimed=st.floats(0.5, 3.0),
)
def test_dual_points_that_no_solver_made(
    kind: str, seed: int, spread: float, claimed: float
) -> None:
    """However a dual point is made, it proves nothing that is false."""
    rng, (result, matrix) = np.random.default_rng(seed), about(kind)
    arrays = result.certificate.arrays
    name = next(name for name in DUAL if name in arrays)
    noise = rng.normal(size=arrays[name].shape) * 10.0**spread
    weights = arrays[DUAL[name]]
    weights = np.abs(weights * (1 + 10.0**spread * rng.normal(size=len(weights))))
    other = {name: arrays[name] + noise + noise.T, DUAL[name]: weights}
    if "kappa" in arrays:
        other["kappa"] = np.abs(arrays["kappa"] + 10.0**spread * rng.normal(size=len(weights)))
    lie = replace(with_arrays(result, **other), weights=weights, status="best_found")
    is_bound = DUAL[name] == "multipliers"
    prices = 2 * weights if is_bound else np.zeros_like(weights)
    lie = replace(lie, prices=prices, lower_bound=claimed * result.objective if is_bound else 0)
    passed = [not verdict(judge, lie, matrix) for judge in (check, prove)]
    assert passed[0] <= passed[1]
    assert not any(passed) or claimed <= 1 + 1e-6 or not is_bound
    for judge in (check, prove):
        try:
            judgement = judge(lie, matrix)
        except CertificateError:
            continue
        assert judgement.lower <= result.objective + 1e-7


class Boastful(float):
    """A number that compares as it likes."""

    def __le__(self, other: object) -> bool:
        return True

    __ge__ = __lt__ = __gt__ = __le__


def test_numbers_that_compare_as_they_like() -> None:
    for field in ("objective", "lower_bound"):
        assert refused(replace(honest("squared"), **{field: Boastful(7.0)}))


def test_an_early_end_is_proved_for_what_it_is() -> None:
    wine = np.asarray(load_wine().correlation)
    with pytest.warns(NotCertifiedWarning):
        early = certify_threshold(
            solve_threshold(wine, Settings(tuple(map(str, range(13))), max_iter=2))
        )
    for judge in (check, prove):
        assert judge(early, wine).passed
        assert 1e-4 < judge(early, wine).gap < 1e-1


def test_balls_are_precise_while_they_prove_and_no_longer() -> None:
    before = flint.ctx.prec
    with patch.object(checking, "_checked", lambda *_: flint.ctx.prec):
        assert (prove(honest("squared"), R), flint.ctx.prec) == (PRECISION, before)
    assert prove(honest("squared"), R).rigorous


def test_a_matrix_or_a_factor() -> None:
    frame, by_rows = honest("rank, frame"), FactoredCorrelation(ROWS)
    assert check(frame, by_rows).passed
    for value in (np.nan, np.inf):
        rows = ROWS.copy()
        rows[1, 2] = value
        with pytest.raises(CertificateError, match="not finite"):
            check(frame, FactoredCorrelation(rows))
    for names in (("a",) * 8, list(frame.names), tuple(range(8))):
        with pytest.raises(CertificateError, match="names"):
            check(replace(frame, names=names), by_rows)
    with pytest.raises(CertificateError, match="rank below p; give R"):
        check(honest("squared"), FactoredCorrelation(np.eye(6)))


def test_results_that_are_kept_as_factors_are_judged_by_one() -> None:
    wide, matrix = about("wide, frame")
    factored = replace(honest("squared"), correlation=FactoredCorrelation(np.eye(6)))
    for result, asked in ((wide, matrix.toarray()), (factored, R)):
        with pytest.raises(CertificateError, match="judged with a FactoredCorrelation"):
            check(result, asked)


def test_results_and_matrices_that_do_not_belong_together() -> None:
    arrays = {"multipliers": np.ones(6), "H": np.eye(6)}
    other = Certificate("tradeoff", arrays, {"criterion": None})
    for result, matrix, message in (
        ("result", R, "Threshold or a Decorrelation"),
        (frontier(R, [0.9]), R, "Frontier.*result_"),
        (replace(honest("squared"), R=None), np.ones((6, 6)), "R is singular"),
        (replace(honest("threshold"), certificate=other), R, "'tradeoff'.*Threshold"),
    ):
        for judge in (check, prove):
            with pytest.raises(CertificateError, match=message):
                judge(result, matrix)
