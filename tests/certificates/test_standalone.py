"""The verifiers that need NumPy alone accept true certificates and refuse false ones."""

from __future__ import annotations

import json
import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from skcoral import decorrelate, maximize_fidelity, threshold
from skcoral.certificates import certificate_text
from skcoral.core.lowrank import FactoredCorrelation

from . import conftest, test_files, test_singular, test_singular_budgets, test_wide
from .test_files import changed, signed

EXAMPLES = Path(__file__).parents[2] / "examples"
FULL, SINGULAR = "verify_certificate.py", "verify_singular_certificate.py"
sys.path.insert(0, str(EXAMPLES))  # as for a program that is run there
VERIFIERS = {name: runpy.run_path(str(EXAMPLES / name)) for name in (FULL, SINGULAR)}
WIDE = FactoredCorrelation(test_wide.ROWS)


def singular(kind: str) -> tuple[str, Any]:
    """The text of a file of a matrix of rank below p, and that matrix."""
    if kind.startswith("wide"):
        made = {"wide": test_wide.ANSWER, "wide, welch": test_wide.LOW, "wide edge": test_wide.EDGE}
        made |= {"wide, worst": test_wide.WORST, "wide, ranked": test_wide.RANKED}
        return certificate_text(made[kind], test_wide.R), np.asarray(WIDE.factor.T @ WIDE.factor)
    if kind == "budget":
        R = test_singular_budgets.R
        return certificate_text(test_singular_budgets.made("squared"), R), R
    R = test_singular.R
    weights = np.ones((8, 8)) - np.eye(8) + np.eye(8)[::-1]
    others = {
        "weighted": lambda: decorrelate(R, 0.3, pair_weights=weights),
        "frame, worst": lambda: decorrelate(R, 0.6, criterion="worst"),
        "absolute": lambda: decorrelate(R, 0.99, criterion="absolute"),
    }
    result = others[kind]() if kind in others else test_singular.HONEST[kind]
    return certificate_text(result, R), R


SINGULAR_KINDS = list(test_singular.ASKED)
SINGULAR_KINDS += ["weighted", "frame, worst", "absolute", "wide", "wide, welch", "wide edge"]
SINGULAR_KINDS += ["wide, worst", "wide, ranked", "budget"]


def problems(verifier: str, content: Any, R: Any) -> list[str]:
    """What a verifier finds wrong with a file."""
    found = VERIFIERS[verifier]["problems"]
    found.clear()
    try:
        VERIFIERS[verifier]["verify"](content, R)
    except np.linalg.LinAlgError:
        found.append("not definite")
    return list(found)


LIES = (
    (("claim", "T", 0, 0), 1e-5),
    (("claim", "fidelity", 1), 1e-6),
    (("claim", "objective"), 1e-6),
    (("claim", "lower_bound"), 1e-6),
    (("claim", "lower_bound"), -1e-5),
    (("claim", "rho_min", 0), 0.75),
    (("claim", "lower"), 1e-6),
    (("claim", "upper"), -1e-6),
    (("claim", "R", 0, 1), 1e-6),
    (("claim", "budget", "budget"), -1e-6),
    (("claim", "budget", "rho_upper"), -1e-6),
    (("claim", "vif", "max_vif"), -1e-6),
    (("claim", "vif", "largest_vif"), 1e-6),
    (("claim", "vif", "rho_upper"), -1e-6),
)


def refuses_lies(verifier: str, text: str, R: Any) -> None:
    content = json.loads(text)
    assert problems(verifier, content, R) == []
    assert problems(verifier, content, R[::-1, ::-1])
    for path, step in LIES:
        if path[1] in content["claim"] and content["claim"][path[1]] is not None:
            if path[1] == "T" and isinstance(content["claim"]["T"], dict):
                path = ("claim", "T", "left", 0, 0)
            if path[1] == "lower_bound" and content["claim"]["lower_bound"] + step < 0:
                continue
            lie = changed(content, path, lambda v, s=step: v + s)
            assert problems(verifier, json.loads(signed(lie)), R), (path, step)
    for word in {"exact", "optimal", "open"} - {content["claim"].get("status", "exact"), "exact"}:
        if "status" in content["claim"]:
            lie = changed(content, ("claim", "status"), lambda _, w=word: w)
            assert problems(verifier, json.loads(signed(lie)), R), word
    careless = changed(content, ("claim", "fidelity", 0), lambda v: float(np.nextafter(v, 2)))
    assert problems(verifier, careless, R)


def test_full_rank(kind: str) -> None:
    refuses_lies(FULL, test_files.text_of(kind), conftest.R)


@pytest.mark.parametrize("condition", [1e6, 3e11])
@pytest.mark.parametrize("asked", ["threshold", "exact", "floors", "one", "budget", "vif"])
def test_nearly_singular_matrices_and_floors_of_one(condition: float, asked: str) -> None:
    """What T does and the bounds take more digits than products in double precision leave."""
    Q = np.linalg.qr(np.random.default_rng(4).normal(size=(4, 4)))[0]
    C = (Q * [1 / condition, 0.7, 1.0, 1.4]) @ Q.T
    d = np.sqrt(np.diag(C))
    R = 0.5 * (C + C.T) / np.outer(d, d)
    np.fill_diagonal(R, 1.0)
    result: Any = {
        "threshold": lambda: threshold(R),
        "exact": lambda: decorrelate(R, 0.1),
        "floors": lambda: decorrelate(R, [0.99, 0.9, 0.3, 0.9999]),
        "one": lambda: decorrelate(R, 1.0),
        "budget": lambda: maximize_fidelity(R, 0.2),
        "vif": lambda: maximize_fidelity(R, 1e6, criterion="vif"),
    }[asked]()
    content = json.loads(certificate_text(result, R))
    assert problems(FULL, content, R) == []
    lie = changed(content, ("claim", "T", 0, 0), lambda v: v * (1 + 1e-6) + 1e-6)
    assert problems(FULL, json.loads(signed(lie)), R)


@pytest.mark.parametrize("criterion", ["squared", "worst", "absolute"])
def test_composites_with_floors_of_one(criterion: Any) -> None:
    """Multipliers of 1e9 stand for a floor of one; the lengths of composites are rounded."""
    for seed, floors in ((0, 1.0), (2, 1.0), (3, [1.0, 0.95, 0.95, 0.95, 0.95])):
        anchors = np.random.default_rng(seed).normal(size=(6, 5))
        result = decorrelate(conftest.R, floors, anchors=anchors, criterion=criterion)
        assert result.weights.max() > 1e9
        refuses_lies(FULL, certificate_text(result, conftest.R), conftest.R)


def test_products_without_rounding() -> None:
    exactly = runpy.run_path(str(EXAMPLES / "verify_bounds.py"))["exactly"]
    A = np.array([[1e16, 1.0], [3.0, -1e-300]])
    B = np.array([[1.0, 2.0], [-1e16, 5e-324]])
    np.testing.assert_array_equal(exactly(A, B)[:, 0], [0.0, 3.0])
    whole = np.array([[2.0, 0.0], [1.0, 3.0]])
    np.testing.assert_array_equal(exactly(whole, whole, whole), whole @ whole @ whole)


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("kind", SINGULAR_KINDS)
def test_rank_below_p(kind: str) -> None:
    text, R = singular(kind)
    refuses_lies(SINGULAR, text, R)
    content = json.loads(text)
    for name, values in content["proof"]["arrays"].items():
        for factor in (-1.0, 1.5):
            wrong = np.multiply(values, factor)
            same = name in ("factor", "V") and factor == -1.0  # AᵀA and VᵀV
            if np.any(wrong) and not same:
                lie = changed(content, ("proof", "arrays", name), lambda _, a=wrong: a.tolist())
                assert problems(SINGULAR, json.loads(signed(lie)), R), (name, factor)
    for rank in (1, content["claim"]["rank"] - 1, content["claim"]["rank"] + 1):
        lie = changed(content, ("claim", "rank"), lambda _, r=rank: r)
        assert problems(SINGULAR, json.loads(signed(lie)), R), rank
        lie = changed(lie, ("proof", "info", "rank"), lambda _, r=rank: r)
        assert problems(SINGULAR, json.loads(signed(lie)), R), rank
    if "prices" in content["claim"]:
        for name in ("prices", "weights"):
            lie = changed(content, ("claim", name, 1), lambda v: 1e-4 if v == "inf" else v + 1e-4)
            assert problems(SINGULAR, json.loads(signed(lie)), R), name


def run(verifier: str, *arguments: Any) -> tuple[int, str]:
    """A verifier in an interpreter that cannot import the package."""
    code = (
        "import sys, runpy; sys.modules['skcoral'] = None; sys.modules['scipy'] = None;"
        f"sys.path.insert(0, {str(EXAMPLES)!r});"
        f"sys.argv = {[str(EXAMPLES / verifier), *map(str, arguments)]!r};"
        "runpy.run_path(sys.argv[0], run_name='__main__')"
    )
    done = subprocess.run(
        [sys.executable, "-I", "-c", code], capture_output=True, text=True, check=False
    )
    assert not done.stderr
    return done.returncode, done.stdout


def test_as_programs(tmp_path: Path) -> None:
    for verifier in VERIFIERS:
        assert len((EXAMPLES / verifier).read_text("utf-8").splitlines()) < 150
    full, low = (tmp_path / name for name in ("full.json", "low.json"))
    full.write_text(test_files.text_of("squared"), "utf-8")
    low.write_text(singular("frame")[0], "utf-8")
    np.save(tmp_path / "R.npy", conftest.R)
    assert run(FULL, full, tmp_path / "R.npy") == (0, "verified\n")
    assert run(SINGULAR, low) == (0, "verified\n")
    assert run(SINGULAR, low, tmp_path / "R.npy")[0] == 1
    for verifier, file in ((FULL, low), (SINGULAR, full)):
        code, told = run(verifier, file)
        assert code == 2
        assert told.startswith("not covered here")
    full.write_text(test_files.text_of("squared").replace('"squared"', '"worst"'), "utf-8")
    code, told = run(FULL, full)
    assert (code, told.count("refused: ") > 0) == (1, True)
