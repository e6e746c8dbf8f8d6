"""From ``inspect`` to ``fit``: the written file has what the recommendation says."""

from __future__ import annotations

import json
import shlex

import numpy as np
import pandas as pd
import pytest
from sklearn.covariance import OAS

import judge
from skcoral import decorrelate, threshold
from skcoral.datasets import load_wine


def figures(path):
    """Largest |r| and largest VIF of the numbers in a file."""
    rows = pd.read_csv(path).to_numpy()
    text = judge.figures(rows, rows)
    return text["largest_correlation"], text["largest_vif"]


def total_of(frame):
    return frame.assign(total=frame.iloc[:, :3].sum(axis=1))


TABLES = {
    "wine": (lambda: load_wine().to_frame(), ()),
    "singular": (lambda: total_of(load_wine().to_frame().iloc[:, :3]), ()),
    "weights": (
        lambda: load_wine().to_frame().assign(w=np.linspace(0.2, 3, 178)),
        ("--weights", "w"),
    ),
    "covariance": (lambda: load_wine().to_frame().iloc[:40], ("--covariance", "LedoitWolf")),
}


@pytest.mark.parametrize("kind", TABLES)
def test_fits_give_what_the_rows_of_inspect_say(answer, tmp_path, monkeypatch, kind):
    monkeypatch.chdir(tmp_path)
    make, options = TABLES[kind]
    make().to_csv("table.csv", index=False)
    status, record = answer("inspect", "table.csv", *options)
    assert status == 0
    assert {None, 0.95, 0.99} < {row["rho_min"] for row in record["floors"]}
    best = record["recommended"]
    words = shlex.split(best.pop("command"))
    assert words[:2] == ["coral", "fit"]
    assert best in record["floors"]
    for row in filter(lambda row: row["rho_min"], record["floors"]):
        words[words.index("--rho-min") + 1] = str(row["rho_min"])
        status, fitted = answer(*words[1:], "--force")
        assert status in (0, 4)  # 4: not certified, as some answers for singular tables
        measured = fitted["measured"]
        for name in ("largest_correlation", "min_fidelity"):
            assert measured[name] == pytest.approx(row[name], abs=1e-6)
        if row["largest_vif"] is None:  # infinite
            assert measured["largest_vif"] is None
            continue
        assert measured["largest_vif"] == pytest.approx(row["largest_vif"], abs=1e-5)
        if kind != "weights":  # the column of weights passes through
            assert figures("decorrelated.csv") == pytest.approx(
                (row["largest_correlation"], row["largest_vif"]), abs=1e-5
            )


def test_inspect_ends_with_the_recommendation(main, answer, wine_csv):
    _, out, _ = main("inspect", wine_csv)
    _, record = answer("inspect", wine_csv)
    said = " ".join(out.split())
    best = record["recommended"]
    assert {"rho_min", "largest_correlation", "largest_vif"} < set(best)
    assert said.endswith(f"{record['recommendation']} {best['command']}")
    assert "0.95 0.54 1.7 0.950" in said
    limits = "0.965 with --max-correlation 0.5, 0.982 with --max-vif 2"
    assert f"A limit instead of a floor keeps more: {limits}." in said
    for name, limit in (("max_correlation", 0.5), ("max_vif", 2)):
        option = f"--{name.replace('_', '-')}"
        _, fitted = answer("fit", wine_csv, option, limit)
        assert fitted["measured"]["min_fidelity"] == pytest.approx(record["limits"][name], abs=1e-6)


def test_inspect_of_uncorrelated_columns_prints_no_command_that_changes_nothing(main, tmp_path):
    rows = np.random.default_rng(0).normal(size=(200, 3))
    pd.DataFrame(rows, columns=["a", "b", "c"]).to_csv(tmp_path / "t.csv", index=False)
    _, out, _ = main("inspect", tmp_path / "t.csv")
    assert "no VIF exceeds 2" in " ".join(out.split())
    assert not out.rstrip().splitlines()[-1].startswith("  coral fit")


@pytest.mark.parametrize("rank", [2, 4])
def test_where_no_floor_is_recommended_a_limit_is_named_that_the_rank_allows(
    main, answer, tmp_path, rank
):
    rng = np.random.default_rng(3)
    rows = rng.normal(size=(60, rank)) @ rng.normal(size=(rank, 8))
    path = tmp_path / "t.csv"
    pd.DataFrame(rows, columns=list("abcdefgh")).to_csv(path, index=False)
    status, record = answer("inspect", path)
    assert status == 0
    assert record["recommended"] is None
    said = record["recommendation"]
    status, fitted = answer("fit", path, "--max-correlation", 0.5)
    if rank == 2:  # eight outputs in the plane: two correlate by 0.65 or more
        assert "--max-correlation" not in said
        assert status == 2
    else:
        assert said.endswith("A floor may be found by --max-correlation 0.5 (coral fit).")
        assert fitted["measured"]["largest_correlation"] <= 0.5
        assert fitted["measured"]["min_fidelity"] > 0.8


@pytest.mark.parametrize(("limit", "value"), [("--max-vif", 2), ("--max-correlation", 0.3)])
def test_limits_hold_in_the_file_and_the_highest_floor_is_in_the_certificate(
    main, answer, wine_csv, tmp_path, limit, value
):
    out, proof, by_vif = tmp_path / "out.csv", tmp_path / "proof.json", limit == "--max-vif"
    status, record = answer("fit", wine_csv, limit, value, "-o", out, "--certificate", proof)
    assert status == 0
    assert record["certified"]
    assert figures(out)[by_vif] == pytest.approx(value, abs=1e-6)
    claim = "no transformation within" if by_vif else "(proved)"
    assert claim in record["certificate"]["sentence" if by_vif else "goal"]
    assert main("verify", wine_csv, proof, "--rigorous")[0] == 0
    status, said, _ = main("verify", wine_csv, proof)
    assert status == 0
    within = "limit on the VIF" if by_vif else "limit on the largest correlation"
    assert f"≤ the highest common floor within the {within} ≤" in " ".join(said.split())
    R = pd.read_csv(wine_csv).corr().to_numpy()
    content = json.loads(proof.read_text("utf-8"))["content"]
    goal = content["result"]["goal"]
    if not by_vif:  # what is said to be impossible is, by another route
        above = decorrelate(R, goal["rho_upper"] + 1e-5, criterion="worst")
        assert above.lower_bound > value
    assert goal["$record"] == ("VifLimit" if by_vif else "Budget")
    assert goal["rho_upper"] < 1
    assert np.allclose(content["R"]["$array"], R, atol=1e-12)


def test_floors_of_a_frontier_may_be_named(main, wine_csv, tmp_path):
    path = tmp_path / "curve.csv"
    floors = ("--rho-min", 0.95, "--rho-min", 0.9)
    assert main("frontier", wine_csv, *floors, "--csv", path)[0] == 0
    assert pd.read_csv(path)["rho_min"].tolist() == [0.9, 0.95]


def test_outputs_beside_their_sources(main, iris_csv, tmp_path):
    out, model, again = tmp_path / "out.csv", tmp_path / "m.json", tmp_path / "again.csv"
    status, said, _ = main("fit", iris_csv, "-o", out, "--keep-sources", "--model", model)
    assert status == 0
    assert "NAME_d" in said
    given, table = pd.read_csv(iris_csv), pd.read_csv(out)
    pd.testing.assert_frame_equal(table[list(given)], given)
    for name in given.select_dtypes("number"):
        assert list(table).index(f"{name}_d") == list(table).index(name) + 1
        assert table[name].corr(table[f"{name}_d"]) >= 0.5
    assert main("transform", iris_csv, "--model", model, "-o", again, "--keep-sources")[0] == 0
    assert again.read_text() == out.read_text()
    taken = tmp_path / "taken.csv"
    taken.write_text("a,b,a_d\n1,2,x\n2,1,y\n3,5,z\n4,4,w\n")
    status, _, err = main("fit", taken, "-o", tmp_path / "no.csv", "--keep-sources")
    assert status == 2
    assert "'a_d'" in err
    assert not (tmp_path / "no.csv").exists()


def test_thresholds_are_about_the_matrix_asked_for(answer, wine_csv):
    wine = np.loadtxt(wine_csv, delimiter=",", skiprows=1)
    C = OAS().fit((wine - wine.mean(axis=0)) / wine.std(axis=0, ddof=1)).covariance_
    d = np.sqrt(np.diag(C))
    expected = threshold(C / np.outer(d, d)).value
    status, record = answer("threshold", wine_csv, "--covariance", "OAS")
    assert status == 0
    assert record["value"] == pytest.approx(expected, abs=1e-7)
    assert any("estimated by" in note for note in record["notes"])
    status, record = answer("inspect", wine_csv, "--covariance", "OAS")
    assert record["threshold"]["value"] == pytest.approx(expected, abs=1e-7)
    assert "--covariance OAS" in record["recommended"]["command"]
