"""``coral fit --certificate`` and ``coral verify``: exit status and messages."""

from __future__ import annotations

import json

import numpy as np
import pytest


@pytest.fixture(scope="module")
def proof(coral, wine_csv, tmp_path_factory):
    path = tmp_path_factory.mktemp("proof") / "proof.json"
    done = coral("fit", wine_csv, "--rho-min", "0.9", "--certificate", path)
    assert done.returncode == 0, done.stderr
    assert str(path) in done.stdout
    return path


def test_a_true_certificate(coral, wine_csv, proof):
    done = coral("verify", wine_csv, proof)
    assert done.returncode == 0, done.stderr
    assert "true of" in done.stdout
    assert "NOT" not in done.stdout
    done = coral("verify", wine_csv, proof, "--rigorous")
    assert done.returncode == 0
    assert "proved in ball arithmetic" in done.stdout


def test_a_certificate_of_a_matrix(coral, wine, tmp_path):
    matrix = tmp_path / "R.csv"
    wine.to_frame().corr().to_csv(matrix)
    done = coral("fit", matrix, "--rho-min", "0.9", "--certificate", tmp_path / "c.json")
    assert done.returncode == 0, done.stderr
    assert coral("verify", matrix, tmp_path / "c.json").returncode == 0
    wine.to_frame().iloc[:90].corr().to_csv(matrix)
    done = coral("verify", matrix, tmp_path / "c.json")
    assert done.returncode == 4
    assert "another correlation matrix" in done.stdout


def test_another_table(coral, wine, proof, tmp_path):
    other = tmp_path / "other.csv"
    wine.to_frame().iloc[1:].to_csv(other, index=False)
    done = coral("verify", other, proof)
    assert done.returncode == 4
    assert "NOT true of" in done.stdout
    assert "another correlation matrix" in done.stdout


def test_the_estimator_is_part_of_the_question(coral, wine_csv, tmp_path):
    path = tmp_path / "c.json"
    fit = ("fit", wine_csv, "--rho-min", "0.9", "--covariance", "OAS", "--certificate", path)
    assert coral(*fit).returncode == 0
    done = coral("verify", wine_csv, path)
    assert done.returncode == 4
    assert "--covariance" in done.stdout
    assert coral("verify", wine_csv, path, "--covariance", "OAS").returncode == 0


def test_an_altered_certificate(coral, wine_csv, proof, tmp_path):
    lie = tmp_path / "lie.json"
    content = json.loads(proof.read_text("utf-8"))
    content["content"]["result"]["objective"] *= 0.5
    lie.write_text(json.dumps(content), "utf-8")
    done = coral("verify", wine_csv, lie)
    assert done.returncode == 4
    assert "altered" in done.stderr
    lie.write_text("nothing", "utf-8")
    done = coral("verify", wine_csv, lie)
    assert done.returncode == 4
    assert "certificate" in done.stderr
    done = coral("verify", wine_csv, tmp_path / "missing.json")
    assert done.returncode == 2
    assert "coral fit TABLE --certificate FILE" in done.stderr


def test_a_certificate_is_not_left_behind_by_a_failed_fit(coral, tmp_path):
    rows = np.column_stack([np.arange(5.0), np.ones(5), np.arange(5.0)])
    table = tmp_path / "t.csv"
    np.savetxt(table, rows, delimiter=",", header="a,b,c", comments="")
    done = coral("fit", table, "--rho-min", "2", "--certificate", tmp_path / "c.json")
    assert done.returncode != 0
    assert not (tmp_path / "c.json").exists()


@pytest.mark.parametrize(
    "content",
    [
        b"[" * 100_000,
        b"a,b\n1,2\n",
        b"{}",
    ],
)
def test_files_that_are_no_certificates(coral, wine_csv, tmp_path, content):
    path = tmp_path / "c.json"
    path.write_bytes(content)
    done = coral("verify", wine_csv, path)
    assert done.returncode == 4
    first, second = done.stderr.splitlines()
    assert "not a scikit-coral certificate" in first
    assert "coral fit --certificate" in second


def test_a_folder_is_no_certificate(coral, wine_csv, tmp_path):
    done = coral("verify", wine_csv, tmp_path)
    assert done.returncode == 2
    assert "no such certificate file" in done.stderr


def test_arguments_the_wrong_way_round(main, wine_csv, proof):
    status, _, err = main("verify", proof, wine_csv)
    assert status == 4
    assert "The table comes first" in err
