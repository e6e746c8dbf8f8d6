"""Every bad file: exit status 3 and two lines that name the file and say what to do."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys

import numpy as np
import pytest

#: What only the numbers show; files that cannot be read are in tests/tables.
BAD = {
    "binary.csv": (b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR", ["not a text table"]),
    "typo.csv": (b"a,b\n1,2\n3,4\n5,l0\n", ["line 4", "'b'", "'l0'"]),
    "digits.csv": (
        b"a,b\n" + b"".join(b"%d,%d\n" % (2**70 + i, i * i % 7) for i in range(9)),
        ["at least two columns of numbers that vary", "'b'"],
    ),
    "flat.csv": (b"a,b,c\n1,2,3\n2,2,3\n", ["only 'a'", "b (always 2), c (always 3)"]),
    # constant among the complete rows only
    "gaps.csv": (b"a,b,c\n1,2,3\n2,4,3\n3,1,3\n4,,5\n5,3,3\n", ["correlation", "`c`"]),
    "holes.csv": (b"a,b\n1,\n2,\n,3\n", ["no row has a value", "2 columns", "--exclude"]),
    "one hole.csv": (b"a,b\n1,2\n2,\n", ["one row has a value", "2 columns", "--exclude"]),
}


@pytest.mark.parametrize("command", ["inspect", "fit"])
@pytest.mark.parametrize("name", BAD)
def test_bad_files(main, tmp_path, name, command):
    data, needles = BAD[name]
    path = tmp_path / name
    path.write_bytes(data)
    status, out, err = main(command, path)
    assert (status, out) == (3, "")
    assert len(err.splitlines()) == 2
    assert err.startswith(f"coral: {path}")
    for needle in needles:
        assert needle in err


def test_decimal_commas_are_read_and_reported(main, answer, tmp_path):
    path = tmp_path / "comma.csv"
    rows = "\n".join(f"{i * i % 11},5;{i * i % 7},25;x" for i in range(12))
    path.write_text(f"a;b;word\n{rows}\n")
    status, out, _ = main("inspect", path)
    assert status == 0
    assert "Read with semicolons between the cells and decimal commas." in " ".join(out.split())
    text = main("inspect", path, "--separator", ";", "--decimal", ",")
    assert text[0] == 0
    assert "Read with" not in text[1]
    # the command that is recommended repeats what was said about the file
    best = answer("inspect", path, "--separator", ";", "--decimal", ",")[1]["recommended"]
    assert f"coral fit {path} --separator ';' --decimal , --rho-min 1" in best["command"]


def test_exact_dependencies_are_named(main, answer, dependent_csv, tmp_path):
    asked = ("fit", dependent_csv, "--exclude", "same")
    status, out, _ = main(*asked, "-o", tmp_path / "out.csv")
    assert status == 0
    assert "`total` = `a` + `b`" in " ".join(out.split())
    assert (tmp_path / "out.csv").exists()
    _, record = answer("inspect", dependent_csv)
    assert (record["redundant"], record["threshold"]) == (["total"], None)
    for remedy in ("--exclude total", "--covariance LedoitWolf"):
        assert remedy in record["reason"]
    status, _, err = main(*asked, "--max-vif", "2")
    assert status == 3
    assert "(--exclude total)" in err


@pytest.mark.parametrize("command", ["inspect", "threshold", "frontier", "fit"])
def test_constant_columns_are_unchanged_and_named(main, answer, dependent_csv, command):
    chosen = (command, dependent_csv, "--exclude", "total")
    status, out, _ = main(*chosen)
    assert status == 0
    assert "same" in out
    assert "onstant" in out
    if command != "frontier":
        assert answer(*chosen)[1]["constant"] == ["same"]
    status, _, err = main(*chosen[:2], "--columns", "a,b,same")
    assert status == 3
    assert "'same' is always 7" in err
    assert "--exclude same" in err


def test_a_constant_column_passes_through_and_keeps_its_rows(main, answer, tmp_path):
    rng = np.random.default_rng(0)
    path, out, model = tmp_path / "t.csv", tmp_path / "out.csv", tmp_path / "m.json"
    rows = enumerate(rng.normal(size=(30, 2)).tolist())
    lines = [f"{a!r},{['07.0', ''][i % 2]},{b!r}" for i, (a, b) in rows]
    path.write_text("a,same,b\n" + "\n".join(lines) + "\n")
    status, record = answer("fit", path, "-o", out, "--model", model)
    assert status == 0
    assert record["passed_through"] == ["same"]
    assert record["incomplete_rows"] == []
    written = [line.split(",") for line in out.read_text().splitlines()]
    assert [row[1] for row in written] == ["same", *["07.0", ""] * 15]
    assert main("transform", path, "--model", model, "-o", tmp_path / "again.csv")[0] == 0
    assert (tmp_path / "again.csv").read_text() == out.read_text()


def test_errors_are_json_too(main, tmp_path):
    status, out, err = main("inspect", tmp_path / "none.csv", "--json")
    assert status == 3
    record = json.loads(out)
    assert record["exit_status"] == 3
    assert "none.csv" in record["error"]
    assert record["hint"]
    assert len(err.splitlines()) == 2


#: Arguments, and what the first line or the second must name.
WRONG_USE = [
    ("frobnicate", "frobnicate"),
    ("fit", "FILE"),
    ("fit {wine} --rho 0.5", "--rho"),
    ("fit {wine} --rho-min high", "'high'"),
    ("fit {wine} --rho-min 1.5", "1.5"),
    ("fit {wine} --rho-min =0.9", "not '=0.9'"),
    ("frontier {wine} --rho-min nan", "nan"),
    ("fit {wine} --support 1.5", "not '1.5'"),
    ("fit {wine} --max-correlation 1.5", "at most 1; got 1.5"),
    ("fit {wine} --max-vif 0.5", "0.5"),
    ("fit {wine} --rho-min alkohol=0.5", "`alkohol`"),
    ("fit {wine} --rho-min 0.5 --rho-min 0.6", "two numbers"),
    ("fit {wine} --rho-min 0.5 --budget 1", "not both"),
    ("fit {wine} --rho-min 0.9 --max-vif 2", "not both --rho-min and --max-vif"),
    ("fit {wine} --budget -1", "-1"),
    ("fit {wine} --criterion cubed", "cubed"),
    ("fit {wine} --covariance Ledoit", "LedoitWolf"),
    ("fit {wine} --max-vif 2 --criterion worst", "leave --criterion worst out"),
    ("fit {wine} --confidence 0.9", "none is given"),
    ("fit {wine} --rho-min 0.9 --confidence 95", "at most 0.9995; got 95"),
    ("fit {wine} --rho-min 0.9 --groups ash", "--groups goes with --confidence or"),
    ("fit {wine} --columns ' , '", "--columns"),
    ("fit {wine} --target ash --weights ash", "--target 'ash' has another use"),
    ("fit {wine} -o out.dat", ".parquet"),
    ("fit {wine} -o new/out.csv", "new/out.csv"),
    ("fit {wine} -o - --json", "standard output"),
    ("fit {wine} --model -", "standard output"),
    ("inspect {wine} --sheet one", "--sheet"),
    ("inspect {wine} --separator ;;", "';;'"),
    ("frontier {wine} --csv out.dat", ".parquet"),
    ("frontier {wine} --plot f.bmp", ".png"),
    ("frontier {wine} --points 1", "at least 2 and at most 1000; got '1'"),
    ("roll {wine} --window 0", "0"),
    ("roll {wine} --window " + "9" * 5000, "window"),
    ("roll {wine} --window 9 --jobs 0", "--jobs must be"),
    ("roll {wine} --window 9 --windows -", "standard output"),
    (
        "roll {wine} --window 40 --max-correlation 0.2 --rho-min 0.9",
        "not both --rho-min and --max-correlation",
    ),
    ("reproduce --table ²", "no table '²'"),
    ("reproduce --table 12345", "rho-star"),
    ("reproduce -o t.doc", ".doc"),
    ("transform {wine} --model nope.json -o x.csv", "nope.json"),
    ("verify {wine} .", "coral fit TABLE --certificate FILE"),
]


@pytest.mark.parametrize(("line", "needle"), WRONG_USE, ids=[line[:60] for line, _ in WRONG_USE])
def test_wrong_use(main, wine_csv, line, needle, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    arguments = shlex.split(line.format(wine=wine_csv))
    status, _, err = main(*arguments)
    assert status == 2
    assert needle in err
    assert len(err.splitlines()) == 2
    assert list(tmp_path.iterdir()) == []
    advised = re.search("Try 'coral ([^']*)'", err)
    assert advised is None or advised[1] in ("--help", f"{arguments[0]} --help")


def test_too_few_rows_are_reported_in_terms_of_the_command(main, tmp_path):
    path = tmp_path / "few.csv"
    path.write_text("a,b,c\n1,2,3\n2,3,1\n")
    for command in ("inspect", "fit"):
        status, out, err = main(command, path)
        text = " ".join((out + err).split())
        assert status == 0
        assert "2 rows cannot determine 3 columns" in text
        assert "covariance='LedoitWolf'" not in text
        assert "of each relation" not in text


def test_control_characters_in_names_do_not_reach_the_terminal(main, tmp_path):
    path = tmp_path / "steer.csv"
    path.write_text("a\x1b[31m,[bold]b[/bold],c\n1,2,3\n2,3,1\n3,1,1\n4,4,2\n9,0,1\n")
    status, out, _ = main("inspect", path)
    assert status == 0
    assert "\x1b" not in out
    assert "[bold]b[/bold]" in out


def test_a_fault_of_our_own_is_two_lines_as_well(tmp_path):
    script = (
        "import sys, skcoral.cli.inspect as i\n"
        "def fail(*a, **k): raise TypeError('some\\nfault')\n"
        "i.inspect = fail\n"
        "from skcoral.cli import main; sys.exit(main(['inspect', 'x.csv']))"
    )
    for debug in ("", "1"):
        env = os.environ | {"CORAL_DEBUG": debug}
        done = subprocess.run(
            [sys.executable, "-c", script], capture_output=True, text=True, check=False, env=env
        )
        assert done.returncode == 1
        assert ("Traceback" in done.stderr) == bool(debug)
        if not debug:
            assert len(done.stderr.splitlines()) == 2
            assert "TypeError: some fault" in done.stderr
            assert "CORAL_DEBUG=1" in done.stderr
