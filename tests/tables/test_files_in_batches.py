"""Files read in batches give what the whole table gives."""

import subprocess
import sys
import weakref

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from skcoral.exceptions import InvalidTableError
from skcoral.tables import delimited, open_table


@pytest.mark.skipif(sys.platform == "win32", reason="reads memory from the POSIX resource module")
def test_memory_does_not_depend_on_row_groups(tmp_path):
    code = """
import resource, sys
from skcoral.tables import table
from skcoral.tables.reading import open_table
table.KEPT_BYTES = 0
small, large = sys.argv[1:]
for batch in open_table(small).batches():
    pass
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
for batch in open_table(large).batches(5_000):
    pass
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


def test_a_table_is_one_file(tmp_path):
    with pytest.raises(InvalidTableError, match="directory"):
        open_table(tmp_path)
    with pytest.raises(InvalidTableError, match=r"nowhere\.parquet"):
        open_table(tmp_path / "nowhere.parquet")


@pytest.mark.parametrize("reads_all", [False, True])
def test_a_text_that_was_read_is_released_at_once(monkeypatch, reads_all):
    """A thread that released it later, while Python ends, would abort the process."""
    made = []
    read = delimited.arrow.open_csv

    def watched(lent, *how):
        made.append(weakref.ref(lent))
        return read(lent, *how)

    monkeypatch.setattr(delimited.arrow, "open_csv", watched)
    for _ in range(100):
        batches = open_table(b"a,b\n" + b"1,2\n" * 400).batches(400 if reads_all else 10)
        assert next(batches)
        if reads_all:
            assert next(batches, None) is None
        del batches
        assert made.pop()() is None
