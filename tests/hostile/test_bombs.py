"""Small files that stand for very much: refused in words or read, in bounded memory and time."""

import json
import subprocess
import sys
from pathlib import Path

import bombs
import pytest

#: What one file may take beside the libraries: the limit of a row of text, several times over.
ROOM_MB = 700
PATIENCE = 60.0
FAMILIES = {"xlsx": bombs.EXCEL, "csv": bombs.TEXT, "parquet": bombs.PARQUET}
WORKER = Path(__file__).with_name("worker.py")

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads memory from /proc")


@pytest.fixture(scope="module")
def told(tmp_path_factory):
    """What came of every bomb, by the command and by the app, in one process with little memory."""
    folder = tmp_path_factory.mktemp("bombs")
    paths = [folder / "good.xlsx"]
    paths[0].write_bytes(bombs.workbook(bombs.table()))
    for ending, family in FAMILIES.items():
        for name, make in family.items():
            paths.append(folder / f"{name}.{ending}")
            paths[-1].write_bytes(make())
    run = subprocess.run(
        [sys.executable, str(WORKER), str(ROOM_MB), *map(str, paths)],
        capture_output=True,
        text=True,
        timeout=1200,
    )
    assert run.returncode == 0, run.stderr[-2000:]
    return [json.loads(line) for line in run.stdout.splitlines()]


@pytest.mark.parametrize("ending", FAMILIES)
def test_bombs_are_defused(ending, told):
    own = [one for one in told if one[0].endswith(f".{ending}")]
    assert len(own) == 2 * len(FAMILIES[ending]) >= 24
    for name, reader, code, message, peak, seconds in own:
        where = f"{name} by {reader}: {message}"
        assert code in (0, 3), where
        assert "does not fit in memory" not in message, where
        assert "unexpected" not in message, where
        # Refused in two lines: what is wrong with which file, and what to do.
        assert code == 0 or (name in message and len(message.strip().splitlines()) == 2), where
        assert peak < ROOM_MB, where
        assert seconds < PATIENCE, where
