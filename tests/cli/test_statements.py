"""Sentences on the screen and in the report agree with the file that was written."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest


@pytest.fixture
def survey(tmp_path):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(60, 4)) @ rng.normal(size=(4, 4))
    table = pd.DataFrame(X, columns=list("abcd"))
    table["sum"] = table["a"] + table["b"]
    table.to_csv(tmp_path / "t.csv", index=False)
    return tmp_path, table


@pytest.mark.parametrize("how", [["--covariance", "LedoitWolf"], ["--covariance", "MinCovDet"], []])
@pytest.mark.parametrize("scale", ["unit", "original"])
def test_standard_deviations_are_claimed_of_the_matrix_they_hold_for(main, survey, how, scale):
    folder, table = survey
    given = table[list("abcd")].copy()
    given.iloc[::7, 1] = np.nan  # rows that are left out
    given.to_csv(folder / "t.csv", index=False)
    command = ["fit", folder / "t.csv", "--rho-min", "0.9", "-o", folder / "o.csv"]
    said = " ".join(main(*command, "--output-scale", scale, *how)[1].split())
    out = pd.read_csv(folder / "o.csv")
    wanted = 1.0 if scale == "unit" else given.dropna().std()
    holds = bool(np.allclose(out.std() / wanted, 1.0, atol=1e-9))
    assert holds == (not how)
    centre = 0.0 if scale == "unit" else given.dropna().mean()
    centred = bool(np.allclose(out.mean(), centre, atol=1e-9))
    assert centred == (how[1:] != ["MinCovDet"])
    assert ("on the rows, standard deviations differ" in said) == (not holds and centred)
    assert ("on the rows, means and standard deviations differ" in said) == (not centred)
    assert f"{len(given.dropna())} of 60 rows used" in said


def test_residuals_below_what_the_rank_allows_are_refused_in_words_of_the_command(main, survey):
    status, _, err = main("fit", survey[0] / "t.csv", "--max-correlation", "0")
    assert status == 2
    assert "A residual of 0 (worst) is below" in err
    assert "--max-correlation a larger number" in err


def test_status_agrees_with_what_is_called_certified(main, answer, wine_csv, tmp_path):
    record = answer("fit", wine_csv, "--max-vif", "1.5")[1]
    assert record["certified"]
    assert record["status"] == "optimal"
    assert "highest common floor" in record["status_is_about"]
    # of the residual nothing is claimed: no bound, and no price that would follow from it
    assert record["lower_bound"] is record["gap"] is record["prices"] is None
    said = main("fit", wine_csv, "--max-vif", "1.5")[1]
    assert said.count("Certified for these 178 rows") == 1
    assert "Nothing was written" in said
    said = main("fit", wine_csv, "--max-vif", "1.5", "-o", tmp_path / "out.csv")[1]
    assert "Nothing was written" not in said


def test_roll_advises_min_rows_where_most_windows_are_short(main, tmp_path):
    rng = np.random.default_rng(8)
    table = pd.DataFrame(rng.normal(size=(40, 3)), columns=list("abc"))
    table.insert(0, "year", [f"{1935 + i}.0" for i in range(40)])  # as spreadsheets write them
    table.loc[[12, 22, 27], "b"] = np.nan
    table.to_csv(tmp_path / "annual.csv", index=False)
    asked = ["roll", tmp_path / "annual.csv", "--window", "10", "--date", "year", "--force"]
    asked += ["--rho-min", "0.9", "-o", tmp_path / "out.csv"]
    for more, advised in (([], True), (["--min-rows", "6"], False)):
        status, said, err = main(*asked, *more)
        assert status == 0, err
        assert ("short" in said) == ("--min-rows" in said) == advised


def test_labels_that_repeat_are_suggested_as_groups(main, tmp_path):
    rng = np.random.default_rng(9)
    table = pd.DataFrame(rng.normal(size=(120, 3)) + rng.normal(size=(120, 1)), columns=list("abc"))
    table.assign(country=[f"c{i % 12}" for i in range(120)]).to_csv(tmp_path / "t.csv", index=False)
    asked = ["fit", tmp_path / "t.csv", "--rho-min", "0.8"]
    sure = [*asked, "--confidence", "0.9"]
    for command, suggested in (
        (asked, False),
        (sure, True),
        ([*sure, "--groups", "country"], False),
    ):
        said = " ".join(main(*command)[1].split())
        assert ("country has 12 labels" in said) == ("--groups country" in said) == suggested
    assert "12 groups" in said
