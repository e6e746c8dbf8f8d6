"""Certificate files: nothing is lost, and no altered file passes, here or in the verifiers.

Each lie is told to the package and to the stand-alone verifier that needs NumPy alone, with a
checksum that fits: the liar knows the format. The ordinary suite takes one number of every field
of every kind of result, the slow one many.
"""

from __future__ import annotations

import copy
import json
import subprocess
import sys
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from skcoral import decorrelate, maximize_fidelity, threshold
from skcoral.certificates import (
    certificate_text,
    check,
    load_certificate,
    parse_certificate,
    prove,
    save_certificate,
)
from skcoral.certificates.codec import checksum
from skcoral.core.linalg import correlation_of_covariance
from skcoral.core.lowrank import FactoredCorrelation
from skcoral.core.solution import Certificate
from skcoral.datasets import make_system
from skcoral.exceptions import CertificateError

from . import test_wide
from .conftest import R, verdict
from .results import KINDS, about
from .verifier import PROGRAM, VERIFIER, problems

every = pytest.mark.parametrize("kind", KINDS)
slow = pytest.param("wide, rank", marks=pytest.mark.slow)
few = pytest.mark.parametrize(
    "kind", ["threshold", "anchors", "support", "vif", "wide, threshold", slow]
)


@cache
def text_of(kind: str) -> str:
    return certificate_text(*about(kind))


def refused(kind: str, content: Any, *, rigorous: bool = False) -> bool:
    """Whether the package refuses a file, with words."""
    try:
        return (
            not parse_certificate(signed(content)).verify(about(kind)[1], rigorous=rigorous).passed
        )
    except CertificateError as error:
        return bool(str(error))


def verifier_refuses(kind: str, content: Any) -> bool:
    matrix = about(kind)[1]
    matrix = matrix.toarray() if isinstance(matrix, FactoredCorrelation) else matrix
    return bool(problems(json.loads(signed(content)), matrix))


def signed(file: dict[str, Any]) -> str:
    """The text of an altered file with the checksum that fits."""
    return json.dumps({**file, "checksum": checksum(file["content"])})


def leaves(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    if isinstance(value, dict):
        return [leaf for key, v in value.items() for leaf in leaves(v, (*path, key))]
    if isinstance(value, list):
        return [leaf for key, v in enumerate(value) for leaf in leaves(v, (*path, key))]
    return [path]


def at(content: Any, path: tuple[Any, ...]) -> Any:
    for key in path:
        content = content[key]
    return content


def changed(file: dict[str, Any], path: tuple[Any, ...], value: Any) -> dict[str, Any]:
    """The file with another value at a place of its content."""
    out = copy.deepcopy(file)
    at(out["content"], path[:-1])[path[-1]] = value
    return out


@every
def test_nothing_is_lost(kind: str, tmp_path: Path) -> None:
    result, matrix = about(kind)
    save_certificate(result, matrix, tmp_path / "c.json")
    file = load_certificate(tmp_path / "c.json")
    assert [p.name for p in tmp_path.iterdir()] == ["c.json"]
    assert certificate_text(file.result, file.R) == text_of(kind)
    assert type(file.result) is type(result)
    for name, a in result.certificate.arrays.items():
        np.testing.assert_array_equal(file.result.certificate.arrays[name], a)
    for rigorous in (False, True):
        found = file.verify(matrix, rigorous=rigorous)
        assert found.passed, found.problems
        assert len(found.claims) >= 6
        assert found.lower <= found.upper + 1e-7
    assert not verifier_refuses(kind, json.loads(text_of(kind)))
    stored = json.loads(text_of(kind))["content"]["R"]
    assert (stored is None) == kind.startswith("wide")  # no p × p array


@pytest.mark.parametrize("field", ["rho_min", "support"])
def test_floors_and_supports_that_are_none(field: str) -> None:
    file = json.loads(text_of("support, open"))
    places = {"rho_min": ("result", field), "support": ("result", "certificate", "arrays", field)}
    array = at(file["content"], (*places[field], "$array"))
    first = array if field == "rho_min" else array[0]
    first[0] = -0.1 if field == "rho_min" else 0.5
    assert refused("support, open", file)
    assert verifier_refuses("support, open", file)


# By how much a number has to be changed to be another one, at most.
MATTERS = {"prices": 5e-6, "weights": 5e-6, "lower_bound": 3e-6, "T": 1e-5, "R": 1e-5}
MATTERS |= {"rho_upper": 2e-7, "budget": 1e-6, "max_vif": 1e-6, "largest_vif": 1e-6}
MATTERS |= {"pair_weights": 1e-3, "anchors": 1e-3}
UNTOLD = {"tol", "certificate", "search"}  # judged by themselves, or not at all


def fields_of(file: Any) -> dict[str, list[tuple[Any, ...]]]:
    """The places of numbers, by the field that they belong to."""
    found: dict[str, list[tuple[Any, ...]]] = {}
    for path in leaves(file["content"]):
        name = path[1] if path[0] == "result" else path[0]
        if isinstance(at(file["content"], path), float) and name not in UNTOLD:
            inner = path[2] if name in ("T", "goal", "bounds") else "$array"
            found.setdefault(f"{name}, {inner}", []).append(path)
    return found


@every
@pytest.mark.parametrize("count", [1, pytest.param(8, marks=pytest.mark.slow)])
def test_every_number_of_a_claim(kind: str, count: int) -> None:
    """One by one, in the last place that matters and grossly."""
    result, file = about(kind)[0], json.loads(text_of(kind))
    slack = result.fidelity - getattr(result, "rho_min", 0)
    rng = np.random.default_rng(KINDS.index(kind))
    for among in fields_of(file).values():
        for path in [among[i] for i in rng.permutation(len(among))[:count]]:
            field, value = path[1] if path[0] == "result" else path[0], at(file["content"], path)
            size = MATTERS.get(path[-1] if path[-1] in MATTERS else field, 3e-9)
            size *= max(1.0, abs(value))
            steps = [size, -size, 0.5 * max(1.0, abs(value))] if count > 1 else [size, -size]
            if field == "rho_min":  # lower floors that do not bind are another truth
                steps = [float(slack[path[-1]]) + 2e-9, float(slack[path[-1]]) + 0.1]
            elif path[-1] == "rho_upper":  # a bound that is higher than proved is true
                steps = [-size, -0.5]
            elif field in ("T", "anchors", "pair_weights") and value == 0:
                continue
            for step in steps:
                lie = changed(file, path, value + step)
                assert refused(kind, lie), (path, step)
                unknown = field in ("prices", "weights") and "support" in kind
                assert unknown or verifier_refuses(kind, lie), (path, step)
            assert count == 1 or refused(kind, lie, rigorous=True), path


OTHER_WORDS = {
    "status": ("exact", "optimal", "best_found"),
    "criterion": ("worst", "squared"),
    "kind": ("exact", "tradeoff"),
}


@every
def test_every_word_of_a_claim(kind: str) -> None:
    file = json.loads(text_of(kind))
    for path in leaves(file["content"]):
        value, field = at(file["content"], path), path[1 : 2 if path[0] == "result" else 1]
        if not isinstance(value, str) or path[0] == "sources" or field == ("names",):
            continue  # names are judged together with a named matrix
        words = ["", f"{value}x", *OTHER_WORDS.get(path[-1], ())]
        if field == ("criterion",) and about(kind)[0].certificate.is_exact:
            words = words[:2]  # no residual correlation is none by any criterion
        for other in set(words) - {value}:
            both = {"best_found", "not_converged"}  # either word for an open gap
            if not {value, other} <= both:
                assert refused(kind, changed(file, path, other)), (path, other)


JUNK = [None, True, -1, 10**30, "inf", [], {}, [None], {"$array": [[1.0]]}]


@few
def test_junk_is_refused_with_a_message(kind: str) -> None:
    """Whatever stands in the place of a part, the answer is a refusal and not a crash."""
    file = json.loads(text_of(kind))
    result = file["content"]["result"]
    places = [("result",), ("R",), ("sources",), *(("result", key) for key in result)]
    places += [("result", "certificate", key) for key in result["certificate"]]
    arrays = ("result", "certificate", "arrays")
    places += [(*arrays, key) for key in result["certificate"]["arrays"]]
    for path in set(places) - {("result", "n_iter")}:
        for junk in JUNK:
            if at(file["content"], path) != junk:
                assert refused(kind, changed(file, path, junk)), (path, junk)
        without = copy.deepcopy(file)
        del at(without["content"], path[:-1])[path[-1]]
        assert refused(kind, without) or path[-1] in ("unique", "notes"), path
        more = changed(file, (*path[:-1], "more"), 1)
        assert refused(kind, more), path


@few
def test_what_no_claim_is_about_is_not_in_a_file(kind: str) -> None:
    file = json.loads(text_of(kind))
    for name, value in (
        ("notes", {"$record": "Notes", "confidence": "holds for everyone"}),
        ("reason", "no reason"),
        ("unique", False),
        ("R", file["content"]["R"]),
    ):
        if name in file["content"]["result"] and value is not None:
            assert refused(kind, changed(file, ("result", name), value)), name


@pytest.mark.parametrize("kind", ["squared", "exact", "support", "support, open"])
def test_a_matrix_of_a_proof_is_symmetric(kind: str) -> None:
    """Certificates average their matrices; one that was put in by force is refused."""
    result = about(kind)[0]
    arrays = result.certificate.arrays
    name = next(n for n in ("H", "mean_S", "Q") if n in arrays)
    skew = arrays[name].copy()
    skew[0, 1] += 1e-3
    path = ("result", "certificate", "arrays", name, "$array")
    lie = changed(json.loads(text_of(kind)), path, skew.tolist())
    assert refused(kind, lie)
    assert verifier_refuses(kind, lie)
    point = Certificate(result.certificate.kind, {}, result.certificate.info)
    object.__setattr__(point, "arrays", {**arrays, name: skew})
    for judge in (check, prove):
        assert "not symmetric" in verdict(judge, replace(result, certificate=point), R)


@every
@pytest.mark.parametrize("count", [2, pytest.param(4, marks=pytest.mark.slow)])
def test_dual_points(kind: str, count: int) -> None:
    """Arrays of a proof may be replaced by others that prove as much, and by no others."""
    file, (result, matrix) = json.loads(text_of(kind)), about(kind)
    for name, a in result.certificate.arrays.items():
        moved = a + np.eye(*a.shape) if a.ndim == 2 else a[::-1]
        for wrong in (1.5 * a, moved, 0.5 * a, -a)[:count]:
            if np.allclose(wrong, a, atol=1e-7) or (name == "factor" and wrong[0, 0] == -a[0, 0]):
                continue  # the product of -A with itself is that of A
            path = ("result", "certificate", "arrays", name)
            lie = changed(file, path, {"$array": wrong.tolist()})
            claim = lie["content"]["result"]
            if name in ("weights", "multipliers") and np.all(wrong >= 0):
                claim["weights"] = {"$array": wrong.tolist()}
                if "prices" in claim and name == "multipliers":
                    claim["prices"] = {"$array": (2 * wrong).tolist()}
            try:
                found = parse_certificate(signed(lie)).verify(matrix)
            except CertificateError:
                continue
            if found.passed:  # then it has to be true, and as sharp as promised
                assert found.lower <= getattr(result, "objective", found.upper) + 1e-7
            else:
                assert found.problems
                assert name in ("slope", "eta") or verifier_refuses(kind, lie), name


@every
def test_other_matrices(kind: str) -> None:
    result, matrix = about(kind)
    p, file = len(matrix), parse_certificate(text_of(kind))
    for other in (make_system(p, seed=2), make_system(p + 1), np.eye(p)):
        with pytest.raises(CertificateError, match="another correlation matrix"):
            file.verify(other)
    content = json.loads(text_of(kind))
    lie = changed(content, ("R",), {"$array": make_system(p, seed=2).tolist()})
    assert refused(kind, lie)
    assert verifier_refuses(kind, lie)
    if kind.startswith("wide"):
        turned = np.linalg.qr(np.random.default_rng(2).normal(size=(9, 9)))[0] @ test_wide.ROWS
        assert file.verify(FactoredCorrelation(turned)).passed
        near = test_wide.ROWS.copy()
        near[0, 0] += 1e-8
        for rows in (near, test_wide.ROWS[:, ::-1], test_wide.ROWS[:, 1:]):
            with pytest.raises(CertificateError, match="another correlation matrix"):
                file.verify(FactoredCorrelation(rows))
            with pytest.raises(CertificateError, match="another correlation matrix"):
                certificate_text(result, FactoredCorrelation(rows))


@pytest.mark.parametrize("kind", ["threshold", "squared", "anchors"])
def test_names_are_those_of_the_matrix(kind: str) -> None:
    pd = pytest.importorskip("pandas")
    names = [f"x{j}" for j in range(6)]
    frame = pd.DataFrame(R, index=names, columns=names)
    file = json.loads(text_of(kind))
    assert parse_certificate(signed(file)).verify(frame).passed
    lie = changed(file, ("sources", 2), "other")
    if kind != "anchors":
        with pytest.raises(CertificateError, match="other names than their sources"):
            parse_certificate(signed(lie))
        lie["content"]["result"]["names"]["$tuple"][2] = "other"
    with pytest.raises(CertificateError, match="variables"):
        parse_certificate(signed(lie)).verify(frame)
    assert refused(kind, changed(file, ("sources",), [*names[:5], names[0]]))
    assert refused(kind, changed(file, ("sources",), names[:5]))


# The stand-alone verifiers alone.


@pytest.mark.parametrize("condition", [1e6, 3e11])
@pytest.mark.parametrize("asked", ["threshold", "exact", "floors", "one", "budget", "vif"])
def test_nearly_singular_matrices_and_floors_of_one(condition: float, asked: str) -> None:
    """What T does and the bounds take more digits than products in double precision leave."""
    Q = np.linalg.qr(np.random.default_rng(4).normal(size=(4, 4)))[0]
    near = correlation_of_covariance((Q * [1 / condition, 0.7, 1.0, 1.4]) @ Q.T)
    result: Any = {
        "threshold": lambda: threshold(near),
        "exact": lambda: decorrelate(near, 0.1),
        "floors": lambda: decorrelate(near, [0.99, 0.9, 0.3, 0.9999]),
        "one": lambda: decorrelate(near, 1.0),
        "budget": lambda: maximize_fidelity(near, 0.2),
        "vif": lambda: maximize_fidelity(near, 1e6, criterion="vif"),
    }[asked]()
    file = json.loads(certificate_text(result, near))
    assert problems(file, near) == []
    lie = changed(file, ("result", "T", "$array", 0, 0), result.T[0, 0] * (1 + 1e-6) + 1e-6)
    assert problems(json.loads(signed(lie)), near)


@pytest.mark.parametrize("criterion", ["squared", "worst", "absolute"])
def test_composites_with_floors_of_one(criterion: Any) -> None:
    """Multipliers of 1e9 stand for a floor of one; the lengths of composites are rounded."""
    for seed, floors in ((0, 1.0), (2, 1.0), (3, [1.0, 0.95, 0.95, 0.95, 0.95])):
        anchors = np.random.default_rng(seed).normal(size=(6, 5))
        result = decorrelate(R, floors, anchors=anchors, criterion=criterion)
        assert result.weights.max() > 1e9
        file = json.loads(certificate_text(result, R))
        assert problems(file, R) == []
        lie = changed(file, ("result", "lower_bound"), result.lower_bound + 1e-6)
        assert problems(json.loads(signed(lie)), R)


def test_products_without_rounding() -> None:
    exactly = VERIFIER["exactly"]
    A = np.array([[1e16, 1.0], [3.0, -1e-300]])
    B = np.array([[1.0, 2.0], [-1e16, 5e-324]])
    np.testing.assert_array_equal(exactly(A, B)[:, 0], [0.0, 3.0])
    whole = np.array([[2.0, 0.0], [1.0, 3.0]])
    np.testing.assert_array_equal(exactly(whole, whole, whole), whole @ whole @ whole)


def run(*arguments: Any) -> tuple[int, str]:
    """The verifier in an interpreter that cannot import the package."""
    code = (
        "import sys, runpy; sys.modules['skcoral'] = None; sys.modules['scipy'] = None;"
        f"sys.argv = {[str(PROGRAM), *map(str, arguments)]!r};"
        "runpy.run_path(sys.argv[0], run_name='__main__')"
    )
    done = subprocess.run(
        [sys.executable, "-I", "-c", code], capture_output=True, text=True, check=False
    )
    assert not done.stderr
    return done.returncode, done.stdout


def test_as_a_program(tmp_path: Path) -> None:
    """A verifier answers with a refusal, not with a traceback."""
    file, matrix = tmp_path / "file.json", tmp_path / "R.npy"
    np.save(matrix, R)
    bare = json.loads(text_of("rank, threshold"))
    del bare["content"]["result"]["certificate"]["arrays"]["factor"]
    for text, given, code in (
        (text_of("squared"), [matrix], 0),
        (text_of("rank, frame"), [], 0),
        (text_of("rank, frame"), [matrix], 1),
        (text_of("squared").replace('"squared"', '"worst"'), [], 1),
        (signed(bare), [], 1),
    ):
        file.write_text(text, "utf-8")
        status, told = run(file, *given)
        assert (status, told.startswith("refused: ")) == (code, bool(code)), told
        assert bool(code) or told == "verified\n"
