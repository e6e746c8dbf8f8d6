"""``coral fit`` and ``coral transform``: the numbers promised are in the files written."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from skcoral.models.files import load_model


def test_wine_exact_from_the_installed_command(coral, wine, wine_csv, tmp_path):
    done = coral(
        "fit", wine_csv, "-o", tmp_path / "out.csv", "--model", tmp_path / "model.json",
        "--report", tmp_path / "report.html",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "0.8262" in done.stdout
    table = pd.read_csv(tmp_path / "out.csv")
    assert list(table) == list(wine.names)
    out = table.to_numpy()
    assert np.abs(np.corrcoef(out.T) - np.eye(13)).max() < 1e-9
    assert np.allclose(out.mean(axis=0), 0, atol=1e-12)
    assert np.allclose(out.std(axis=0, ddof=1), 1)
    fidelity = np.diag(np.corrcoef(wine.data.T, out.T)[:13, 13:])
    assert fidelity.min() == pytest.approx(0.826231, abs=5e-7)  # as in the paper
    assert json.loads((tmp_path / "model.json").read_text())
    report = (tmp_path / "report.html").read_text()
    assert report.startswith("<!doctype html>")
    assert f"coral fit {wine_csv} -o {tmp_path / 'out.csv'} --model" in report
    assert sorted(p.name for p in tmp_path.iterdir()) == ["model.json", "out.csv", "report.html"]


def test_floors_by_name(answer, wine, wine_csv):
    status, record = answer(
        "fit", wine_csv, "--rho-min", "0.6", "--rho-min", "alcohol=0.97", "--rho-min", "ash=0"
    )
    assert status == 0
    assert record["rho_min"]["alcohol"] == 0.97
    assert record["rho_min"]["ash"] == 0.0
    assert record["rho_min"]["hue"] == 0.6
    assert record["fidelity"]["alcohol"] >= 0.97 - 1e-9


@pytest.mark.parametrize("ending", ["csv", "parquet", "xlsx"])
def test_incomplete_rows_stay_in_their_place_without_outputs(main, birds_csv, tmp_path, ending):
    """So does a transformation by the model, to the same numbers; dropping them is an option."""
    out, model = tmp_path / f"out.{ending}", tmp_path / "m.json"
    asked = ("--rho-min", "0.9", "--model", model)
    status, text, errors = main("fit", birds_csv, *asked, "-o", out)
    assert status == 0, errors
    text = " ".join(text.split())
    assert "2 rows with missing values are not used, and outputs" in text
    assert "left empty: lines 5, 12." in text
    reader = {"csv": pd.read_csv, "parquet": pd.read_parquet, "xlsx": pd.read_excel}[ending]
    before, after = pd.read_csv(birds_csv), reader(out)
    assert list(after.columns) == list(before.columns)
    empty = after[load_model(model).feature_names_in_].isna()
    assert np.flatnonzero(empty.all(axis=1)).tolist() == [3, 10]
    assert empty.to_numpy().sum() == 2 * empty.shape[1]
    plain = pd.read_csv(birds_csv, keep_default_na=False)
    for name in ("island", "sex"):
        assert after[name].fillna("NA").tolist() == plain[name].tolist()
    again, few = tmp_path / f"again.{ending}", tmp_path / f"few.{ending}"
    status, text, _ = main("transform", birds_csv, "--model", model, "-o", again)
    assert status == 0
    assert "lines 5, 12" in " ".join(text.split())
    pd.testing.assert_frame_equal(reader(again), after)
    status, text, _ = main("fit", birds_csv, "--rho-min", "0.9", "--drop-incomplete", "-o", few)
    assert "2 rows with missing values are left out: lines 5, 12." in " ".join(text.split())
    pd.testing.assert_frame_equal(reader(few), after.drop(index=[3, 10]).reset_index(drop=True))


def test_excluded_and_chosen_columns(answer, iris_csv, tmp_path):
    status, record = answer(
        "fit", iris_csv, "--exclude", "sepal_width", "-o", tmp_path / "out.csv",
        "--output-scale", "original",
    )  # fmt: skip
    assert status == 0
    assert record["passed_through"] == ["sepal_width", "species"]
    assert "Columns left as they were: sepal_width, species." in record["notes"]
    before, after = (pd.read_csv(path, dtype=str) for path in (iris_csv, tmp_path / "out.csv"))
    assert after["sepal_width"].equals(before["sepal_width"])
    old, new = (table["petal_length"].astype(float) for table in (before, after))
    assert new.mean() == pytest.approx(old.mean())
    assert new.std() == pytest.approx(old.std())
    status, record = answer("fit", iris_csv, "--columns", "petal_length,petal_width")
    assert list(record["fidelity"]) == ["petal_length", "petal_width"]


def test_support_from_a_number_and_from_a_table(answer, iris_csv, tmp_path):
    R = pd.read_csv(iris_csv).corr(numeric_only=True)
    allowed = R.abs() > 0.6
    allowed.astype(int).to_csv(tmp_path / "mask.csv")
    for support in (0.6, tmp_path / "mask.csv"):
        asked = ("--rho-min", 0.5, "--support", support, "--model", tmp_path / "m.json", "--force")
        status, record = answer("fit", iris_csv, *asked)
        assert (status == 0) == record["certified"]
        assert np.array_equal(load_model(tmp_path / "m.json").T_ != 0.0, allowed)


def test_a_support_with_signs_and_intervals(answer, main, iris_csv, tmp_path):
    """The table of pairs with their intervals, kept by the model that is written."""
    rows = ["source,output,lower,upper", "petal_length,sepal_length,-0.2,0"]
    rows += ["petal_width,sepal_length,,0.1", "sepal_length,sepal_width,0,"]
    support = tmp_path / "known.csv"
    support.write_text("\n".join(rows) + "\n")
    files = ("--model", tmp_path / "m.json", "--certificate", tmp_path / "c.json")
    status, _ = answer("fit", iris_csv, "--rho-min", "0.8", "--support", support, *files)
    assert status in (0, 4)
    model = load_model(tmp_path / "m.json")
    T = pd.DataFrame(model.T_, index=model.feature_names_in_, columns=model.feature_names_in_)
    assert -0.2 <= T.loc["petal_length", "sepal_length"] <= 0
    assert T.loc["petal_width", "sepal_length"] <= 0.1
    assert T.loc["sepal_length", "sepal_width"] >= 0
    allowed = np.eye(4, dtype=bool)
    for source, output in (line.split(",")[:2] for line in rows[1:]):
        allowed[list(T.index).index(source), list(T.columns).index(output)] = True
    assert not T.to_numpy()[~allowed].any()
    assert main("verify", iris_csv, tmp_path / "c.json")[0] == 0
    for text in ("source,output,lower\npetal_length,sepal_length,low\n", "note\nx\n"):
        support.write_text(text)
        status, _, err = main("fit", iris_csv, "--rho-min", "0.8", "--support", support)
        assert status == 2
        assert "support" in err


def test_transform_needs_the_columns_of_the_model(main, iris_csv, wine_csv, tmp_path):
    model = tmp_path / "model.json"
    main("fit", iris_csv, "--model", model)
    status, _, err = main("transform", wine_csv, "--model", model, "-o", tmp_path / "x.csv")
    assert status == 3
    assert "sepal_length" in err
    model.write_text(model.read_text()[:500])
    status, _, err = main("transform", iris_csv, "--model", model, "-o", tmp_path / "x.csv")
    assert status == 3
    first, second = err.splitlines()
    assert "model.json" in first  # the table is not blamed
    assert "coral fit --model" in second
    assert not (tmp_path / "x.csv").exists()


def test_an_open_gap_is_exit_status_4(main, wine_csv, tmp_path):
    status, out, _ = main(
        "fit", wine_csv, "--rho-min", "0.6", "--support", "0.3", "-o", tmp_path / "out.csv"
    )
    assert status == 4
    assert (tmp_path / "out.csv").exists()
    assert "no transformation under the same conditions has less than" in " ".join(out.split())


@pytest.mark.parametrize("rows", [True, False])
def test_an_answer_that_fails_its_check_is_not_written(main, wine, tmp_path, monkeypatch, rows):
    """Nor is it advised to shrink the correlations where only a matrix is given."""
    from skcoral import certificates

    real = certificates.check

    def doubt(result, R):
        return replace(real(result, R), passed=False, problems=("made to fail",))

    monkeypatch.setattr(certificates, "check", doubt)
    table = wine.to_frame() if rows else wine.to_frame().corr()
    table.to_csv(tmp_path / "t.csv", index=False)
    status, _, err = main("fit", tmp_path / "t.csv", "-o", tmp_path / "out.csv")
    assert status == 4
    assert "made to fail" in err
    assert ("--covariance" in err) == rows
    assert [path.name for path in tmp_path.iterdir()] == ["t.csv"]


@pytest.fixture
def sites_csv(tmp_path):
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(120, 3)) @ np.array([[1.0, 0.5, 0.2], [0.0, 1.0, 0.4], [0.0, 0.0, 1.0]])
    lines = [f"s{i // 6}," + ",".join(f"{v:.9f}" for v in row) for i, row in enumerate(rows)]
    path = tmp_path / "sites.csv"
    path.write_text("site,a,b,c\n" + "\n".join(lines) + "\n")
    return path, rows


def test_groups_in_the_confidence_and_in_the_report(answer, sites_csv, tmp_path):
    from skcoral import CORAL

    path, rows = sites_csv
    page = tmp_path / "r.html"
    asked = ("fit", path, "--rho-min", "0.9", "--groups", "site", "--report", page)
    assert answer(*asked)[0] == 0
    text = page.read_text("utf-8")
    assert "Fitted 5 times without one part of the groups" in text
    assert "For the population" not in text
    status, record = answer(*asked, "--confidence", "0.9", "--force")
    assert status == 0
    sure = CORAL(0.9, confidence=0.9).fit(np.round(rows, 9), groups=np.arange(120) // 6)
    np.testing.assert_allclose(list(record["rho_min"].values()), sure.floors_, atol=1e-7)
    assert record["confidence"]["sentence"] == sure.confidence_.sentence()
    assert "site" in record["passed_through"]
    assert answer("fit", path, "--rho-min", "0.9")[1]["confidence"] is None


@pytest.mark.parametrize("ending", ["parquet", "xlsx"])
def test_codes_of_many_digits_stay_as_they_are(main, tmp_path, ending):
    """A float has 15 to 17 digits; account numbers and the like may have more."""
    table = pd.DataFrame(np.random.default_rng(0).normal(size=(12, 2)), columns=["a", "b"])
    table["account"] = [str(1234567890123456789 + 7 * i) for i in range(12)]
    table["year"] = range(2000, 2012)
    table.to_csv(tmp_path / "t.csv", index=False)
    out = tmp_path / f"out.{ending}"
    status, _, err = main("fit", tmp_path / "t.csv", "--columns", "a,b", "-o", out)
    assert status == 0, err
    made = pd.read_parquet(out) if ending == "parquet" else pd.read_excel(out, dtype=object)
    assert made["account"].tolist() == table["account"].tolist()
    assert made["year"].tolist() == table["year"].tolist()
