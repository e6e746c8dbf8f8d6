"""Malicious model files with valid checksums are refused with a message."""

import copy
import json
import math

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
        found = checksum(json.loads(text)["content"])
    except (RecursionError, ValueError, KeyError):
        found = ""
    path.write_text(text.replace(envelope["checksum"], found))
    return load_model(path)


def refused(envelope, tmp_path, **options):
    with pytest.raises(ModelFileError) as error:
        load(envelope, tmp_path, **options)
    assert str(error.value).startswith(str(tmp_path))
    assert len(str(error.value)) < 1000
    return str(error.value)


def fields(model, name):
    return model["content"][name]


def result(model, **changed):
    """Change fields of the result; a name with an equals sign gives zeros of that field's shape."""
    place = fields(model, "result")
    place.update(
        {
            k: zeros(place[v[1:]]) if v in ("=T", "=rho_min", "=correlation") else v
            for k, v in changed.items()
        }
    )


def zeros(array):
    return {"$array": np.zeros(np.shape(array["$array"])).tolist()}


ALTERED = {
    "T = 0": lambda m: result(m, T="=T"),
    "status": lambda m: fields(m, "result").update(status="junk"),
    "objective text": lambda m: fields(m, "result").update(objective="abc"),
    "objective": lambda m: fields(m, "result").update(objective=7.0),
    "objective infinite": lambda m: fields(m, "result").update(objective={"$float": "inf"}),
    "lower bound": lambda m: fields(m, "result").update(lower_bound=99.0),
    "lower bound nan": lambda m: fields(m, "result").update(lower_bound={"$float": "nan"}),
    "criterion": lambda m: fields(m, "result").update(criterion="banana"),
    "names": lambda m: fields(m, "result").update(names="abc"),
    "n_iter": lambda m: fields(m, "result").update(n_iter=-1),
    "n_iter true": lambda m: fields(m, "result").update(n_iter=True),
    "fidelity": lambda m: result(m, fidelity="=rho_min"),
    "fidelity text": lambda m: fields(m, "result").update(fidelity=["a"] * 4),
    "prices": lambda m: result(m, prices={"$array": [1.0]}),
    "certificate": lambda m: fields(m, "result").update(certificate=None),
    "goal": lambda m: fields(m, "result").update(goal=3),
    "correlation": lambda m: result(m, correlation="=correlation"),
    "missing field": lambda m: fields(m, "result").pop("T"),
    "unknown field": lambda m: fields(m, "result").update(extra=1),
    "threshold": lambda m: fields(m, "threshold").update(lower=2.0, upper=1.0),
    "threshold text": lambda m: fields(m, "threshold").update(upper="x"),
    "other record": lambda m: m["content"].update(result=m["content"]["threshold"]),
    "unknown record": lambda m: m["content"]["result"].update({"$record": "Popen"}),
    "R": lambda m: fields(m, "estimate").update(R=zeros(fields(m, "estimate")["R"])),
    "estimate": lambda m: m["content"].update(estimate=[1, 2]),
    "settings": lambda m: m["content"].update(settings=3),
    "setting unknown": lambda m: m["content"]["settings"].update(banana=3),
    "setting wrong": lambda m: m["content"]["settings"].update(rho_min="x", criterion="banana"),
    "no moments": lambda m: m["content"].pop("moments"),
    "large shape": lambda m: fields(m, "result")["T"].update(shape=[10**6, 10**6]),
    "negative shape": lambda m: fields(m, "result")["T"].update(shape=[-1, -1]),
    "large type": lambda m: fields(m, "result")["T"].update(dtype="<U1000000000"),
    "object type": lambda m: fields(m, "result")["T"].update(dtype="|O"),
    "void type": lambda m: fields(m, "result")["T"].update(dtype="V1000000000"),
    "type of no kind": lambda m: fields(m, "result")["T"].update(dtype="f8,f8"),
    "version": lambda m: m.update(version=10**30),
    "unhashable key": lambda m: fields(m, "result").update(notes={"$map": [[[1], 2]]}),
    "map of one": lambda m: fields(m, "result").update(notes={"$map": [[1]]}),
}  # fmt: skip


@pytest.mark.parametrize("alter", ALTERED.values(), ids=ALTERED)
def test_every_field_is_checked(model, tmp_path, alter):
    assert load(model, tmp_path).result_.status == model["content"]["result"]["status"]
    altered = copy.deepcopy(model)
    alter(altered)
    refused(altered, tmp_path)


@pytest.mark.parametrize("scale", [0.0, -1.0, 1e-320, {"$float": "nan"}, {"$float": "inf"}])
def test_scales_that_no_table_has(model, tmp_path, scale):
    altered = copy.deepcopy(model)
    scales = fields(altered, "estimate")["scale"]["$array"]
    value = scale if isinstance(scale, float) else float(scale["$float"])
    scales[0] = value if math.isfinite(value) else repr(value)
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
