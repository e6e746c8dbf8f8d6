"""Coarse rank tolerances: what is said of R as given, and of R without its weak directions."""

from __future__ import annotations

import contextlib
import copy
import json
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest

from skcoral import CORAL, decorrelate, maximize_fidelity, threshold
from skcoral._requirements import deficiency_of
from skcoral.certificates import check, prove
from skcoral.certificates.files import certificate_text, parse_certificate
from skcoral.exceptions import CertificateError, InvalidArgumentError, ModelFileError
from skcoral.frames import solve_singular
from skcoral.models import load_model, save_model
from skcoral.words import goal

from .test_files import changed, signed
from .test_standalone import SINGULAR, problems

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")
P = 6


def decaying(p: int) -> np.ndarray:
    Q = np.linalg.qr(np.random.default_rng(p).normal(size=(p, p)))[0]
    C = (Q * np.logspace(0, -7, p)) @ Q.T
    R = C / np.sqrt(np.outer(np.diag(C), np.diag(C)))
    np.fill_diagonal(R, 1.0)
    return 0.5 * (R + R.T)


def nearly_a_total(p: int) -> np.ndarray:
    X = np.random.default_rng(p).normal(size=(50, p))
    X[:, -1] = X[:, 0] + X[:, 1] + 0.05 * X[:, -1]
    return np.corrcoef(X.T)


LAGS = np.abs(np.subtract.outer(range(P), range(P)))
MATRICES = {"decaying": decaying(P), "total": nearly_a_total(P), "lags": 0.9**LAGS}
MIXED = [0.6, 0.9] * (P // 2)
PINNED = [1.0, *MIXED[1:]]
ANSWERS = {
    "squared": lambda R, tol: decorrelate(R, 0.9, rank_tol=tol),
    "worst": lambda R, tol: decorrelate(R, MIXED, criterion="worst", rank_tol=tol),
    "absolute": lambda R, tol: decorrelate(R, PINNED, criterion="absolute", rank_tol=tol),
    "high": lambda R, tol: decorrelate(R, 0.995, rank_tol=tol),
    "rank": lambda R, tol: decorrelate(R, 0.1, rank_tol=tol),
}
TOLERANCES = {"decaying": (1e-6, 1e-3, 1e-1), "total": (1e-2,), "lags": (0.02, 0.1)}
CASES = [(name, tol) for name, tols in TOLERANCES.items() for tol in tols]


@cache
def answer(question: str, matrix: str, tol: float) -> Any:
    return ANSWERS[question](MATRICES[matrix], tol)


def spectral_parts(R: np.ndarray, tol: float) -> tuple[np.ndarray, np.ndarray]:
    """What counts and what does not, from the definition."""
    values, vectors = np.linalg.eigh(R)
    strong = values > tol * values[-1]
    V = vectors[:, strong]
    kept = (V * values[strong]) @ V.T
    return kept, R - kept


@pytest.mark.parametrize("question", ANSWERS)
@pytest.mark.parametrize(("matrix", "tol"), CASES)
def test_what_the_numbers_are_of(matrix: str, tol: float, question: str) -> None:
    R, result = MATRICES[matrix], answer(question, matrix, tol)
    kept, dropped = spectral_parts(R, tol)
    d = np.sqrt(np.diag(kept))
    assert result.rank == np.linalg.matrix_rank(kept, 1e-9) < P
    assert result.details["dropped_variance"] == pytest.approx(np.diag(dropped).max(), abs=1e-12)
    # R as given: unit variances, floors, and weak directions as they were
    G, fidelity = result.T.T @ R @ result.T, np.diag(R @ result.T)
    assert np.abs(np.diag(G) - 1).max() < 1e-10
    assert (fidelity >= result.rho_min - 1e-10).all()
    assert np.abs(dropped @ result.T - dropped).max() < 1e-9
    # what is left of the variables: fidelities, correlations, objective
    left = result.T.T @ kept @ result.T / np.outer(d, d)
    assert np.abs(left - result.correlation).max() < 1e-9
    own = np.diag(kept @ result.T) / d**2
    assert np.abs(own - result.fidelity).max() < 1e-9
    assert fidelity == pytest.approx(d**2 * result.fidelity + 1 - d**2, abs=1e-9)
    r = np.abs(left[np.triu_indices(P, 1)])
    objective = {"squared": r @ r, "worst": r.max(), "absolute": r.sum()}[result.criterion]
    assert objective == pytest.approx(result.objective, rel=1e-9)
    assert result.lower_bound <= result.objective


@pytest.mark.parametrize("question", ANSWERS)
@pytest.mark.parametrize(("matrix", "tol"), CASES)
def test_honest_answers_pass(matrix: str, tol: float, question: str) -> None:
    R, result = MATRICES[matrix], answer(question, matrix, tol)
    text = certificate_text(result, R)
    root = np.linalg.cholesky(R).T
    file = parse_certificate(text)
    for verdict in (
        check(result, R),
        prove(result, R),
        check(result, factor=root),
    ):
        assert verdict.passed, verdict.problems
    for verdict in (file.verify(R), file.verify(R, rigorous=True)):
        assert verdict.passed, verdict.problems
    # double precision does not judge multipliers of floors of one
    if question != "absolute":
        assert not problems(SINGULAR, json.loads(text), R)


def test_all_kinds_of_proof_are_covered() -> None:
    kinds = {answer(q, *case).certificate.kind for case in CASES for q in ANSWERS}
    assert {"frame", "welch", "tradeoff"} <= kinds


def test_budgets() -> None:
    """The highest floor within a budget of the matrix without weak directions."""
    R = MATRICES["lags"]
    result = maximize_fidelity(R, 6.5, rank_tol=0.1)
    text = certificate_text(result, R)
    for verdict in (check(result, R), prove(result, R), parse_certificate(text).verify(R)):
        assert verdict.passed, verdict.problems
    assert result.objective <= 6.5 * (1 + 1e-9)
    assert "without weak directions" in goal(result)
    assert (np.diag(R @ result.T) >= result.rho_min - 1e-10).all()


@pytest.mark.parametrize(("matrix", "tol"), CASES)
def test_thresholds(matrix: str, tol: float) -> None:
    R = MATRICES[matrix]
    found = threshold(R, rank_tol=tol)
    text = certificate_text(found, R)
    for verdict in (check(found, R), prove(found, R), parse_certificate(text).verify(R)):
        assert verdict.passed, verdict.problems
    assert not problems(SINGULAR, json.loads(text), R)
    assert np.diag(R @ found.T).min() >= found.lower - 1e-10
    turned = replace(found, T=found.T @ turn(found, 1e-3))
    assert not check(turned, R).passed


def turn(result: Any, angle: float) -> np.ndarray:
    """A small change of T."""
    return np.eye(P) + angle * np.random.default_rng(0).normal(size=(P, P))


def failing(result: Any, R: np.ndarray) -> set[str]:
    """The claims that both judges refuse."""
    found = []
    for judge in (check, prove):
        try:
            found.append({c.name for c in judge(result, R).claims if not c.holds})
        except CertificateError as error:
            found.append({str(error)})
    assert found[0] == found[1]
    return found[0]


def test_falsified_answers_are_refused() -> None:
    R, result = MATRICES["lags"], answer("squared", "lags", 0.1)
    assert not failing(result, R)
    arrays, details = result.certificate.arrays, result.details
    W = arrays["dropped"]

    def with_arrays(**new: Any) -> Any:
        certificate = replace(result.certificate, arrays={**arrays, **new})
        return replace(result, certificate=certificate)

    assert "factor" in failing(with_arrays(dropped=(1 + 1e-8) * W), R)
    assert "factor" in failing(with_arrays(dropped=W[1:]), R)
    assert failing(with_arrays(dropped=W[:, 1:]), R)
    assert failing(with_arrays(dropped=10 * W), R)
    plain = {name: a for name, a in arrays.items() if name != "dropped"}
    bare = replace(result, certificate=replace(result.certificate, arrays=plain))
    assert {"factor", "unit variances"} & failing(bare, R)
    # another T with the same outputs but for the weak directions, of the same variances
    inverse = np.linalg.pinv(W)
    mirrored = result.T - 2 * inverse @ W
    assert np.abs(np.diag(mirrored.T @ R @ mirrored) - 1).max() < 1e-12
    assert "weak directions" in failing(replace(result, T=mirrored), R)
    for size, told in ((3e-9, True), (3e-10, False)):
        moved = replace(result, T=result.T + size * inverse[:, :1])
        assert ("weak directions" in failing(moved, R)) == told
    for name in ("dropped_variance", "amplification"):
        for size, told in ((3e-9, True), (0.3e-9, False)):
            off = {**details, name: details[name] * (1 + size) + size}
            found = failing(replace(result, details=off), R)
            assert (name.replace("_", " ") in found) == told
    values = np.linalg.eigvalsh(R) / np.linalg.eigvalsh(R)[-1]
    weakest, next_one = values[P - result.rank], values[P - result.rank - 1]
    for tol, told in ((weakest * 1.001, True), (weakest, False), (next_one * 0.999, True)):
        lie = replace(result, details={**details, "rank_tol": tol})
        assert ("rank tolerance" in failing(lie, R)) == told
    assert "factor" in failing(replace(result, R=None), (1 - 1e-9) * R + 1e-9 * np.eye(P))
    assert failing(result, (1 - 1e-11) * R + 1e-11 * np.eye(P)) == {"R"}
    for name in ("fidelity", "objective", "lower_bound", "correlation"):
        assert failing(replace(result, **{name: getattr(result, name) + 3e-7}), R)


def test_only_the_weakest_directions_are_left_out() -> None:
    """A strong direction in their place makes another problem, whatever its certificate says."""
    R = MATRICES["lags"]
    values, V = np.linalg.eigh(R)
    found = deficiency_of(R, tuple("abcdef"), None, 0.1, certain=True)
    assert found is not None
    strong = [0, *range(P - found.rank + 1, P)]
    weak = [k for k in range(P) if k not in strong]
    B = np.sqrt(values[strong])[:, None] * V[:, strong].T
    lengths = np.linalg.norm(B, axis=0)
    W = np.sqrt(values[weak])[:, None] * V[:, weak].T
    share = float((W**2).sum(axis=0).max())
    other = replace(found, factor=B / lengths, lengths=lengths, weak=W, dropped=share)
    result = solve_singular(other, np.full(P, 0.9), names=tuple("abcdef"))
    assert failing(result, R) == {"weak directions", "rank tolerance"}
    assert problems(SINGULAR, json.loads(certificate_text(result, R)), R)


@pytest.mark.parametrize("question", ["squared", "rank", "worst"])
def test_altered_files_are_refused(question: str) -> None:
    R, result = MATRICES["lags"], answer(question, "lags", 0.1)
    content = json.loads(certificate_text(result, R))
    paths: list[tuple[Any, ...]] = [("claim", "objective"), ("claim", "lower_bound")]
    paths += [("claim", name, 1) for name in ("fidelity",)]
    paths += [("claim", "T", 1, 0), ("claim", "rank"), ("proof", "info", "rank")]
    paths += [("proof", "arrays", name, 0, 1) for name in ("dropped", "factor")]
    for path in paths:
        lie = signed(changed(copy.deepcopy(content), path, lambda v: v + (1e-5 if v % 1 else 1)))
        with contextlib.suppress(CertificateError):
            assert not parse_certificate(lie).verify(R).passed, path
        assert problems(SINGULAR, json.loads(lie), R), path


@pytest.mark.parametrize(("n", "p", "tol"), [(8, 30, 0.1), (12, 40, 0.1), (30, 8, 0.05)])
def test_tables(n: int, p: int, tol: float, tmp_path: Any) -> None:
    """The statements about the rows, from the rows and the outputs as they are written."""
    rng = np.random.default_rng(n)
    X = rng.normal(size=(n, 3)) @ rng.normal(size=(3, p)) + 0.3 * rng.normal(size=(n, p))
    model = CORAL(0.9, rank_tol=tol).fit(X)
    result, Y = model.result_, model.transform(X)
    assert np.abs(Y.std(axis=0, ddof=1) - 1).max() < 1e-9
    kept = [np.corrcoef(X[:, j], Y[:, j])[0, 1] for j in range(p)]
    assert min(kept) >= 0.9 - 1e-9
    assert model.measured_.fidelity == pytest.approx(kept, abs=1e-9)
    off = np.abs(np.corrcoef(Y.T) - np.eye(p)).max()
    assert model.measured_.largest_correlation == pytest.approx(off, abs=1e-9)
    words = " ".join(result.summary().split())
    assert f"every variable keeps at least {np.floor(100 * min(kept)) / 100:.2f}" in words
    assert "without weak directions" in words
    assert f"rank_tol={tol:g}" in words
    text = certificate_text(result, model.correlation_)
    Z = (X - X.mean(axis=0)) / X.std(axis=0, ddof=1) / np.sqrt(n - 1)
    assert check(result, model.correlation_).passed
    assert check(result, factor=Z).passed
    assert parse_certificate(text).verify(model.correlation_).passed
    with pytest.raises(CertificateError, match="another correlation matrix"):
        parse_certificate(text).verify(np.corrcoef((X + 1e-3 * X[::-1]).T))
    assert not problems(SINGULAR, json.loads(text), np.corrcoef(X.T))
    save_model(model, tmp_path / "model.json")
    assert (load_model(tmp_path / "model.json").transform(X) == Y).all()
    model.result_ = replace(result, fidelity=result.fidelity - 1e-3)
    save_model(model, tmp_path / "lie.json")
    with pytest.raises(ModelFileError, match="fidelities"):
        load_model(tmp_path / "lie.json")


def test_composites_of_a_wide_table_have_unit_variance_on_the_rows() -> None:
    rng = np.random.default_rng(1)
    X = rng.normal(size=(9, 2)) @ rng.normal(size=(2, 30)) + 0.3 * rng.normal(size=(9, 30))
    model = CORAL(0.99, rank_tol=0.05, anchors=rng.normal(size=(30, 3))).fit(X)
    assert np.abs(model.transform(X).std(axis=0, ddof=1) - 1).max() < 1e-9
    assert check(model.result_, model.correlation_).passed


def test_a_tolerance_that_leaves_nothing_of_a_variable() -> None:
    R = np.full((6, 6), 0.99)
    R[-1] = R[:, -1] = 0.0
    np.fill_diagonal(R, 1.0)
    with pytest.raises(InvalidArgumentError, match=r"rank_tol=0\.3.*`x5`"):
        decorrelate(R, 0.9, rank_tol=0.3)
