"""``coral fit --certificate`` and ``coral verify``: exit status and messages."""

from __future__ import annotations

import pytest


@pytest.fixture(scope="module")
def proof(coral, wine_csv, tmp_path_factory):
    path = tmp_path_factory.mktemp("proof") / "proof.json"
    done = coral("fit", wine_csv, "--rho-min", "0.9", "--certificate", path)
    assert done.returncode == 0, done.stderr
    assert str(path) in done.stdout
    return path


def test_a_true_certificate(main, wine_csv, proof):
    status, out, _ = main("verify", wine_csv, proof)
    assert status == 0
    assert "true of" in out
    assert "NOT" not in out
    status, out, _ = main("verify", wine_csv, proof, "--rigorous")
    assert status == 0
    assert "proved in ball arithmetic" in out


@pytest.mark.parametrize("made_of", ["rows", "a matrix"])
def test_another_table(main, wine, tmp_path, made_of):
    table, path = tmp_path / "table.csv", tmp_path / "c.json"

    def write(rows):
        table_rows = rows.corr() if made_of == "a matrix" else rows
        table_rows.to_csv(table, index=made_of == "a matrix")

    write(wine.to_frame())
    assert main("fit", table, "--rho-min", "0.9", "--certificate", path)[0] == 0
    assert main("verify", table, path)[0] == 0
    write(wine.to_frame().iloc[1:])
    status, out, _ = main("verify", table, path)
    assert status == 4
    text = " ".join(out.split())  # long paths break lines
    assert "NOT true of" in text
    assert "another correlation matrix" in text


def test_the_estimator_is_part_of_the_question(main, wine_csv, tmp_path):
    path = tmp_path / "c.json"
    fit = ("fit", wine_csv, "--rho-min", "0.9", "--covariance", "OAS", "--certificate", path)
    assert main(*fit)[0] == 0
    status, out, _ = main("verify", wine_csv, path)
    assert status == 4
    assert "--covariance" in out
    assert main("verify", wine_csv, path, "--covariance", "OAS")[0] == 0


def test_arguments_the_wrong_way_round(main, wine_csv, proof):
    status, _, err = main("verify", proof, wine_csv)
    assert status == 4
    assert "The table comes first" in err
