"""The process of the command: pipes, signals, terminals, what is imported."""

from __future__ import annotations

import json
import os
import pty
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from skcoral.cli import console

CORAL = str(Path(sys.executable).with_name("coral"))


@pytest.fixture(scope="module")
def long_csv(tmp_path_factory):
    """A table that takes a few seconds to read, fit and write."""
    path = tmp_path_factory.mktemp("long") / "long.csv"
    rng = np.random.default_rng(0)
    block = rng.normal(size=(2000, 5)) + rng.normal(size=(2000, 1))
    lines = [",".join(map(repr, row)) for row in block.tolist()]
    path.write_text("a,b,c,d,e\n" + ("\n".join(lines) + "\n") * 25)
    return path


def test_a_reader_that_leaves_early(long_csv):
    done = subprocess.run(
        ["bash", "-c", f"set -o pipefail; '{CORAL}' fit '{long_csv}' -o - 2>err | head -n 2"],
        capture_output=True, text=True, check=False, timeout=120, cwd=long_csv.parent,
    )  # fmt: skip
    assert done.stdout.splitlines()[0] == "a,b,c,d,e"
    assert len(done.stdout.splitlines()) == 2
    assert done.returncode == 141
    assert (long_csv.parent / "err").read_text() == ""


@pytest.mark.parametrize("arguments", [["inspect", "{}"], ["inspect", "{}", "--json"]])
def test_a_reader_that_was_never_there(coral, wine_csv, arguments):
    reader, writer = os.pipe()
    os.close(reader)
    done = coral(*(argument.format(wine_csv) for argument in arguments), stdout=writer)
    os.close(writer)
    assert (done.returncode, done.stderr) == (141, "")


@pytest.mark.parametrize(
    ("number", "status"),
    [
        (signal.SIGINT, 130),
        (signal.SIGTERM, 143),
        pytest.param(signal.SIGHUP, 129, marks=pytest.mark.slow),
    ],
)
def test_interrupted_work_leaves_no_file(long_csv, tmp_path, number, status):
    process = subprocess.Popen(
        [CORAL, "fit", str(long_csv), "-o", "out.csv", "--model", "model.json"],
        cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        # as in a shell: a runner in the background hands down an interrupt that is ignored
        preexec_fn=lambda: signal.signal(number, signal.SIG_DFL),
    )  # fmt: skip
    deadline = time.monotonic() + 60
    while not list(tmp_path.glob(".out.csv.*")) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert process.poll() is None, "the work was over before it could be interrupted"
    process.send_signal(number)
    _, err = process.communicate(timeout=60)
    assert process.returncode == status
    assert "Traceback" not in err
    assert list(tmp_path.iterdir()) == []


def test_standard_input_and_output(coral, wine, wine_csv):
    done = coral("fit", "-", "-o", "-", input=wine_csv.read_text())
    assert done.returncode == 0
    rows = np.genfromtxt(done.stdout.splitlines(), delimiter=",", names=True)
    assert rows.dtype.names[0] == "alcohol"
    G = np.corrcoef(np.array(rows.tolist()).T)
    assert np.abs(G - np.eye(13)).max() < 1e-9
    assert "0.8262" in done.stderr


def through_terminal(*arguments, columns, env=(), command=(CORAL,)):
    """Output of the command on a terminal of a given width."""
    leader, follower = pty.openpty()
    environment = {**os.environ, "COLUMNS": str(columns), "TERM": "xterm-256color", **dict(env)}
    process = subprocess.Popen(
        [*command, *map(str, arguments)], stdout=follower, stderr=follower,
        stdin=subprocess.DEVNULL,
        env=environment,
    )  # fmt: skip
    os.close(follower)
    out = b""
    while True:
        ready, _, _ = select.select([leader], [], [], 60)
        try:
            data = os.read(leader, 65536) if ready else b""
        except OSError:
            break
        if not data:
            break
        out += data
    process.wait(timeout=60)
    os.close(leader)
    return process.returncode, out.decode().replace("\r\n", "\n")


def test_colours_on_a_terminal_and_none_with_no_color(wine_csv):
    status, coloured = through_terminal("inspect", wine_csv, columns=80)
    assert status == 0
    assert "\x1b[1;32m" in coloured
    status, plain = through_terminal("inspect", wine_csv, columns=80, env={"NO_COLOR": "1"})
    assert status == 0
    assert "\x1b[1;32m" not in plain
    assert "32m" not in plain


@pytest.mark.parametrize("columns", [40, 80])
def test_one_screen_at_any_width(main, wine_csv, columns, monkeypatch):
    monkeypatch.setenv("COLUMNS", str(columns))
    status, out, _ = main("inspect", wine_csv)
    assert status == 0
    *_, last = lines = out.splitlines()
    commands = [line for line in lines if line.startswith("  coral fit ")]  # never wrapped: to copy
    assert max(len(line) for line in lines if line not in commands) <= columns
    assert len(lines) - len(commands) <= (36 if columns == 80 else 45)
    assert last in commands
    assert "\x1b" not in out
    assert "0.8262" in out


def test_an_old_terminal_gets_question_marks_instead_of_a_crash(coral, wine_csv):
    done = coral("inspect", wine_csv, env={"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"})
    assert done.returncode == 0
    assert "0.826230862 and no higher (??, proved" in " ".join(done.stdout.split())


def test_a_bar_appears_when_patience_is_over(long_csv):
    assert console.PATIENCE == 1.0
    script = "import skcoral.cli.console as c; from skcoral.cli import main\n"
    script += "for c.PATIENCE in (600.0, 0.01): print(main(), 'is the status')"
    _, out = through_terminal(
        "inspect", long_csv, columns=80, command=(sys.executable, "-c", script)
    )
    patient, impatient, _ = out.split("0 is the status")
    assert "Looking at" not in patient
    assert "\r\x1b[KLooking at" in impatient


def modules_after(*arguments):
    script = (
        "import sys, json, os\n"
        "sys.stdout = open(os.devnull, 'w')\n"
        "from skcoral.cli import main\n"
        f"main({list(map(str, arguments))!r})\n"
        "sys.__stdout__.write(json.dumps(sorted(sys.modules)))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60
    )
    return set(json.loads(done.stdout))


def test_only_what_is_needed_is_imported(wine_csv):
    heavy = {"sklearn", "pandas", "matplotlib", "pyarrow", "streamlit", "openpyxl"}
    heavy |= {"jinja2", "pymanopt", "onnx"}
    assert not modules_after("--help") & (heavy | {"numpy", "scipy"})
    # text is parsed by pyarrow
    assert not modules_after("inspect", wine_csv) & (heavy - {"pyarrow"})
