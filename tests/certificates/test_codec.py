"""The codec of certificate and model files: values come back as they were, or are refused."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from skcoral.certificates.codec import DAMAGED, RESULTS, Codec, checksum, sealed, unsealed
from skcoral.core.lowrank import FactoredCorrelation, LowRankTransform
from skcoral.core.solution import Budget, Floors
from skcoral.data.moments import Moments

KIND = "some file"


def there_and_back(value: Any) -> Any:
    content = {"a": RESULTS.encode(value)}
    return RESULTS.decode(unsealed(sealed(KIND, 3, content), KIND, 3, {"a"})["a"])


@pytest.mark.parametrize(
    "value",
    [
        None,
        True,
        3,
        0.1 + 0.2,
        5e-324,
        np.inf,
        "text é",
        [1, [2.5, "x"]],
        (1, ("a", [2])),
        {"a": 1, "b": {"c": (2,)}},
        {1: "a", ("b", 2): 3.5},
        {"$array": [1.0]},  # a key that looks like a mark
        Budget(0.3, 0.9),
        Floors(),
    ],
    ids=repr,
)
def test_values(value: Any) -> None:
    assert there_and_back(value) == value
    assert type(there_and_back(value)) is type(value)


@pytest.mark.parametrize("dtype", ["f8", "f4", "i8", "i2", "?", "U3"])
@pytest.mark.parametrize("shape", [(3,), (2, 3), (2, 1, 3), (0, 0), (0, 3), ()])
def test_arrays(dtype: str, shape: tuple[int, ...]) -> None:
    a = np.asarray(np.random.default_rng(0).normal(size=shape) * 9).astype(dtype)
    b = there_and_back(a)
    assert (b.dtype.kind, b.shape) == (a.dtype.kind, a.shape)
    assert b.dtype == a.dtype or dtype == "U3"
    np.testing.assert_array_equal(b, a)


def test_numbers_that_json_does_not_have() -> None:
    a = np.array([[np.inf, 1.0], [-np.inf, np.nan]])
    np.testing.assert_array_equal(there_and_back(a), a)
    assert np.isnan(there_and_back(np.float64("nan")))
    assert there_and_back(np.float32(0.1)) == float(np.float32(0.1))


def test_tables_and_records() -> None:
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"a": [1.5, 2.5], "b": [0.1, np.nan]}, index=["x", "y"])
    pd.testing.assert_frame_equal(there_and_back(frame), frame)
    mixed = pd.DataFrame({"a": ["t", "u"], "b": [0.1, 2.0]}, index=["x", "y"])
    assert there_and_back(mixed).to_dict() == mixed.to_dict()
    series = pd.Series({"ash": 0.9, "alcohol": 0.8})
    pd.testing.assert_series_equal(there_and_back(series), series)
    T = there_and_back(LowRankTransform(np.ones((3, 1)), np.ones((1, 3))))
    np.testing.assert_array_equal(T.left, np.ones((3, 1)))


def test_what_cannot_be_written() -> None:
    for value in (object(), np.array([object()]), {1.5: object()}, Moments(["a"])):
        with pytest.raises(ValueError, match="here holds a"):
            RESULTS.encode(value, "here")


ONE = {"$record": "Budget", "budget": 0.3, "rho_upper": 0.9}


@pytest.mark.parametrize(
    "value",
    [
        {"$call": "exit"},
        {"$array": ["1.5"]},
        {"$array": [True]},
        {"$array": [None]},
        {"$array": ["infinity"]},
        {"$array": [[1.0], 2.0]},
        {"$array": [[1.0], [2.0, 3.0]]},
        {"$array": [[1.0], {}]},
        {"$array": [1.0], "dtype": "O"},
        {"$array": [1.0], "dtype": "f8,f8"},
        {"$array": [1.0], "dtype": 3},
        {"$array": [1.0], "shape": [10**9]},
        {"$array": [1.0], "shape": [-1, -1]},
        {"$array": [1.0], "more": 1},
        {"$array": [10**400]},
        {"$tuple": 3},
        {"$map": [[1]]},
        {"$map": [[[1], 2]]},
        {"$record": "Popen"},
        {"$record": ["Budget"]},
        {"$record": "Budget", "budget": 0.3},
        {**ONE, "more": 1},
        {**ONE, "budget": "0.3"},
        {**ONE, "budget": True},
        {**ONE, "budget": None},
        {**ONE, "budget": {"$float": "nan"}},
        {**ONE, "budget": 10**400},
        {"$record": "FactoredCorrelation", "factor": {"$array": [["nan"]]}},
        {"$record": "FactoredCorrelation", "factor": [[1.0]]},
        {"$record": "Notes", "about": 3},
        {"$record": "Notes", "is_about_rows": 1},
        {"$record": "SupportSearch", "n_starts": -1},
        {"$record": "SupportSearch", "n_starts": 2**53},
        {"$record": "SupportSearch", "n_starts": 1.0},
        {"$record": "Certificate", "kind": "exact", "arrays": {"S": 3}},
        {"$record": "Certificate", "kind": "exact", "arrays": []},
    ],
    ids=str,
)
def test_what_has_no_meaning(value: Any) -> None:
    with pytest.raises(DAMAGED):
        RESULTS.decode(value)


def test_the_type_that_is_expected() -> None:
    assert RESULTS.decode(ONE, Budget).rho_upper == 0.9
    assert type(RESULTS.decode({**ONE, "budget": 1}).budget) is float
    with pytest.raises(ValueError, match="Floors is expected, got Budget"):
        RESULTS.decode(ONE, Floors)
    with pytest.raises(ValueError, match="no meaning"):
        Codec(Floors).decode(ONE)
    assert isinstance(there_and_back(FactoredCorrelation(np.eye(2))), FactoredCorrelation)


def test_files_that_are_not_what_they_should_be() -> None:
    text = sealed(KIND, 3, {"a": 1})
    assert unsealed(text.encode(), KIND, 3, {"a"}) == {"a": 1}
    assert unsealed(json.dumps(json.loads(text), indent=2), KIND, 3, {"a"}) == {"a": 1}
    file = json.loads(text)
    other = {"format": KIND, "version": 3, "content": [1], "checksum": checksum([1])}
    for wrong, words in (
        ("", "truncated"),
        (text[:-3], "truncated"),
        ("[]", "its format is 'list'"),
        ("{}", "its format is 'None'"),
        (json.dumps({**file, "format": "other"}), "its format is 'other'"),
        *((json.dumps({**file, "version": v}), "reads version 3") for v in (2, True, "3", 3.0)),
        (json.dumps({**file, "more": 1}), "its parts"),
        (json.dumps(other), "its parts"),
        (json.dumps({**file, "content": {"a": 2}}), "altered"),
        (json.dumps({**file, "content": {"b": 1}}), "its parts"),
        (text.replace('"a": 1', '"a": 2, "a": 1'), "given twice"),
        (text.replace("1}", "NaN}"), "not a number of JSON"),
        (text.replace("1}", "1" * 5000 + "}"), "truncated"),
        ("[" * 100_000, "truncated"),
    ):
        with pytest.raises(ValueError, match=words):
            unsealed(wrong, KIND, 3, {"a"})
    with pytest.raises(DAMAGED):
        unsealed(b"\xff" + text.encode(), KIND, 3, {"a"})
