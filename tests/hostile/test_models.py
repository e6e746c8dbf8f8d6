"""Malicious model files with valid checksums are refused with a message."""

import copy
import json

import numpy as np
import pytest
from sklearn.datasets import load_wine

from skcoral import CORAL
from skcoral.certificates.codec import checksum
from skcoral.core.limits import Limits, use
from skcoral.exceptions import ModelFileError
from skcoral.models import load_model, save_model


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    path = tmp_path_factory.mktemp("model") / "model.json"
    save_model(CORAL(0.9).fit(load_wine().data[:, :4]), path)
    return json.loads(path.read_text())


def load(envelope, tmp_path, *, text=None):
    """Write a model with the checksum that fits, and read it."""
    path = tmp_path / "altered.json"
    text = json.dumps(envelope) if text is None else text
    try:
        digest = checksum(json.loads(text)["content"])
    except (RecursionError, ValueError, KeyError):
        digest = ""
    path.write_text(text.replace(envelope["checksum"], digest))
    return load_model(path)


def refused(envelope, tmp_path, **options):
    with pytest.raises(ModelFileError) as error:
        load(envelope, tmp_path, **options)
    assert str(error.value).startswith(str(tmp_path))
    assert len(str(error.value)) < 1000
    return str(error.value)


def zeros(array):
    return {"$array": np.zeros(np.shape(array["$array"])).tolist()}


#: What is written over fields of a part of the content.
RESULT = {
    "status": "junk", "criterion": "banana", "names": "abc", "certificate": None, "goal": 3,
    "objective": ["abc", 7.0, {"$float": "inf"}], "lower_bound": [99.0, {"$float": "nan"}],
    "n_iter": [-1, True], "fidelity": [["a"] * 4, "zero"], "prices": [{"$array": [1.0]}],
    "T": ["zero"], "correlation": ["zero"], "extra": 1, "$record": "Popen",
    "notes": [{"$map": [[[1], 2]]}, {"$map": [[1]]}],
}  # fmt: skip
OTHERS = {
    "threshold": [{"lower": 2.0, "upper": 1.0}, {"upper": "x"}],
    "estimate": [{"R": "zero"}],
    "settings": [{"banana": 3}, {"rho_min": "x", "criterion": "banana"}],
}
ALTERED = [("result", {key: value}) for key, values in RESULT.items()
           for value in (values if isinstance(values, list) else [values])]  # fmt: skip
ALTERED += [(part, change) for part, changes in OTHERS.items() for change in changes]
SHAPES = [{"shape": [10**6, 10**6]}, {"shape": [-1, -1]}]
SHAPES += [{"dtype": kind} for kind in ("<U1000000000", "|O", "V1000000000", "f8,f8")]


@pytest.mark.parametrize(("part", "change"), ALTERED, ids=str)
def test_every_field_is_checked(model, tmp_path, part, change):
    assert load(model, tmp_path).result_.status == model["content"]["result"]["status"]
    altered = copy.deepcopy(model)
    place = altered["content"][part]
    place.update({k: zeros(place[k]) if v == "zero" else v for k, v in change.items()})
    refused(altered, tmp_path)


def test_parts_that_are_missing_or_of_another_kind(model, tmp_path):
    def altered(*path, value=None):
        one = place = copy.deepcopy(model)
        *path, last = path
        for name in path:
            place = place[name]
        del place[last]
        if value is not None:
            place[last] = value
        refused(one, tmp_path)

    altered("content", "result", "T")
    altered("content", "moments")
    altered("content", "estimate", value=[1, 2])
    altered("content", "settings", value=3)
    altered("content", "result", value=model["content"]["threshold"])
    altered("version", value=10**30)
    for shape in SHAPES:
        altered("content", "result", "T", value={**model["content"]["result"]["T"], **shape})


#: What each alteration is refused for: the checksum fits, as an enemy's would.
NONSENSE = {
    "different columns": lambda c: c["estimate"]["names"]["$tuple"].__setitem__(0, "water"),
    "scale is zero": lambda c: c["estimate"]["scale"]["$array"].__setitem__(0, 0.0),
    "mean must be": lambda c: c["estimate"]["mean"]["$array"].pop(),
    "other outputs": lambda c: c["result"]["on_rows"]["names"]["$tuple"].pop(),
    "shape (4, 4)": lambda c: c["result"].update(T={"$array": [[1.0]]}),
    "not true": lambda c: c["result"]["T"]["$array"][0].__setitem__(0, 0.5),
    "lower: off by": lambda c: c["threshold"].update(lower=0.99),
}


@pytest.mark.parametrize("words", NONSENSE)
def test_nonsense_is_refused_for_what_it_is(model, tmp_path, words):
    altered = copy.deepcopy(model)
    NONSENSE[words](altered["content"])
    assert words in refused(altered, tmp_path)


@pytest.mark.filterwarnings("ignore::skcoral.exceptions.SingularCorrelationWarning")
@pytest.mark.parametrize(("part", "factor"), [("left", 2.0), ("right", np.nan)])
def test_models_of_wide_tables_are_judged_by_their_factors(tmp_path, part, factor):
    save_model(CORAL(0.9).fit(np.random.default_rng(0).normal(size=(8, 20))), tmp_path / "w.json")
    wide = json.loads((tmp_path / "w.json").read_text())
    load(wide, tmp_path)
    array = wide["content"]["result"]["T"][part]["$array"]
    array[0] = [str(factor * x) if np.isnan(factor) else factor * x for x in array[0]]
    assert ("nan" if np.isnan(factor) else "variance") in refused(wide, tmp_path)


@pytest.mark.parametrize("scale", [0.0, -1.0, 1e-320, "nan", "inf"])
def test_scales_that_no_table_has(model, tmp_path, scale):
    altered = copy.deepcopy(model)
    altered["content"]["estimate"]["scale"]["$array"][0] = scale
    refused(altered, tmp_path)


@pytest.mark.parametrize(
    "part",
    [
        "[" * 100_000 + "]" * 100_000,
        '{"a":' * 100_000 + "1" + "}" * 100_000,
        '{"$tuple":[' * 300 + "1" + "]}" * 300,
        "1" * 5000,
        "1" * 4000,
        "-" + "9" * 400,
        "1e999",
        "NaN",
        "Infinity",
        '"\\ud800"',
        "[1, 2",
        "{",
    ],
)
def test_hostile_json(model, tmp_path, part):
    marked = copy.deepcopy(model)
    marked["content"]["result"]["objective"] = "MARK"
    refused(marked, tmp_path, text=json.dumps(marked).replace('"MARK"', part))


def test_sizes_are_checked_before_anything_is_read(model, tmp_path):
    path = tmp_path / "long.json"
    path.write_text(json.dumps(model) + " " * 10_000_000)
    with use(Limits(bytes=1_000_000)), pytest.raises(ModelFileError, match="MAX_BYTES"):
        load_model(path)
    with pytest.raises(ModelFileError):
        load_model("/dev/null")
