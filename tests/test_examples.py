"""The demo and the picture of the README are made anew; the gallery is in test_gallery.py."""

import runpy
import subprocess
import sys
from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pytest

from skcoral.datasets import load_wine

ROOT = Path(__file__).parents[1]


def test_demo_proves_the_threshold_and_writes_a_decorrelated_table(tmp_path):
    done = subprocess.run(
        [sys.executable, ROOT / "examples" / "demo.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )
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


def test_demo_leaves_an_earlier_table_alone_when_it_cannot_finish(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("demo").write_text("in the way")
    with pytest.raises(FileExistsError):
        runpy.run_path(str(ROOT / "examples" / "demo.py"), run_name="__main__")
    assert Path("demo").read_text() == "in the way"


def test_the_picture_of_the_idea_is_drawn_anew(tmp_path, monkeypatch):
    path = tmp_path / "idea.png"
    monkeypatch.setattr(sys, "argv", ["idea_figure.py", str(path)])
    with mpl.rc_context():
        runpy.run_path(str(ROOT / "examples" / "idea_figure.py"), run_name="__main__")
    plt.close("all")
    committed = (ROOT / "docs" / "images" / "idea.png").read_bytes()
    assert path.read_bytes()[:8] == committed[:8] == b"\x89PNG\r\n\x1a\n"
