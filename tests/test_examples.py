"""The demo's files, and the picture of the README; the gallery is in test_gallery.py."""

import runpy
import sys
from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
import pytest

ROOT = Path(__file__).parents[1]


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
