"""What fits together is read; what does not is refused with words: one function at a time."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from skcoral.bounds.dual import multipliers_and_matrix, number, numbers
from skcoral.certificates import check, json_values, reading
from skcoral.certificates.json_values import (
    array_of,
    check_keys,
    coded,
    correlations_of,
    largest_difference,
    names_of,
    number_of,
    stored_factor,
    transform_of,
    unique_keys,
)
from skcoral.certificates.reading import (
    FURTHER,
    PARTS,
    agree,
    certificate_kind,
)
from skcoral.core.lowrank import FactoredCorrelation, LowRankTransform
from skcoral.core.solution import Certificate
from skcoral.exceptions import CertificateError

from .conftest import ANCHORS, R, honest


def refuses(words: str) -> Any:
    return pytest.raises(CertificateError, match=words)


TWO = np.array([[1.0, 0.5], [0.5, 1.0]])


@pytest.mark.parametrize(
    ("value", "options", "words"),
    [
        (TWO, {}, ""),
        (TWO, {"symmetric": True, "nonnegative": True}, ""),
        (1e100 * TWO, {}, ""),
        (0 * TWO, {"nonnegative": True}, ""),
        (-TWO, {}, ""),
        (TWO * [[np.inf, np.nan], [-np.inf, 1]], {"open_ended": True}, ""),
        (TWO.astype(np.float32), {}, "must be 2 by 2 numbers, got 2 by 2 numbers .float32"),
        (TWO.astype(int), {}, "int64"),
        (TWO[0], {}, "got 2 numbers"),
        (1.0, {}, "got one number"),
        (TWO[None], {}, "got 1 by 2 by 2 numbers"),
        (TWO * [[np.nan, 1], [1, 1]], {}, "not finite"),
        (TWO * [[np.inf, 1], [1, 1]], {}, "not finite"),
        (1.01e100 * TWO, {}, "beyond 1e.100"),
        (-1.01e100 * TWO, {"open_ended": True}, "beyond 1e.100"),
        (TWO * [[1, 1], [1, -1e-300]], {"nonnegative": True}, "negative number"),
        (np.array([[1.0, 0.5 + 1e-16], [0.5, 1.0]]), {"symmetric": True}, "not symmetric"),
    ],
)
def test_arrays(value: Any, options: dict[str, bool], words: str) -> None:
    if words:
        with refuses(words):
            numbers(value, (2, 2), "`A`", **options)
    else:
        assert numbers(value, (2, 2), "`A`", **options) is value


def test_numbers() -> None:
    for value in (1, 1.0, np.float64(1), np.float32(1), 1e100, -1e100):
        assert number(value, "`a`") == value
    for value in (True, "1", None, np.int64(1), np.ones(1), 1j):
        with refuses("must be a number"):
            number(value, "`a`")
    for value in (np.nan, np.inf, -np.inf, 1.1e100, -1.1e100):
        with refuses("must be finite"):
            number(value, "`a`")


def test_prices_agree() -> None:
    """Relative to one or to the price, with what rounding takes beside; infinite ones exactly."""
    wanted = np.array([0.0, 0.5, 40.0, -40.0, np.inf, np.inf, 1.0, np.nan])
    off = np.array([0.9e-3, -0.9e-3, 0.03, 0.03, 0.0, 0.0, np.nan, 0.0])
    found = agree(wanted + off, wanted, 1e-3)
    assert found.tolist() == [True, True, True, True, True, True, False, False]
    assert not agree(wanted + 3 * off, wanted, 1e-3)[:4].any()
    assert agree(wanted + 3 * off, wanted, 1e-3, np.array([2e-3, 2e-3, 0.1, 0.1, 0, 0, 0, 0]))[
        :4
    ].all()
    assert agree(np.array([1e308, -np.inf]), wanted[4:6], 1e-3).tolist() == [False, False]


@pytest.mark.parametrize("kind", list(PARTS))
def test_parts_of_a_certificate(kind: str) -> None:
    arrays, settings = PARTS[kind]
    made = {name: np.eye(2) for name in arrays}
    info = dict.fromkeys(settings, 1)
    if kind.startswith("support/"):
        info["bound"] = kind.split("/")[1]
    outer = kind.split("/")[0]
    assert certificate_kind(Certificate(outer, made, info)) == kind
    for name in arrays:
        short = {n: a for n, a in made.items() if n != name}
        with refuses(f"holds no array {name}"):
            certificate_kind(Certificate(outer, short, info))
        assert certificate_kind(Certificate(outer, short, info), without=(name,)) == kind
        assert certificate_kind(Certificate(outer, made, info), without=(name,)) == kind
    with refuses("consists of .*; check more"):
        certificate_kind(Certificate(outer, {**made, "more": np.eye(2)}, info))
    with refuses("consists of .*; check other"):
        certificate_kind(Certificate(outer, made, {**info, "other": 1}))
    for name in settings - {"bound"}:
        with refuses(f"check {name}"):
            certificate_kind(Certificate(outer, made, {n: v for n, v in info.items() if n != name}))
    ranked = Certificate(outer, made, {**info, "rank": 1})
    if kind == "tradeoff" or "rank" in settings:
        assert certificate_kind(ranked) == kind
    else:
        with refuses("check rank"):
            certificate_kind(ranked)
    further = {name: np.eye(2) for name in FURTHER.get(kind, ())}
    assert certificate_kind(Certificate(outer, {**made, **further}, info)) == kind
    for name in further if len(further) > 1 else ():
        with refuses("holds no array"):
            certificate_kind(Certificate(outer, {**made, name: np.eye(2)}, info))


def test_kinds_that_are_none() -> None:
    for kind in ("banana", "support", None, 3):
        with refuses("no certificate of the kind"):
            certificate_kind(Certificate(kind, {}, {}))  # type: ignore[arg-type]
    with refuses("a Certificate is wanted, got NoneType"):
        certificate_kind(None)


def test_outputs_that_a_matrix_covers() -> None:
    """Weights of zero are left out of S."""
    weights = np.array([1.0, 0.0, 2.0])
    for size in (1, 3):
        with refuses("`S` must be 2 by 2"):
            multipliers_and_matrix({"weights": weights, "S": np.eye(size)}, ("weights", "S"), 3)
    found = multipliers_and_matrix({"weights": weights, "S": TWO}, ("weights", "S"), 3)
    assert (found[0] is weights, found[1] is TWO, found[2].tolist()) == (True, True, [0, 2])
    with refuses("all weights are zero"):
        multipliers_and_matrix({"weights": 0 * weights, "S": TWO}, ("weights", "S"), 3)


def test_words_and_counts() -> None:
    class Word(str):
        """Compares as it likes."""

        def __eq__(self, other: object) -> bool:
            return True

        __hash__ = str.__hash__

    reading._check_word("a", ("a", "b"), "this")
    for value in ("c", Word("a"), None, 1):
        with refuses("this must be one of a, b; got"):
            reading._check_word(value, ("a", "b"), "this")
    for count in (0, 1, np.int64(3)):
        reading._check_count(count)
    for value in (-1, True, 1.0, "1", None, np.int64(-1)):
        with refuses("number of steps"):
            reading._check_count(value)


def test_only_the_direction_of_a_composite_matters() -> None:
    for kind in ("anchors", "exact, anchors"):
        for scale in (2.0**200, [2.0**-300, 1.0, 2.0**90, 2.0**-7]):
            assert check(replace(honest(kind), anchors=ANCHORS * scale), R).passed


def test_values_of_json() -> None:
    assert coded({"b": np.inf, "a": [np.float64(1.5), -np.inf, np.nan]}) == {
        "a": [1.5, "-inf", "nan"],
        "b": "inf",
    }
    assert list(coded({"b": 1, "a": 2})) == ["a", "b"]
    assert coded(np.eye(2)) == [[1.0, 0.0], [0.0, 1.0]]
    for value, shape in ((3, ()), ([1, 2.5], (2,)), ([[1], [2]], (2, 1))):
        assert array_of(value, "`a`").shape == shape
    assert array_of(["inf", "-inf", 1], "`a`", open_ended=True).tolist() == [np.inf, -np.inf, 1]
    for value in (["inf"], ["1"], [True], [None], [{}], [[[1.0]]], "nan", [[1.0, "x"]]):
        with refuses("must consist of numbers"):
            array_of(value, "`a`")
    for value in ([1.0, [2.0]], [[1.0], [2.0, 3.0]], [10**400]):
        with refuses("must be an array of numbers"):
            array_of(value, "`a`")
    with refuses("must consist of numbers"):
        array_of(["infinity"], "`a`", open_ended=True)
    assert number_of(3, "`a`") == 3
    for value in ([1.0], [], [[1.0]]):
        with refuses("must be one number"):
            number_of(value, "`a`")
    assert names_of(["a", "b"]) == ("a", "b")
    for value in ("ab", None, ["a", 1], ("a",), ["a", "a"]):
        with refuses("names"):
            names_of(value)


def test_objects_of_json() -> None:
    check_keys({"a": 1}, {"a"}, "this")
    for value, odd in (({"a": 1, "b": 2}, "b"), ({}, "a"), (None, "a"), ([], "a"), ("a", "a")):
        with refuses(f"this of a certificate file has other parts than it should: {odd}"):
            check_keys(value, {"a"}, "this")
    assert unique_keys([("a", 1), ("b", 2)]) == {"a": 1, "b": 2}
    with pytest.raises(ValueError, match="twice"):
        unique_keys([("a", 1), ("b", 2), ("a", 1)])
    with pytest.raises(ValueError, match="NaN"):
        json_values.no_constant("NaN")


def test_transformations_of_json() -> None:
    T = transform_of({"left": [[1.0], [2.0], [3.0]], "right": [[1.0, 0.0, 1.0]]})
    assert T.shape == (3, 3)
    np.testing.assert_array_equal(transform_of([[1.0, 2.0]]), [[1.0, 2.0]])
    for value in ([1.0], 3.0, [[]]):
        if value != [[]]:
            with refuses("`T` is a matrix"):
                transform_of(value)
    for left, right in (
        ([1.0, 2.0], [1.0, 2.0]),
        ([[1.0], [2.0]], [[1.0], [2.0]]),
        ([[1.0], [2.0]], [[1.0, 2.0, 3.0]]),
        ([[1.0], [2.0]], [1.0, 2.0]),
    ):
        with refuses("do not fit"):
            transform_of({"left": left, "right": right})
    with refuses("the transformation of a certificate file"):
        transform_of({"left": [[1.0]]})


def test_stored_factors() -> None:
    A = np.array([[1.0, 0.6, 0.0], [0.0, 0.8, 1.0]])
    info = {"rank": 2, "criterion": "squared"}
    zeros = {"N": np.zeros((2, 2)), "multipliers": np.zeros(3), "kappa": np.zeros(3)}
    frame = Certificate("frame", {"factor": A, **zeros}, info)
    T = LowRankTransform(np.zeros((3, 1)), np.zeros((1, 3)))
    np.testing.assert_array_equal(stored_factor(frame, T).factor, A)
    with refuses("needs a factor of it, and T those of its own"):
        stored_factor(frame, np.eye(3))
    dual = {"multipliers": np.zeros(3), "H": np.eye(3)}
    with refuses("needs a factor of it"):
        stored_factor(Certificate("tradeoff", dual, {"criterion": "squared"}), T)
    with refuses("check rank"):
        stored_factor(replace(frame, info={"criterion": "squared"}), T)
    G, uncorrelated = correlations_of(T, FactoredCorrelation(A))
    assert not uncorrelated
    np.testing.assert_allclose(G.toarray(), A.T @ A, atol=1e-15)


def test_correlations_of_outputs() -> None:
    L = np.linalg.inv(np.linalg.cholesky(TWO)).T
    G, uncorrelated = correlations_of(L, TWO)
    assert uncorrelated
    np.testing.assert_allclose(G, np.eye(2), atol=1e-15)
    for size, none in ((0.5e-8, True), (2e-8, False), (-2e-8, False)):
        T = L @ np.array([[1.0, size], [0.0, 1.0]])
        assert correlations_of(T, TWO)[1] == none
        assert correlations_of(2.0 * L, TWO)[1]  # variances are judged elsewhere
    T = np.array([[1.0, 0.2], [-0.3, 2.0]])
    np.testing.assert_allclose(correlations_of(T, TWO)[0], T.T @ TWO @ T, atol=1e-15)


def test_differences_of_matrices() -> None:
    A = np.array([[1.0, 0.6, 0.0], [0.0, 0.8, 1.0]])
    moved = A.copy()
    moved[:, 1] = [np.cos(0.9), np.sin(0.9)]
    wanted = float(np.abs(A.T @ A - moved.T @ moved).max())
    low, other, full = FactoredCorrelation(A), FactoredCorrelation(moved), A.T @ A
    assert largest_difference(full, full) == 0
    regular = np.array([[1.0, 0.5, 0.1], [0.5, 1.0, 0.2], [0.1, 0.2, 1.0]])
    nearby = regular + 0.01 * (np.ones((3, 3)) - np.eye(3))
    assert largest_difference(regular, nearby) == pytest.approx(0.01)
    assert largest_difference(low, moved.T @ moved) == pytest.approx(wanted)
    assert largest_difference(moved.T @ moved, low) == pytest.approx(wanted)
    assert largest_difference(low, full) < 1e-15
    assert largest_difference(low, low) < 1e-15
    assert largest_difference(low, other) > 0.01
    for stored, given in ((regular, TWO), (low, TWO), (TWO, low), (low, low.__class__(TWO))):
        assert largest_difference(stored, given) == np.inf
