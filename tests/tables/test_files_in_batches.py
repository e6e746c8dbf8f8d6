"""Files read in batches give what the whole table gives, and say what is wrong."""

import os
import subprocess
import sys

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from skcoral import CORAL
from skcoral.exceptions import InvalidArgumentError, InvalidTableError
from skcoral.tables import open_table, transform_table

N = 400
FEATURES = ["a", "b", "c", "d"]


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, 4)) @ rng.normal(size=(4, 4)) + [0.0, 10.0, 1e6, -5.0]
    table = pd.DataFrame(X, columns=FEATURES)
    table["weight"] = rng.integers(0, 3, size=N).astype(float)
    table["label"] = [f"row {i}" for i in range(N)]
    return table


@pytest.fixture(params=["parquet", "csv"])
def table(request, frame, tmp_path):
    """The same table, stored in different ways."""
    path = tmp_path / f"table.{request.param}"
    if request.param == "csv":
        frame.to_csv(path, index=False)
    else:
        frame.to_parquet(path, row_group_size=256)
    return open_table(path, keep=False)


@pytest.mark.parametrize("size", [None, 1, 37])
def test_fit_from_file_is_fit_in_memory(table, frame, size):
    coral = CORAL(rho_min=0.3).fit(table.frames(FEATURES, size=size))
    whole = CORAL(rho_min=0.3).fit(frame[FEATURES])
    np.testing.assert_allclose(coral.T_, whole.T_, atol=1e-11)
    np.testing.assert_allclose(coral.mean_, whole.mean_, rtol=1e-13)
    np.testing.assert_allclose(coral.scale_, whole.scale_, rtol=1e-12)
    assert coral.n_samples_seen_ == N
    assert list(coral.feature_names_in_) == FEATURES


def test_batches_cover_the_table_in_order(table, frame):
    batches = list(table.frames(["d", "a"], size=37))
    assert max(len(batch) for batch in batches) <= 37
    pd.testing.assert_frame_equal(pd.concat(batches, ignore_index=True), frame[["d", "a"]])


def test_weights(table, frame):
    coral = CORAL().fit(table.frames(FEATURES, sample_weight="weight", size=100))
    whole = CORAL().fit(frame[FEATURES], sample_weight=frame["weight"])
    np.testing.assert_allclose(coral.T_, whole.T_, atol=1e-11)


@pytest.mark.parametrize("target", ["out.parquet", "out.csv"])
def test_transform_to_a_file(table, frame, tmp_path, target):
    coral = CORAL(output_scale="original").fit(table.frames(FEATURES))
    path = tmp_path / target
    assert transform_table(table, coral, path, keep=["label"]) == N
    if target.endswith("parquet"):
        written = pd.read_parquet(path)
    else:  # by way of text: pandas 2 does not read decimals to the last bit
        written = pd.read_csv(path, dtype=str).astype(dict.fromkeys(FEATURES, float))
    assert list(written.columns) == ["label", *FEATURES]
    assert list(written["label"]) == list(frame["label"])
    np.testing.assert_array_equal(written[FEATURES], coral.transform(frame[FEATURES]))
    assert not [name for name in os.listdir(tmp_path) if name.endswith(".part")]
    transform_table(table, coral, path, keep="label")


def test_a_failed_transform_leaves_the_old_file(frame, tmp_path):
    spoiled = frame[FEATURES].copy()
    spoiled.loc[300, "b"] = np.inf
    spoiled.to_parquet(tmp_path / "spoiled.parquet")
    target = tmp_path / "out.parquet"
    target.write_bytes(b"before")
    coral = CORAL().fit(frame[FEATURES])
    table = open_table(tmp_path / "spoiled.parquet")
    with pytest.raises(
        InvalidTableError, match=r"spoiled\.parquet: row 301, column 'b': 'inf' is not a finite"
    ):
        transform_table(table, coral, target)
    with pytest.raises(InvalidTableError, match="row 301, column 'b'"):
        CORAL().fit(table.frames(size=40))
    with pytest.raises(FileNotFoundError, match=r"nowhere/out\.csv"):
        transform_table(table, coral, tmp_path / "nowhere" / "out.csv")
    assert target.read_bytes() == b"before"
    assert not [name for name in os.listdir(tmp_path) if name.endswith(".part")]


@pytest.mark.skipif(sys.platform == "win32", reason="reads memory from the POSIX resource module")
def test_memory_does_not_depend_on_row_groups(tmp_path):
    code = """
import resource, sys
from skcoral import CORAL
from skcoral.tables import open_table
small, large = sys.argv[1:]
CORAL().fit(open_table(small, keep=False).frames())
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
CORAL().fit(open_table(large, keep=False).frames(size=5_000))
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""
    X = np.random.default_rng(0).normal(size=(200_000, 20))
    table = pa.table(list(X.T), names=[f"c{j}" for j in range(20)])
    for name, rows in (("small", 1000), ("large", 200_000)):
        pq.write_table(table[:rows], tmp_path / name, row_group_size=rows, use_dictionary=False)
    done = subprocess.run(
        [sys.executable, "-c", code, tmp_path / "small", tmp_path / "large"],
        capture_output=True,
        text=True,
        check=True,
    )
    grown_mib = int(done.stdout) / 1024
    assert grown_mib < 23  # the one row group of the file is 31 MiB


def test_a_table_is_one_file(frame, tmp_path):
    frame.to_csv(tmp_path / "table.csv", index=False)
    with pytest.raises(InvalidTableError, match="directory"):
        open_table(tmp_path)
    with pytest.raises(InvalidArgumentError, match="list"):
        open_table([tmp_path / "table.csv"])
    with pytest.raises(InvalidTableError, match=r"nowhere\.parquet"):
        open_table(tmp_path / "nowhere.parquet")


def test_text_is_an_error_about_the_table(table, tmp_path):
    with pytest.raises(InvalidTableError, match="column 'label': 'row 0' is not a finite number"):
        next(table.frames())
    rows = "\n".join(f"{i},{i * i % 17}" for i in range(200_000))
    (tmp_path / "late.csv").write_text(f"a,b\n{rows}\n1,oops\n")
    with pytest.raises(InvalidTableError, match="line 200002, column 'b': 'oops'"):
        CORAL().fit(open_table(tmp_path / "late.csv").frames())


def test_unknown_columns_and_endings(table, tmp_path):
    with pytest.raises(InvalidTableError, match=r"no column 'z'\."):
        next(table.frames(["a", "z"]))
    with pytest.raises(InvalidTableError, match="chosen more than once"):
        next(table.frames(["a", "a"]))
    coral = CORAL().fit(table.frames(FEATURES))
    with pytest.raises(InvalidArgumentError, match=r"\.csv, \.tsv, \.parquet or \.xlsx"):
        transform_table(table, coral, tmp_path / "out.dat")
    with pytest.raises(InvalidArgumentError, match="`a` cannot be both"):
        transform_table(table, coral, tmp_path / "out.csv", keep=["a"])


def test_outputs_can_be_read_by_whom_files_can(frame, tmp_path):
    frame[FEATURES].to_parquet(tmp_path / "table.parquet")
    table = open_table(tmp_path / "table.parquet")
    transform_table(table, CORAL().fit(table.frames()), tmp_path / "out.parquet")
    (tmp_path / "plain").touch()
    assert (tmp_path / "out.parquet").stat().st_mode == (tmp_path / "plain").stat().st_mode
