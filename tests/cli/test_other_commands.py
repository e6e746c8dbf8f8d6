"""``coral inspect``, ``threshold``, ``frontier``, ``demo``, ``app``, help and completion."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from streamlit import net_util
from streamlit.web import cli as streamlit_cli

from skcoral.cli.parser import COMMANDS


def test_inspect_as_json_has_everything(answer, wine, wine_csv):
    status, record = answer("inspect", wine_csv)
    assert status == 0
    assert record["rows"] == record["complete_rows"] == 178
    R = wine.correlation
    assert record["condition_number"] == pytest.approx(np.linalg.cond(R))
    assert np.allclose(list(record["vif"].values()), np.diag(np.linalg.inv(R)))
    # the paper's figure for ρ★
    assert record["threshold"]["lower"] == pytest.approx(0.826231, abs=5e-7)
    assert record["threshold"]["upper"] == pytest.approx(0.826231, abs=5e-7)
    # The published figures of the classical methods on these data.
    values, vectors = np.linalg.eigh(R)
    zca = np.diag((vectors * np.sqrt(values)) @ vectors.T)
    assert record["methods"]["ZCA-cor"]["min_fidelity"] == pytest.approx(zca.min())
    assert record["methods"]["PCA"]["min_fidelity"] < record["methods"]["ZCA-cor"]["min_fidelity"]
    strongest = record["strongest_pairs"][0]
    off = np.abs(np.triu(R, 1))
    i, j = np.unravel_index(off.argmax(), off.shape)
    assert strongest["pair"] == [wine.names[i], wine.names[j]]
    assert strongest["correlation"] == pytest.approx(R[i, j])


def test_long_names_leave_room_and_stay_apart(main, answer, tmp_path):
    long = "measurement " * 20
    names = [f"{long}first", f"{long}second", "c"]
    path = tmp_path / "long.csv"
    path.write_text(",".join(names) + "\n1,2,3\n2,3,1\n3,1,1\n4,4,2\n9,0,1\n")
    for command in ("inspect", "threshold", "fit"):
        status, out, _ = main(command, path)
        assert status == 0
        assert long not in " ".join(out.split())
        assert "first" in out
        assert "second" in out
        lines = [line for line in out.splitlines() if not line.startswith("  coral fit ")]
        assert max(map(len, lines)) <= 80
    assert answer("inspect", path)[1]["columns"][1]["name"] == names[1]


@pytest.mark.parametrize("columns", ["20", "40", "80"])
def test_numbers_are_whole_on_a_narrow_screen(main, iris_csv, columns, monkeypatch):
    monkeypatch.setenv("COLUMNS", columns)
    status, out, _ = main("frontier", iris_csv, "--points", "3")
    assert status == 0
    assert "…" not in out
    assert "\n1.000000" in out


PICTURES = {"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF"}


@pytest.mark.parametrize("ending", PICTURES)
def test_frontier_as_table_and_picture(main, wine, wine_csv, tmp_path, ending):
    picture = tmp_path / f"f.{ending}"
    status, out, _ = main(
        "frontier", wine_csv, "--plot", picture, "--csv", tmp_path / "f.csv",
        "--points", 9,
    )  # fmt: skip
    assert status == 0
    said = " ".join(out.split())
    assert "It is 0 up to ρ★ = 0.826231 and" in said
    assert "All points are certified." in said
    assert picture.read_bytes().startswith(PICTURES[ending])
    with (tmp_path / "f.csv").open() as stream:
        rows = list(csv.DictReader(stream))
    rho = np.array([float(row["rho_min"]) for row in rows])
    objective = np.array([float(row["objective"]) for row in rows])
    assert rho[-1] == 1.0
    assert objective[-1] == pytest.approx(0.5 * ((wine.correlation - np.eye(13)) ** 2).sum())
    assert np.all(np.diff(objective) >= -1e-9)


def test_demo(main, wine, tmp_path, conic_optimum):
    folder = tmp_path / "demo"
    status, out, _ = main("demo", "--into", folder)
    assert status == 0
    assert "0.826230862" in out
    assert out.count("--rho-min 0.94") >= 2  # recommended, and done
    assert sorted(p.name for p in folder.iterdir()) == [
        "decorrelated.csv", "model.json", "report.html", "wine.csv",
    ]  # fmt: skip
    (folder / "wine.csv").unlink()
    status, _, err = main("demo", "--into", folder)
    assert status == 2
    assert "--force" in err
    assert not (folder / "wine.csv").exists()
    assert main("demo", "--into", folder, "--force")[0] == 0
    R = pd.read_csv(folder / "decorrelated.csv").corr().to_numpy()
    residual = 0.5 * ((R - np.eye(13)) ** 2).sum()
    assert residual == pytest.approx(conic_optimum(wine.correlation, 0.94), abs=1e-7)


def test_reproduce_a_table_by_label_and_by_number(main, tmp_path):
    status, out, _ = main("reproduce", "--table", "rho-star", "-o", tmp_path / "t.md")
    assert status == 0
    ours = next(line for line in out.splitlines() if "Wine, CORAL" in line)
    assert "0.826231" in ours  # as in the paper
    assert "0.8262" in (tmp_path / "t.md").read_text()
    status, out, _ = main("reproduce", "--table", "1")
    assert status == 0
    assert "Wine, CORAL" in out


def test_app_is_served_on_this_machine_only(main, monkeypatch):
    def no_socket(*_args, **_options):
        raise AssertionError("the server asks outside for an address")

    def streamlit(arguments, **_):
        asked.update(part.split("=", 1) for part in arguments if "=" in part)
        assert Path(arguments[1]).is_file()
        assert net_util.get_external_ip() is net_util.get_internal_ip() is None

    asked = {}
    for name in ("get_external_ip", "get_internal_ip"):
        monkeypatch.setattr(net_util, name, no_socket)
    monkeypatch.setattr(streamlit_cli, "main", streamlit)
    assert main("app", "--no-browser", "--port", "8600")[0] == 0
    assert asked["--server.address"] == "127.0.0.1"
    assert asked["--server.port"] == "8600"
    assert asked["--browser.gatherUsageStats"] == "false"
    assert asked["--client.showErrorDetails"] == "none"


def test_version_and_overview(main):
    from skcoral._version import __version__

    assert main("--version")[:2] == (0, f"coral {__version__}\n")
    status, out, _ = main()
    assert status == 0
    for command in COMMANDS:
        assert f"\n  {command} " in out
    assert "Exit status: 0 done, 2 wrong use, 3 bad data,\n4" in out


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_with_an_example(main, command):
    status, out, _ = main(command, "--help")
    assert status == 0
    assert f"  coral {command}" in out.split("Example:")[1]
