"""Small files that expand to very large ones: refused or read, in bounded memory and time."""

import json
import subprocess
import sys
from pathlib import Path

import bombs
import pytest

#: What one file may take beside the libraries: the limit of a row of text, several times over.
ROOM_MB = 700
PATIENCE = 60.0  # seconds of work
FAMILIES = {"xlsx": bombs.EXCEL, "csv": bombs.TEXT, "parquet": bombs.PARQUET}
#: Seconds each, and on the way of another file of the family.
LONG = {
    "rows-without-end",
    "pieces-of-one-text",
    "texts-without-end",
    "letters-bz2",
    "letters-xz",
    "understated-list",
    "understated-list-plain",
}
WORKER = Path(__file__).with_name("worker.py")

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads memory from /proc")


@pytest.fixture(scope="module")
def worker(tmp_path_factory):
    """A process with little memory left that reads the files it is told of."""
    good = tmp_path_factory.mktemp("good") / "good.xlsx"
    good.write_bytes(bombs.workbook(bombs.table()))
    command = [sys.executable, str(WORKER), str(ROOM_MB), str(good)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(command, text=True, **pipes) as process:
        yield process
        process.stdin.close()
        assert process.wait(timeout=60) == 0


def refused_or_read(files, ending, worker, folder):
    for bomb, make in files.items():
        path = folder / f"{bomb}.{ending}"
        path.write_bytes(make())
        print(path, file=worker.stdin, flush=True)
    told = [json.loads(worker.stdout.readline()) for _ in range(2 * len(files))]
    for name, reader, code, message, peak, seconds in told:
        where = f"{name} by {reader}: {message}"
        assert code in (0, 3), where
        assert "does not fit in memory" not in message, where
        assert "unexpected" not in message, where
        # Refused in two lines: what is wrong with which file, and what to do.
        assert code == 0 or (name in message and len(message.strip().splitlines()) == 2), where
        assert peak < ROOM_MB, where
        assert seconds < PATIENCE, where


@pytest.mark.parametrize("ending", FAMILIES)
def test_small_files_that_expand_are_refused_or_read(ending, worker, tmp_path):
    quick = {name: make for name, make in FAMILIES[ending].items() if name not in LONG}
    assert len(quick) >= 11
    refused_or_read(quick, ending, worker, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("ending", FAMILIES)
def test_files_that_take_long_to_make_or_to_read(ending, worker, tmp_path):
    others = {name: make for name, make in FAMILIES[ending].items() if name in LONG}
    assert others
    refused_or_read(others, ending, worker, tmp_path)
