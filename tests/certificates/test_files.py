"""Certificate files: complete round trips, and no altered file is accepted."""

from __future__ import annotations

import copy
import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from skcoral.certificates import (
    certificate_text,
    load_certificate,
    parse_certificate,
    save_certificate,
)
from skcoral.core.results import Threshold
from skcoral.datasets import make_system
from skcoral.exceptions import CertificateError

from .conftest import MAKERS, R, honest

TEXTS = dict.fromkeys(MAKERS)


def text_of(kind: str) -> str:
    if TEXTS[kind] is None:
        TEXTS[kind] = certificate_text(honest(kind), R)
    return TEXTS[kind]


def signed(content: dict[str, Any]) -> str:
    """The text of an altered file with the checksum that fits: the liar knows the format."""
    parts = {"claim": content["claim"], "proof": content["proof"]}
    canonical = json.dumps(parts, sort_keys=True, separators=(",", ":"))
    content["checksum"] = "sha256:" + hashlib.sha256(canonical.encode()).hexdigest()
    return json.dumps(content)


def refused(text: str, *, rigorous: bool = False) -> bool:
    try:
        return not parse_certificate(text).verify(R, rigorous=rigorous).passed
    except CertificateError as error:
        return bool(str(error))


def leaves(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    if isinstance(value, dict):
        return [leaf for key, v in value.items() for leaf in leaves(v, (*path, key))]
    if isinstance(value, list):
        return [leaf for key, v in enumerate(value) for leaf in leaves(v, (*path, key))]
    return [path]


def changed(content: dict[str, Any], path: tuple[Any, ...], change: Any) -> dict[str, Any]:
    out = copy.deepcopy(content)
    inner = out
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = change(inner[path[-1]])
    return out


def test_nothing_is_lost(kind: str, tmp_path: Path) -> None:
    result = honest(kind)
    save_certificate(result, R, tmp_path / "c.json")
    file = load_certificate(tmp_path / "c.json")
    assert [p.name for p in tmp_path.iterdir()] == ["c.json"]
    np.testing.assert_array_equal(file.R, R)
    np.testing.assert_array_equal(file.result.T, result.T)
    assert file.result.certificate.kind == result.certificate.kind
    for name, a in result.certificate.arrays.items():
        np.testing.assert_array_equal(file.result.certificate.arrays[name], a)
    if not isinstance(result, Threshold):
        np.testing.assert_array_equal(file.result.prices, result.prices)
        assert file.result.lower_bound == result.lower_bound
    for rigorous in (False, True):
        verdict = file.verify(R, rigorous=rigorous)
        assert verdict.passed, verdict.problems
    assert certificate_text(file.result, R).split('"claim"')[1] == text_of(kind).split('"claim"')[1]


def test_any_careless_change_is_found(kind: str) -> None:
    """The last digit of any number, any letter: the checksum sees it."""
    content = json.loads(text_of(kind))
    paths = leaves(content)
    for path in [*paths[:6], *paths[6 :: max(1, len(paths) // 60)]]:
        for change in (_last_digit, lambda _: "changed", lambda _: None):
            altered = changed(content, path, change)
            if altered != content:
                assert refused(json.dumps(altered)), path


# By how much a number of a claim has to be changed to be another one, at most.
MATTERS = {"prices": 5e-6, "weights": 5e-6, "lower_bound": 3e-7, "T": 1e-5, "R": 1e-5}
MATTERS |= {
    "rho_upper": 2e-7,
    "budget": 1e-6,
    "max_vif": 1e-6,
    "pair_weights": 1e-3,
    "anchors": 1e-3,
}


@pytest.mark.parametrize("rigorous", [False, True])
def test_every_number_of_a_claim(kind: str, rigorous: bool) -> None:
    """One by one, in the last place that matters and grossly, with a checksum that fits."""
    content = json.loads(text_of(kind))
    slack = honest(kind).fidelity - getattr(honest(kind), "rho_min", 0)
    rng = np.random.default_rng(0)
    paths = [p for p in leaves(content["claim"]) if isinstance(_at(content["claim"], p), float)]
    chosen = rng.permutation(len(paths))[: 3 if rigorous else 8]
    for path in [paths[i] for i in chosen]:
        field, value = path[0], _at(content["claim"], path)
        if field == "rho_min":
            # lower floors that do not bind are another truth; higher ones than met are none
            steps = [float(slack[path[1]]) + 2e-10, float(slack[path[1]]) + 0.1]
        elif field in ("T", "anchors") and value == 0:
            continue
        else:
            size = MATTERS.get(path[-1] if path[-1] in MATTERS else field, 3e-9)
            size *= max(1.0, abs(value))
            steps = [size, -size, 0.5, -0.5, -2 * value if abs(value) > size else 1.0]
        for step in steps:
            altered = changed(content, ("claim", *path), lambda v, s=step: v + s)
            assert refused(signed(altered), rigorous=rigorous), (path, step)


def test_every_word_of_a_claim(kind: str) -> None:
    content = json.loads(text_of(kind))
    for path in leaves(content):
        value = _at(content, path)
        if not isinstance(value, str) or path[0] == "checksum":
            continue
        if len(path) == 1:
            assert refused(signed(changed(content, path, lambda v: v + "x")))
            continue
        if path[1:2] in (("sources",), ("names",)):
            continue  # judged together with a named matrix, see the test below
        words = ["", value + "x", "exact", "optimal", "open", "worst", "squared", "nan", "inf"]
        if path[1] == "criterion" and honest(kind).certificate.kind in ("exact", "threshold"):
            words = words[:2]  # no residual correlation is none by any criterion
        for other in words:
            if other != value and not (path[1] in ("prices", "weights") and other == "inf"):
                altered = signed(changed(content, path, lambda _, o=other: o))
                if path[1] in ("prices", "weights") and len(content["claim"]["prices"]) < 2:
                    continue
                assert refused(altered), (path, other)


MISFITS: list[Callable[[Any], Any]] = [
    lambda c: c.update(more=1),
    lambda c: c["claim"].update(more=1),
    lambda c: c["proof"].update(more=1),
    lambda c: c["proof"]["arrays"].update(more=[1.0]),
    lambda c: c["proof"]["info"].update(more=1),
    lambda c: c["claim"].pop("rank"),
    lambda c: c["claim"].pop("T"),
    lambda c: c["proof"].pop("kind"),
    lambda c: c["claim"].update(T=3.0),
    lambda c: c["claim"].update(T=[1.0] * 6),
    lambda c: c["claim"].update(T=None),
    lambda c: c["claim"].update(R=[1.0] * 6),
    lambda c: c["claim"].update(R=None),
    lambda c: c["claim"].update(rank=3),
    lambda c: c["claim"].update(rank=0),
    lambda c: c["claim"].update(rank=True),
    lambda c: c["claim"].update(rank="3"),
    lambda c: c["claim"].update(rank=[3]),
    lambda c: c["claim"].update(what="theorem"),
    lambda c: c["claim"]["sources"].append("more"),
    lambda c: c["claim"]["sources"].reverse(),
    lambda c: c["claim"]["names"].append("more"),
    lambda c: c["claim"]["names"].__setitem__(0, c["claim"]["names"][1]),
    lambda c: c["claim"].update(names="abcdef"),
    lambda c: c["claim"].update(names="abcdef", sources="abcdef"),
    lambda c: c["claim"].update(names=7),
    lambda c: c["claim"].update(names=[1, 2, 3, 4, 5, 6]),
    lambda c: c["proof"].update(info=[]),
    lambda c: c["proof"].update(arrays=[]),
    lambda c: c["claim"]["R"][0].__setitem__(1, c["claim"]["R"][0][1] + 1e-9),
    lambda c: c["claim"]["R"][2].__setitem__(2, 1 + 1e-9),
]


def test_parts_that_do_not_fit(kind: str) -> None:
    for k, change in enumerate(MISFITS):
        content = json.loads(text_of(kind))
        change(content)
        renamed = content["claim"].get("sources", [""])[0] == "x5"
        # sources of composites are judged with a named matrix
        assert refused(signed(content)) or ("anchors" in kind and renamed), k


@pytest.mark.parametrize("kind", ["exact", "squared", "support", "support, open"])
def test_a_support_goes_with_a_certificate_of_its_kind(kind: str) -> None:
    """A support beside another proof would be a restriction that nobody judges."""
    content = json.loads(text_of(kind))
    own = content["claim"]["support"]
    content["claim"]["support"] = np.ones((6, 6), int).tolist() if own is None else None
    with pytest.raises(CertificateError, match="a support goes with"):
        parse_certificate(signed(content))


def test_names_are_those_of_the_matrix(kind: str) -> None:
    pd = pytest.importorskip("pandas")
    names = [f"x{j}" for j in range(6)]
    frame = pd.DataFrame(R, index=names, columns=names)
    content = json.loads(text_of(kind))
    assert parse_certificate(signed(content)).verify(frame).passed
    for j in range(6):
        lie = copy.deepcopy(content)
        lie["claim"]["sources"][j] = "other"
        if "anchors" not in kind:
            lie["claim"]["names"][j] = "other"
        with pytest.raises(CertificateError, match="variables"):
            parse_certificate(signed(lie)).verify(frame)


def test_dual_points(kind: str) -> None:
    """Arrays of a proof may be replaced by others that prove as much, and by no others."""
    content = json.loads(text_of(kind))
    result = honest(kind)
    for name, values in content["proof"]["arrays"].items():
        a = np.array(values)
        for wrong in (2 * a, 0.5 * a, -a, a + np.eye(*a.shape) if a.ndim == 2 else a[::-1]):
            if np.allclose(wrong, a, atol=1e-7):
                continue
            altered = copy.deepcopy(content)
            altered["proof"]["arrays"][name] = wrong.tolist()
            if name in ("weights", "multipliers") and "weights" in altered["claim"]:
                altered["claim"]["weights"] = wrong.tolist()
                if name == "multipliers":
                    altered["claim"]["prices"] = (2 * wrong).tolist()
            try:
                file = parse_certificate(signed(altered))
                verdict = file.verify(R)
            except CertificateError:
                continue
            if verdict.passed:  # then it has to be true, and as sharp as promised
                assert verdict.lower <= getattr(result, "objective", verdict.upper) + 1e-7
                assert file.result.status == result.status
            else:
                assert verdict.problems


@pytest.mark.parametrize("other", [1, 7])
def test_other_matrices(kind: str, other: int) -> None:
    with pytest.raises(CertificateError, match="another correlation matrix"):
        parse_certificate(text_of(kind)).verify(make_system(6, seed=other + 1))
    content = json.loads(text_of(kind))
    content["claim"]["R"] = make_system(6, seed=other + 1).tolist()
    try:
        file = parse_certificate(signed(content))
        assert not file.verify().passed
    except CertificateError:
        pass


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        "nonsense",
        '{"format": "scikit-coral certificate", "version": 2}',
        '{"format": "scikit-coral certificate", "version": true}',
        '{"format": "scikit-coral certificate", "version": 1}',
        "[" * 100_000,
        '{"format": NaN}',
    ],
)
def test_what_is_no_certificate(text: str) -> None:
    with pytest.raises(CertificateError, match=r"certificate|version"):
        parse_certificate(text)
    with pytest.raises(CertificateError):
        parse_certificate(b"\xff" + text.encode())


@pytest.mark.parametrize("value", ["1e999", "10" * 300, '"1"', "true", "[1]", "{}", "null"])
def test_numbers_that_are_none(value: str) -> None:
    content = json.loads(text_of("squared"))
    for path in (("T", 0, 0), ("objective",), ("R", 1, 0), ("fidelity", 0)):
        altered = signed(changed(content, ("claim", *path), lambda _: json.loads(value)))
        assert refused(altered), (path, value)


def _last_digit(value: Any) -> Any:
    if isinstance(value, float):
        return float(np.nextafter(value, np.inf))
    return value + 1 if isinstance(value, int) else f"{value} "


def _at(content: Any, path: tuple[Any, ...]) -> Any:
    for key in path:
        content = content[key]
    return content


JUNK = [None, True, -1, 1e308, "", "inf", [], [[]], {}, [1, 2], [[1.0] * 6] * 6, 10**400, [None]]


@pytest.mark.parametrize("kind", ["threshold", "exact, anchors", "squared", "support", "budget"])
def test_junk_is_refused_with_a_message(kind: str) -> None:
    """Whatever stands in the place of a part, the answer is a refusal and not a crash."""
    content = json.loads(text_of(kind))
    places = [("claim",), ("proof",), *(("claim", key) for key in content["claim"])]
    places += [("proof", key) for key in content["proof"]]
    places += [("proof", "arrays", key) for key in content["proof"]["arrays"]]
    for path in places:
        for junk in JUNK:
            if _at(content, path) == junk or (path[-1] == "budget" and junk is None):
                continue  # without its budget it is a true claim about a floor
            assert refused(signed(changed(content, path, lambda _, j=junk: j))), (path, junk)


def test_a_key_given_twice_is_refused() -> None:
    text = text_of("squared")
    twice = text.replace('"objective"', '"objective": 0.0, "objective"', 1)
    with pytest.raises(CertificateError, match="not a certificate file"):
        parse_certificate(twice)
