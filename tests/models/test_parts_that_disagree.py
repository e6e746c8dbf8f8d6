"""A model file whose parts disagree is refused when it is read, even with a fresh checksum."""

import json

import numpy as np
import pytest

from skcoral import CORAL
from skcoral.exceptions import ModelFileError
from skcoral.models import load_model, save_model
from skcoral.models.files import _checksum


@pytest.mark.parametrize("keep", [0, 1])
def test_parts_about_other_columns(tmp_path, keep):
    X = np.random.default_rng(0).normal(size=(30, 3)) @ np.triu(np.ones((3, 3)))
    file = tmp_path / "m.json"
    save_model(CORAL(0.9).fit(X), file)
    envelope = json.loads(file.read_text("utf-8"))
    measured = envelope["content"]["result"]["fields"]["on_rows"]["fields"]
    measured["names"]["$tuple"] = measured["names"]["$tuple"][:keep]
    envelope["checksum"] = _checksum(json.dumps(envelope))
    file.write_text(json.dumps(envelope), "utf-8")
    with pytest.raises(ModelFileError, match="about other outputs"):
        load_model(file)
