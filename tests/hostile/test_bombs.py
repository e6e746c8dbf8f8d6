"""Small files that expand to very large ones: refused or read, in bounded memory and time."""

import json
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import bombs
import pytest

#: What one file may take beside the libraries: the limit of a row of text, several times over.
ROOM_MB = 700
PATIENCE = 60.0  # seconds of work
FAMILIES = {"xlsx": bombs.EXCEL, "csv": bombs.TEXT, "parquet": bombs.PARQUET}
WORKER = Path(__file__).with_name("worker.py")

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads memory from /proc")


@contextmanager
def reader(folder, size):
    """A process with little memory left, and limits of that size, that reads the files named."""
    good = folder / "good.xlsx"
    good.write_bytes(bombs.workbook(bombs.table()))
    command = [sys.executable, str(WORKER), str(size), str(ROOM_MB), str(good)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(command, text=True, **pipes) as process:
        yield process
        process.stdin.close()
        assert process.wait(timeout=60) == 0


@pytest.mark.parametrize(
    ("size", "endings"),
    [(0.1, list(FAMILIES)), *(pytest.param(1.0, [k], marks=pytest.mark.slow) for k in FAMILIES)],
)
def test_small_files_that_expand_are_refused_or_read(size, endings, tmp_path):
    files = {f"{name}.{k}": make for k in endings for name, make in FAMILIES[k].items()}
    with reader(tmp_path, size) as process:
        for name, make in files.items():
            (tmp_path / name).write_bytes(make(int(size * 10**6)))
            print(tmp_path / name, file=process.stdin, flush=True)
        answers = [json.loads(process.stdout.readline()) for _ in range(2 * len(files))]
    for name, way, code, message, peak, seconds in answers:
        where = f"{name} by {way}: {message}"
        assert code in (0, 3), where
        assert "does not fit in memory" not in message, where
        assert "unexpected" not in message, where
        # Refused in two lines: what is wrong with which file, and what to do.
        assert code == 0 or (name in message and len(message.strip().splitlines()) == 2), where
        assert peak < ROOM_MB * size, where
        assert seconds < PATIENCE, where
