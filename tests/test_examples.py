"""The demo and the picture of the README are made anew; the gallery is in test_gallery.py."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from skcoral.datasets import load_wine

ROOT = Path(__file__).parents[1]


def run_example(name, folder):
    return subprocess.run(
        [sys.executable, ROOT / "examples" / name],
        cwd=folder,
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )


def test_demo_proves_the_threshold_and_writes_a_decorrelated_table(tmp_path):
    done = run_example("demo.py", tmp_path)
    assert done.returncode == 0, done.stderr
    assert "0.82623" in done.stdout  # the paper's threshold
    assert "passed" in done.stdout
    for name in (*load_wine().names, "CORAL", "ZCA-cor", "PCA"):
        assert name in done.stdout

    (path,) = (tmp_path / "demo").iterdir()
    table = np.genfromtxt(path, delimiter=",", names=True, deletechars="")
    outputs = np.column_stack([table[name] for name in table.dtype.names])
    wine = load_wine()
    assert outputs.shape == wine.data.shape
    assert np.abs(np.corrcoef(outputs.T) - np.eye(13)).max() < 1e-10
    both = np.corrcoef(wine.data.T, outputs.T)[:13, 13:]
    assert np.diag(both).min() == pytest.approx(0.826231, abs=5e-7)  # the paper's threshold


def test_demo_leaves_an_earlier_table_alone_when_it_cannot_finish(tmp_path):
    (tmp_path / "demo").write_text("in the way")
    done = run_example("demo.py", tmp_path)
    assert done.returncode != 0
    assert (tmp_path / "demo").read_text() == "in the way"


def test_the_picture_of_the_idea_is_drawn_anew(tmp_path):
    path = tmp_path / "idea.png"
    done = subprocess.run(
        [sys.executable, ROOT / "examples" / "idea_figure.py", path],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    committed = (ROOT / "docs" / "images" / "idea.png").read_bytes()
    assert path.read_bytes()[:8] == committed[:8] == b"\x89PNG\r\n\x1a\n"
