"""Certificate files: nothing is lost, and no altered file passes, here or in the verifier.

Altered files have a checksum that fits: the liar knows the format.
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

from .conftest import verdict, verifier_refuses
from .results import KINDS, WIDE, WIDE_ROWS, R, about, by_moments
from .verifier import PROGRAM, VERIFIER, problems

every = pytest.mark.parametrize("kind", KINDS)
slow = pytest.param("wide, rank", marks=pytest.mark.slow)
few = pytest.mark.parametrize(
    "kind", ["threshold", "anchors", "support", "vif", "wide, threshold", slow]
)


@cache
def text_of(kind: str) -> str:
    return certificate_text(*about(kind))


def refused(kind: str, content: Any) -> bool:
    """Whether the package refuses a file, with words."""
    try:
        return not parse_certificate(signed(content)).verify(about(kind)[1]).passed
    except CertificateError as error:
        return bool(str(error))


def signed(file: dict[str, Any]) -> str:
    """The text of an altered file with the checksum that fits."""
    return json.dumps({**file, "checksum": checksum(file["content"])})


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
        judgement = file.verify(matrix, rigorous=rigorous)
        assert judgement.passed, judgement.problems
        assert len(judgement.claims) >= 6
        assert judgement.lower <= judgement.upper + 1e-7
    assert not verifier_refuses(result, matrix)
    stored = json.loads(text_of(kind))["content"]["R"]
    assert (stored is None) == kind.startswith("wide")  # no p × p array
    if stored is not None:
        skew = signed(changed(json.loads(text_of(kind)), ("R", "$array", 0, 0), 1 + 1e-9))
        with pytest.raises(CertificateError, match="ones on its diagonal"):
            parse_certificate(skew)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("criterion", "floor"),
    [("squared", 0.0), ("worst", 0.0), ("absolute", 0.0), ("squared", "mixed")],
)
def test_answers_that_moments_prove(criterion: str, floor: Any) -> None:
    result, matrix = by_moments(criterion, floor)
    assert result.lower_bound > 0
    assert check(result, matrix).passed
    assert prove(result, matrix).passed
    assert not verifier_refuses(result, matrix)


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
    assert problems(json.loads(signed(lie)), R)
    point = Certificate(result.certificate.kind, {}, result.certificate.info)
    object.__setattr__(point, "arrays", {**arrays, name: skew})
    for judge in (check, prove):
        assert "not symmetric" in verdict(judge, replace(result, certificate=point), R)


@every
def test_other_matrices(kind: str) -> None:
    result, matrix = about(kind)
    p, file = len(matrix), parse_certificate(text_of(kind))
    for other in (make_system(p, seed=2), make_system(p + 1), np.eye(p)):
        with pytest.raises(CertificateError, match="another correlation matrix"):
            file.verify(other)
    content = json.loads(text_of(kind))
    for stored in (make_system(p, seed=2), np.eye(p)):
        lie = changed(content, ("R",), {"$array": stored.tolist()})
        assert refused(kind, lie)
        dense = matrix.toarray() if kind in WIDE else matrix
        assert problems(json.loads(signed(lie)), dense)
    if kind in WIDE:
        turned = np.linalg.qr(np.random.default_rng(2).normal(size=(9, 9)))[0] @ WIDE_ROWS
        assert file.verify(FactoredCorrelation(turned)).passed
        near = WIDE_ROWS.copy()
        near[0, 0] += 1e-8
        for rows in (near, WIDE_ROWS[:, ::-1], WIDE_ROWS[:, 1:]):
            with pytest.raises(CertificateError, match="another correlation matrix"):
                file.verify(FactoredCorrelation(rows))
            with pytest.raises(CertificateError, match="another correlation matrix"):
                certificate_text(result, FactoredCorrelation(rows))


@pytest.mark.parametrize("kind", ["threshold", "squared", "anchors"])
def test_names_are_those_of_the_matrix(kind: str) -> None:
    pd = pytest.importorskip("pandas")
    names = [f"x{j}" for j in range(6)]
    frame = pd.DataFrame(R, index=names, columns=names)
    other = frame.set_axis(list("abcdef"), axis=0).set_axis(list("abcdef"), axis=1)
    sources = parse_certificate(certificate_text(about("anchors")[0], other)).sources
    assert sources == tuple("abcdef")
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
    integers = np.array([[2.0, 0.0], [1.0, 3.0]])
    np.testing.assert_array_equal(
        exactly(integers, integers, integers), integers @ integers @ integers
    )


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
        status, answer = run(file, *given)
        assert (status, answer.startswith("refused: ")) == (code, bool(code)), answer
        assert bool(code) or answer == "verified\n"
