"""The examples do what they say, and the README has their figures."""

import re
import subprocess
import sys
from pathlib import Path

import numpy as np

from skcoral.datasets import load_wine

ROOT = Path(__file__).parents[1]


def run_example(name, folder, *arguments):
    return subprocess.run(
        [sys.executable, ROOT / "examples" / name, *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )


def test_demo_proves_the_threshold_and_writes_a_decorrelated_table(tmp_path):
    done = run_example("demo.py", tmp_path)
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
    done = run_example("demo.py", tmp_path)
    assert done.returncode != 0
    assert (tmp_path / "demo").read_text() == "in the way"


def test_the_readme_compares_the_methods_with_the_figures_of_today(tmp_path):
    done = run_example("wine_methods.py", tmp_path)
    assert done.returncode == 0, done.stderr
    page = " ".join((ROOT / "README.md").read_text("utf-8").split())
    assert " ".join(done.stdout.split()) in page
    rows = {
        line.split(" | ")[0]: line.strip(" |").split(" | ") for line in done.stdout.splitlines()
    }
    zca, coral = rows["| ZCA-cor"], rows["| CORAL at ρ★"]
    said = (
        f"ZCA-cor has the higher mean ({zca[4]} against {coral[4]}) and CORAL the higher minimum "
        f"({coral[3]} against {zca[3]})"
    )
    assert said in page
    assert zca[4] > coral[4]
    assert coral[3] > zca[3]
    few = rows["| dropping columns, none above 0.31"][1]
    assert f"leaves {few}" in page


def test_dropping_columns_leaves_none_above_the_limit():
    sys.path.insert(0, str(ROOT / "examples"))
    try:
        from wine_methods import drop_columns
    finally:
        sys.path.pop(0)
    R = load_wine().correlation
    for limit in (0.2, 0.31, 0.6, 0.9):
        kept = drop_columns(R, limit)
        part = np.abs(R[np.ix_(kept, kept)]) - np.eye(len(kept))
        assert part.max() <= limit


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


def test_bets_say_that_they_are_simulated(tmp_path):
    done = run_example("factor_bets.py", tmp_path, "--days", "260")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("Simulated factor returns:")
    kept = re.search(r"CORAL, floor 0.9 .*on average and (\d\.\d+) at least", done.stdout)
    assert float(kept.group(1)) >= 0.9
    assert "141 windows" in done.stdout


def test_shares_add_up(tmp_path):
    done = run_example("shares.py", tmp_path)
    assert done.returncode == 0, done.stderr
    (whole,) = re.findall(r"R2 = (\S+);", done.stdout)
    (sums,) = re.findall(r"^sum +(\S+) +(\S+) +(\S+)$", done.stdout, re.MULTILINE)
    alone, added, share = map(float, sums)
    assert share == float(whole)
    assert 3 * added < share < alone / 2.5


def test_sites_fit_one_model_together(tmp_path):
    done = run_example("federated_moments.py", tmp_path)
    assert done.returncode == 0, done.stderr
    assert "fitted together: 178 rows" in done.stdout
    (difference,) = re.findall(r"pooled rows: (\S+)", done.stdout)
    assert float(difference) < 1e-12
