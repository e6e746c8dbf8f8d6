"""The command on failing machines and hostile input: messages, exit statuses, no leftovers."""

import io
import json
import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from skcoral.core.limits import Limits, use
from skcoral.exceptions import InvalidArgumentError, InvalidTableError, TooLargeError
from skcoral.tables import open_table
from skcoral.tables.writing import table_writer

CORAL = [sys.executable, "-m", "skcoral"]


@pytest.fixture
def coral(coral, main, monkeypatch):
    """Run the command in a folder: in this process, unless the process itself is to be prepared."""

    def run(*arguments, cwd, env=None, **process):
        if process:
            return coral(*arguments, cwd=cwd, env=env, **process)
        with monkeypatch.context() as patch:
            patch.chdir(cwd)
            for name, value in (env or {}).items():
                patch.setenv(name, value)
            return subprocess.CompletedProcess(arguments, *main(*arguments))

    return run


def in_words(done, status):
    assert done.returncode == status, done.stderr
    lines = done.stderr.strip().splitlines()
    assert len(lines) == 2, done.stderr
    assert lines[0].startswith("coral: ")
    assert "unexpected" not in done.stderr
    return done.stderr


@pytest.fixture
def folder(tmp_path):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(4000, 3)) + rng.normal(size=(4000, 1))
    lines = [f"{a!r},{b!r},{c!r},note {i}" for i, (a, b, c) in enumerate(X.tolist())]
    (tmp_path / "table.csv").write_text("a,b,c,note\n" + "\n".join(lines) + "\n")
    return tmp_path


def left(folder):
    return sorted(path.name for path in folder.iterdir() if path.name != "table.csv")


@pytest.mark.parametrize("ending", ["csv", "csv.gz", "xlsx", "parquet"])
def test_a_full_disk_is_reported_and_leaves_the_old_file(coral, folder, ending):
    target = folder / f"out.{ending}"
    target.write_text("old")
    done = coral(
        "fit", "table.csv", "-o", target.name, "--force", cwd=folder,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000)),
        env={"PYTHONDONTWRITEBYTECODE": "1"},  # compiled modules would be cut off as well
    )  # fmt: skip
    message = in_words(done, 2)
    assert "Traceback" not in message
    assert "large" in message or "space" in message
    assert target.read_text() == "old"
    assert left(folder) == [target.name]


def test_a_hang_up_is_ignored_where_it_was_ignored(folder):
    process = subprocess.Popen(
        ["nohup", *CORAL, "fit", "table.csv", "-o", "again.csv"], cwd=folder,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    deadline = time.monotonic() + 60
    while not list(folder.glob(".again.csv.*")) and time.monotonic() < deadline:
        time.sleep(0.005)
    process.send_signal(signal.SIGHUP)
    assert process.wait(timeout=60) == 0
    assert "again.csv" in left(folder)


def test_a_loop_of_links_is_no_output(coral, folder):
    (folder / "one").symlink_to("two")
    (folder / "two").symlink_to("one")
    (folder / "loop.csv").symlink_to("loop.csv")
    for name in ("loop.csv", "one"):
        message = in_words(coral("fit", "table.csv", "--model", name, "--force", cwd=folder), 2)
        assert "symbolic links" in message
    in_words(coral("inspect", "loop.csv", cwd=folder), 3)
    in_words(coral("fit", "table.csv", "-o", "x" * 300 + ".csv", cwd=folder), 2)
    in_words(coral("inspect", "x" * 300, cwd=folder), 3)


@pytest.mark.parametrize(
    "encoding", ["idna", "punycode", "base64", "rot13", "zip", "undefined", "no such", "a\0b"]
)
def test_what_is_no_encoding_is_refused(coral, folder, encoding):
    message = in_words(coral("inspect", "table.csv", "--encoding", encoding, cwd=folder), 3)
    assert "not an encoding" in message


def test_devices_and_pipes_without_end(coral, tmp_path):
    start = time.monotonic()
    assert "not a text table" in in_words(coral("inspect", "/dev/zero", cwd=tmp_path), 3)
    assert "not a text table" in in_words(coral("inspect", "/dev/urandom", cwd=tmp_path), 3)
    with subprocess.Popen(["yes", "1,2"], stdout=subprocess.PIPE) as source:
        few = {"CORAL_MAX_BYTES": "20e6"}
        done = coral("inspect", "-", cwd=tmp_path, stdin=source.stdout, env=few)
        source.stdout.close()
    message = in_words(done, 3)
    assert "19 MB" in message
    assert "MAX_BYTES" in message
    assert time.monotonic() - start < 60
    in_words(coral("inspect", "/proc/self/mem", cwd=tmp_path), 3)
    assert list(tmp_path.iterdir()) == []


def test_limits_are_set_in_the_environment(coral, folder):
    def inspected(name, value, status):
        done = coral("inspect", "table.csv", cwd=folder, env={f"CORAL_MAX_{name}": value})
        return in_words(done, status)

    assert "there are 4 columns, and the limit is 3" in inspected("COLUMNS", "3", 3)
    assert "reading has taken" in inspected("SECONDS", "0.000001", 3)
    message = inspected("COLUMNS", "many", 2)
    assert "CORAL_MAX_COLUMNS" in message
    assert "'many'" in message
    inspected("CELLS", "-1", 2)


def test_rows_that_are_needed_at_once_are_counted_before_they_are_held(coral, folder):
    fit, few = ("fit", "table.csv", "--rho-min", "0.9"), {"CORAL_MAX_CELLS": "11999"}
    reason = "4,000 rows of 3 columns are 12,000 numbers to hold in memory, and the limit is 11,999"
    for option in (("--covariance", "LedoitWolf"), ("--covariance", "OAS")):
        message = in_words(coral(*fit, *option, "-o", "out.csv", cwd=folder, env=few), 3)
        assert reason in message
        assert "read in parts" in message
    assert left(folder) == []
    # the same table without them is read in parts, and one number more is room enough
    done = [coral(*fit, "--json", cwd=folder, env=env) for env in (few, {})]
    parts, full = (json.loads(one.stdout) for one in done)
    assert parts["objective"] == pytest.approx(full["objective"], rel=1e-8)
    enough = {"CORAL_MAX_CELLS": "12000"}
    assert coral(*fit, *option, cwd=folder, env=enough).returncode == 0
    with use(Limits(cells=15_999)), pytest.raises(TooLargeError, match="there are 16,000 cells"):
        open_table(folder / "table.csv").to_frame()


def test_formulas_are_written_as_they_were_read(coral, folder):
    (folder / "f.csv").write_text('x,y,note\n1,2,"=1+1"\n2,1,-5\n3,5,@A1\n5,4,plain\n')
    assert coral("fit", "f.csv", "-o", "kept.csv", "--model", "m", cwd=folder).returncode == 0
    last = [line.rpartition(",")[2] for line in (folder / "kept.csv").read_text().splitlines()[1:]]
    assert last == ["=1+1", "-5", "@A1", "plain"]
    assert "=1+1" in coral("transform", "f.csv", "--model", "m", cwd=folder).stdout


@pytest.mark.slow  # tests/cli/test_wide.py has a smaller one, with a limit on the variables
@pytest.mark.skipif(sys.platform != "linux", reason="reads memory from /proc")
def test_wide_tables_are_answered_in_little_room_and_time(tmp_path):
    """Within less than two gigabytes, where p × p numbers alone would take 29."""
    rng = np.random.default_rng(0)
    rows, columns = 3, 60_000
    body = "\n".join(",".join(f"{v:.3f}" for v in row) for row in rng.normal(size=(rows, columns)))
    header = ",".join(f"c{k}" for k in range(columns))
    (tmp_path / "wide.csv").write_text(f"{header}\n{body}\n")
    script = (
        "import json, time; from pathlib import Path; from skcoral.cli import main\n"
        "code = main(['fit', 'wide.csv', '-o', 'out.csv'])\n"
        "peak = int(Path('/proc/self/status').read_text().split('VmHWM:')[1].split()[0]) / 1024\n"
        "print(json.dumps([code, peak, time.process_time()]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    code, peak, seconds = json.loads(done.stdout.splitlines()[-1])
    assert code in (0, 3, 4), done.stderr
    assert "unexpected" not in done.stderr
    assert peak < 2000, done.stderr
    assert seconds < 25, done.stderr
    assert [p.name for p in Path(tmp_path).iterdir() if p.name.startswith(".")] == []


@pytest.mark.parametrize("device", ["/dev/zero", "/dev/urandom", "/dev/null"])
def test_devices_are_no_certificates_or_models(coral, folder, device):
    done = coral("verify", "table.csv", device, cwd=folder)
    assert done.returncode in (2, 3, 4)
    assert len(in_words(done, done.returncode)) < 1000
    in_words(coral("transform", "table.csv", "--model", device, cwd=folder), 2)


@pytest.mark.parametrize("source", [3, None, {"a"}, io.StringIO("a,b\n1,2\n")])
def test_what_is_no_table_at_all(source):
    with pytest.raises(InvalidArgumentError, match="A table is a path"):
        open_table(source)


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview, io.BytesIO])
def test_bytes_of_any_kind_are_tables(kind):
    assert open_table(kind(b"a,b\n1,2\n3,4\n"), name="t.csv").names == ("a", "b")


@pytest.mark.parametrize("ending", ["csv", "csv.gz", "parquet"])
def test_half_a_letter_is_refused(ending):
    writer = table_writer(io.BytesIO(), ["a", "b"], path=f"t.{ending}")
    with pytest.raises(InvalidTableError, match="half of a letter"):
        writer.write([np.ones(1), ["\ud800"]])


@pytest.mark.slow
def test_reading_is_linear_in_columns():
    from skcoral.tables.columns import profile
    from skcoral.tables.variables import select_variables

    def seconds(columns):
        header = ",".join(f"c{k}" for k in range(columns))
        data = f"{header}\n{'1.5,' * (columns - 1)}2\n{'2.5,' * (columns - 1)}1\n".encode()
        best = np.inf
        for _ in range(3):
            start = time.process_time()
            table = open_table(data, name="t.csv")
            select_variables(table, profile(table))
            best = min(best, time.process_time() - start)
        return best

    # Twice the columns, about twice the time: four times where it is quadratic.
    assert seconds(80_000) < 3 * seconds(40_000)
