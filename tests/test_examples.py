import doctest
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from skcoral.datasets import load_wine

ROOT = Path(__file__).parents[1]


def run_demo(folder):
    return subprocess.run(
        [sys.executable, ROOT / "examples" / "demo.py"],
        cwd=folder,
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )


def test_demo_proves_the_threshold_and_writes_a_decorrelated_table(tmp_path):
    done = run_demo(tmp_path)
    assert done.returncode == 0, done.stderr
    assert "0.82623" in done.stdout
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
    assert f"{np.diag(both).min():.7f}" == "0.8262309"


def test_demo_leaves_an_earlier_table_alone_when_it_cannot_finish(tmp_path):
    (tmp_path / "demo").write_text("in the way")
    done = run_demo(tmp_path)
    assert done.returncode != 0
    assert (tmp_path / "demo").read_text() == "in the way"


PAGES = sorted(path for path in (ROOT / "README.md", *(ROOT / "docs").glob("*.md")))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_sessions_on_the_page_are_true(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```pycon\n(.*?)```", page.read_text("utf-8"), re.DOTALL)
    session = doctest.DocTestParser().get_doctest("\n".join(blocks), {}, page.name, page.name, 0)
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    assert runner.run(session).failed == 0
