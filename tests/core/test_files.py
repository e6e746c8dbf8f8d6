"""Files that appear whole or not at all."""

import os
import signal
import subprocess
import sys

import pytest

from skcoral.core.files import Outputs
from skcoral.exceptions import InvalidArgumentError


def left_in(folder):
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, SystemExit])
def test_nothing_stays_behind_after_a_failure(tmp_path, error):
    (tmp_path / "a").write_text("before")

    def write():
        with Outputs(force=True) as outputs:
            outputs.write_text(tmp_path / "a", "after")
            with outputs.open(tmp_path / "b") as stream:
                stream.write(b"half")
                raise error

    with pytest.raises(error):
        write()
    assert left_in(tmp_path) == ["a"]
    assert (tmp_path / "a").read_text() == "before"


def test_existing_files_are_kept_unless_forced(tmp_path):
    target = tmp_path / "a"
    target.write_text("before")
    target.chmod(0o640)
    os.link(target, tmp_path / "opened before")
    with pytest.raises(FileExistsError), Outputs() as outputs:
        outputs.reserve(target)
    with Outputs(force=True) as outputs:
        outputs.write_text(target, "after")
        outputs.commit()
    assert target.read_text() == "after"
    assert (tmp_path / "opened before").read_text() == "before"  # replaced, not written over
    assert target.stat().st_mode & 0o777 == 0o640


def test_a_file_that_appears_meanwhile_is_kept(tmp_path):
    target = tmp_path / "a"
    with Outputs() as outputs:
        outputs.write_text(target, "ours")
        target.write_text("theirs")
        with pytest.raises(FileExistsError):
            outputs.commit()
    assert target.read_text() == "theirs"
    assert left_in(tmp_path) == ["a"]


def test_new_files_have_the_usual_permissions(tmp_path):
    mask = os.umask(0o027)
    try:
        with Outputs() as outputs:
            outputs.write_text(tmp_path / "a", "A")
            outputs.commit()
    finally:
        os.umask(mask)
    assert (tmp_path / "a").stat().st_mode & 0o777 == 0o640


def test_one_name_for_two_outputs_and_a_folder(tmp_path):
    with Outputs() as outputs:
        outputs.reserve(tmp_path / "a")
        with pytest.raises(InvalidArgumentError, match="two outputs have the same name"):
            outputs.reserve(tmp_path / "b" / ".." / "a")
        with pytest.raises(IsADirectoryError):
            outputs.reserve(tmp_path)
        with pytest.raises(FileNotFoundError) as caught:
            outputs.reserve(tmp_path / "no" / "a")
        assert caught.value.filename == str(tmp_path / "no" / "a")


def test_a_link_stays_a_link(tmp_path):
    real, link = tmp_path / "folder" / "real.csv", tmp_path / "link.csv"
    real.parent.mkdir()
    real.write_text("old")
    link.symlink_to(real)
    with Outputs(force=True) as outputs:
        outputs.write_text(link, "new")
        outputs.commit()
    assert link.is_symlink()
    assert real.read_text() == "new"
    assert sorted(path.name for path in tmp_path.rglob("*.*")) == ["link.csv", "real.csv"]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_devices_and_pipes_are_not_replaced(tmp_path):
    pipe = tmp_path / "pipe.csv"
    os.mkfifo(pipe)
    with Outputs(force=True) as outputs, pytest.raises(OSError, match="not a regular file"):
        outputs.reserve(pipe)
    assert pipe.is_fifo()


def test_long_names_in_other_scripts(tmp_path):
    target = tmp_path / ("漢" * 80 + ".csv")
    with Outputs() as outputs:
        outputs.write_text(target, "whole")
        outputs.commit()
    assert target.read_text() == "whole"


def content(folder):
    return {path.name: path.read_text() for path in folder.iterdir()}


NEW = {"a": "new a", "b": "new b", "c": "new c"}


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_between_two_renames_waits(tmp_path, number):
    """The process is told to stop while the second of three files is put in place."""
    script = f"""
import os, signal, sys
from pathlib import Path
from skcoral.core.files import Outputs
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal({int(number)}, lambda *_: sys.exit(7))
replace, calls = Path.replace, []
def told(self, target):
    calls.append(target)
    if len(calls) == 2:
        os.kill(os.getpid(), {int(number)})
    return replace(self, target)
Path.replace = told
with Outputs(force=True) as outputs:
    for name in "abc":
        outputs.write_text(Path(name), "new " + name)
    outputs.commit()
"""
    for name in "ab":
        (tmp_path / name).write_text(f"old {name}")
    done = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, timeout=60, check=False)
    assert done.returncode == 7
    assert content(tmp_path) == NEW
