"""Files read in batches give what the whole table gives, and say what is wrong with them."""

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
from skcoral.tables import from_csv, from_parquet

N = 400


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, 4)) @ rng.normal(size=(4, 4)) + [0.0, 10.0, 1e6, -5.0]
    table = pd.DataFrame(X, columns=["a", "b", "c", "d"])
    table["weight"] = rng.integers(0, 3, size=N).astype(float)
    table["label"] = [f"row {i}" for i in range(N)]
    return table


FEATURES = ["a", "b", "c", "d"]


@pytest.fixture(params=["parquet", "csv", "folder"])
def opened(request, frame, tmp_path):
    """Open the same table, stored in different ways."""
    if request.param == "csv":
        frame.to_csv(tmp_path / "table.csv", index=False)
        return lambda **kw: from_csv(tmp_path / "table.csv", **kw)
    if request.param == "folder":
        folder = tmp_path / "parts"
        folder.mkdir()
        for i, start in enumerate(range(0, N, 150)):
            frame[start : start + 150].to_parquet(folder / f"part-{i}.parquet", row_group_size=70)
        return lambda **kw: from_parquet(folder, **kw)
    frame.to_parquet(tmp_path / "table.parquet", row_group_size=256)
    return lambda **kw: from_parquet(tmp_path / "table.parquet", **kw)


@pytest.mark.parametrize("batch_rows", [None, 1, 37])
def test_fit_from_file_is_fit_in_memory(opened, frame, batch_rows):
    table = opened(columns=FEATURES, batch_rows=batch_rows)
    coral = table.fit(CORAL(rho_min=0.3))
    whole = CORAL(rho_min=0.3).fit(frame[FEATURES])
    np.testing.assert_allclose(coral.T_, whole.T_, atol=1e-11)
    np.testing.assert_allclose(coral.mean_, whole.mean_, rtol=1e-13)
    np.testing.assert_allclose(coral.scale_, whole.scale_, rtol=1e-12)
    assert coral.n_samples_seen_ == N
    assert list(coral.feature_names_in_) == FEATURES


def test_batches_cover_the_table_in_order(opened, frame):
    batches = list(opened(columns=["d", "a"], batch_rows=37))
    assert max(len(batch) for batch in batches) <= 37
    pd.testing.assert_frame_equal(pd.concat(batches, ignore_index=True), frame[["d", "a"]])


def test_weight_column(opened, frame):
    coral = opened(columns=FEATURES, batch_rows=100).fit(CORAL(), sample_weight="weight")
    whole = CORAL().fit(frame[FEATURES], sample_weight=frame["weight"])
    np.testing.assert_allclose(coral.T_, whole.T_, atol=1e-11)
    assert coral.moments_.weight == frame["weight"].sum()


@pytest.mark.parametrize("target", ["out.parquet", "out.csv"])
def test_transform_to_a_file(opened, frame, tmp_path, target):
    table = opened(columns=FEATURES, batch_rows=64)
    coral = table.fit(CORAL(output_scale="original"))
    assert table.transform(coral, tmp_path / target, keep=["label"]) == N
    path = tmp_path / target
    if target.endswith("parquet"):
        written = pd.read_parquet(path)
    else:
        # By way of text: pandas 2 does not read decimals to the last bit.
        written = pd.read_csv(path, dtype=str)
        written = written.astype(dict.fromkeys(FEATURES, float))
    assert list(written.columns) == ["label", *FEATURES]
    assert list(written["label"]) == list(frame["label"])
    np.testing.assert_array_equal(written[FEATURES], coral.transform(frame[FEATURES]))
    assert not [name for name in os.listdir(tmp_path) if name.endswith(".part")]


def test_a_failed_transform_leaves_the_old_file(frame, tmp_path):
    spoiled = frame[FEATURES].copy()
    spoiled.loc[300, "b"] = np.nan
    spoiled.to_parquet(tmp_path / "spoiled.parquet")
    target = tmp_path / "out.parquet"
    target.write_bytes(b"before")
    coral = CORAL().fit(frame[FEATURES])
    table = from_parquet(tmp_path / "spoiled.parquet", batch_rows=40)
    with pytest.raises(InvalidTableError, match=r"spoiled\.parquet: row 301 has no value in `b`"):
        table.transform(coral, target)
    with pytest.raises(InvalidTableError, match=r"row 280 .*NaN.*`b`, first in row 20"):
        table.fit(CORAL())
    assert target.read_bytes() == b"before"
    assert not [name for name in os.listdir(tmp_path) if name.endswith(".part")]


@pytest.mark.skipif(sys.platform == "win32", reason="reads memory from the POSIX resource module")
def test_memory_does_not_depend_on_row_groups(tmp_path):
    code = """
import resource, sys
from skcoral import CORAL
from skcoral.tables import from_parquet
small, large = sys.argv[1:]
from_parquet(small).fit(CORAL())
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
from_parquet(large, batch_rows=5_000).fit(CORAL())
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


def test_a_part_without_a_column(frame, tmp_path):
    frame[FEATURES].to_parquet(tmp_path / "1.parquet")
    frame[["a", "b", "c"]].to_parquet(tmp_path / "2.parquet")
    with pytest.raises(InvalidTableError, match=r"2\.parquet: no column `d`"):
        from_parquet(tmp_path).fit(CORAL())


def test_whole_numbers_first_and_fractions_later(tmp_path):
    body = [f"{i},{i % 7}" for i in range(200_000)] + ["0.5,1.25"]
    (tmp_path / "long.csv").write_text("\n".join(["a,b", *body]) + "\n")
    coral = from_csv(tmp_path / "long.csv").fit(CORAL())
    assert coral.n_samples_seen_ == 200_001


def test_text_columns_are_named(opened):
    with pytest.raises(InvalidTableError, match="`label` hold no numbers"):
        opened()


def test_text_further_down_is_an_error_about_the_table(tmp_path):
    rows = "\n".join(f"{i},{i * i % 17}" for i in range(200_000))
    (tmp_path / "late.csv").write_text(f"a,b\n{rows}\n1,oops\n")
    with pytest.raises(InvalidTableError, match="oops"):
        from_csv(tmp_path / "late.csv").fit(CORAL())


def test_files_that_are_not_what_they_should_be(tmp_path):
    (tmp_path / "t.parquet").write_text("a,b\n1,2\n")
    with pytest.raises(InvalidTableError, match=r"t\.parquet.*not a file of type Parquet"):
        from_parquet(tmp_path / "t.parquet")
    (tmp_path / "t.csv").write_text("")
    with pytest.raises(InvalidTableError, match=r"t\.csv"):
        from_csv(tmp_path / "t.csv")
    with pytest.raises(FileNotFoundError):
        from_parquet(tmp_path / "nowhere.parquet")


def test_unknown_columns_and_endings(opened, tmp_path):
    with pytest.raises(InvalidTableError, match=r"no column 'z'\."):
        opened(columns=["a", "z"])
    table = opened(columns=FEATURES)
    with pytest.raises(InvalidTableError, match="no column 'nothing'"):
        table.fit(CORAL(), sample_weight="nothing")
    coral = table.fit(CORAL())
    with pytest.raises(InvalidArgumentError, match=r"\.csv, \.tsv, \.parquet or \.xlsx"):
        table.transform(coral, tmp_path / "out.dat")
    with pytest.raises(InvalidArgumentError, match="`a` cannot be both"):
        table.transform(coral, tmp_path / "out.csv", keep=["a"])
    with pytest.raises(InvalidArgumentError, match="batch_rows"):
        opened(columns=FEATURES, batch_rows=0)


def test_settings_that_need_all_rows_are_refused(opened):
    with pytest.raises(InvalidArgumentError, match="all rows are needed at once"):
        opened(columns=FEATURES).fit(CORAL(covariance="LedoitWolf"))


def test_a_column_chosen_twice(frame, tmp_path):
    frame.to_parquet(tmp_path / "table.parquet")
    name = frame.columns[0]
    with pytest.raises(InvalidTableError, match="chosen more than once"):
        from_parquet(tmp_path / "table.parquet", columns=[name, name])


def test_an_open_table_is_an_iterable_of_batches(opened, frame):
    coral = CORAL().fit(opened(columns=FEATURES, batch_rows=100))
    np.testing.assert_allclose(coral.T_, CORAL().fit(frame[FEATURES]).T_, atol=1e-11)


def test_outputs_can_be_read_by_whom_files_can(frame, tmp_path):
    frame[FEATURES].to_parquet(tmp_path / "table.parquet")
    table = from_parquet(tmp_path / "table.parquet")
    table.transform(table.fit(CORAL()), tmp_path / "out.parquet")
    (tmp_path / "plain").touch()
    assert (tmp_path / "out.parquet").stat().st_mode == (tmp_path / "plain").stat().st_mode
    with pytest.raises(FileNotFoundError, match=r"nowhere/out\.csv"):
        table.transform(table.fit(CORAL()), tmp_path / "nowhere" / "out.csv")


def test_one_name_is_a_list_of_one(opened, frame, tmp_path):
    assert opened(columns="b").columns == ("b",)
    table = opened(columns=FEATURES)
    table.transform(table.fit(CORAL()), tmp_path / "out.parquet", keep="label")
    assert list(pd.read_parquet(tmp_path / "out.parquet")["label"]) == list(frame["label"])


def test_truth_in_text(tmp_path):
    (tmp_path / "t.csv").write_text("a,b\ntrue,1\nfalse,2\ntrue,5\nfalse,1\n")
    coral = from_csv(tmp_path / "t.csv").fit(CORAL())
    np.testing.assert_allclose(coral.mean_, [0.5, 2.25])


def test_text_that_is_not_utf_8(tmp_path):
    (tmp_path / "t.csv").write_bytes("größe,b\n1,2\n".encode("latin-1"))
    assert from_csv(tmp_path / "t.csv").columns == ("größe", "b")
    with pytest.raises(InvalidArgumentError, match="one character"):
        from_csv(tmp_path / "t.csv", delimiter=";;")


def test_a_folder_is_read_in_the_order_of_its_names(frame, tmp_path):
    for name, rows in (("b", frame[200:]), ("a", frame[:200])):
        rows.to_csv(tmp_path / f"{name}.csv", index=False, float_format="%.17g")
    (tmp_path / "_notes.csv").write_text("other\n1\n")
    batches = list(from_csv(tmp_path, columns=FEATURES, batch_rows=150))
    np.testing.assert_array_equal(np.concatenate(batches), frame[FEATURES])
