"""The gallery: each example runs without a warning and draws; the README has its figures."""

import functools
import re
import runpy
import socket
import sys
from itertools import permutations
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pytest

ROOT = Path(__file__).parents[1]
GALLERY = ROOT / "examples" / "gallery"
EXAMPLES = sorted(path.stem for path in GALLERY.glob("*.py"))


def offline(*arguments):
    raise AssertionError("an example of the gallery needs the network")


@functools.cache
def run(name):
    """The names that an example defines, after it has run in its own folder as for the site."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(GALLERY)
        patch.setattr(socket.socket, "connect", offline)
        plt.switch_backend("agg")
        plt.close("all")
        names = runpy.run_path(f"{name}.py")
        names["figures"] = [plt.figure(number) for number in plt.get_fignums()]
        plt.close("all")
    return names


@pytest.mark.slow  # building the documentation runs every example as well
@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_runs_without_a_warning_and_draws(name):
    figures = run(name)["figures"]
    assert figures
    for figure in figures:
        assert any(ax.has_data() or ax.collections or ax.images for ax in figure.axes)


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_has_a_title_true_links_and_names_its_data(name):
    text = (GALLERY / f"{name}.py").read_text("utf-8")
    title, line = text.split("\n")[1:3]
    assert line == "=" * len(title)
    assert re.fullmatch(r"plot_\d\d_\w+", name)
    for other in re.findall(r"<sphx_glr_gallery_(\w+)\.py>", text):
        assert other in EXAMPLES
    known = "load_wine|load_diabetes|load_breast_cancer|wdi_correlation|Longley"
    if not re.search(f"{known}|Kenneth R. French|American National Election Studies", text):
        assert "**simulated**" in text


def test_the_picture_of_the_readme_is_drawn_anew(tmp_path, monkeypatch):
    path = tmp_path / "idea.png"
    monkeypatch.setattr(sys, "argv", ["idea_figure.py", str(path)])
    with plt.rc_context():
        runpy.run_path(str(ROOT / "examples" / "idea_figure.py"), run_name="__main__")
    plt.close("all")
    committed = (ROOT / "docs" / "images" / "idea.png").read_bytes()
    assert path.read_bytes()[:8] == committed[:8] == b"\x89PNG\r\n\x1a\n"


def test_the_readme_compares_the_methods_with_the_figures_of_today():
    table = run("plot_02_methods")["table"]
    page = (ROOT / "README.md").read_text("utf-8")
    rows = dict(re.findall(r"^\| ([^|]+?) \| (\d.*?) \|$", page, re.MULTILINE))
    left = table.loc["CORAL, floor 0.9", "largest |r|"]
    for name, limit in {"by correlation": f"{left:.2f}", "by VIF": "2"}.items():
        few, largest, inflation = table.loc[
            f"dropping {name}", ["outputs", "largest |r|", "largest VIF"]
        ]
        row = rows.pop(f"dropping {name}, none above {limit}")
        figures = f"{few:.0f} of 13 | {largest:.2f} | {inflation:.1f}"
        assert row.startswith(f"{figures} | 1, but {13 - few:.0f} are gone")
        assert re.search(rf"leaves {few:.0f}\b", page)
    assert len(rows) == 6
    for name, row in rows.items():
        outputs, largest, inflation, weakest, mean = table.loc[
            name.removesuffix(", best matching"),
            ["outputs", "largest |r|", "largest VIF", "weakest", "mean"],
        ]
        residual = f"{largest:.2f}" if largest > 1e-8 else "0"
        fidelities = "1 | 1" if weakest == 1 else f"{weakest:.3f} | {mean:.3f}"
        assert row == f"{outputs:.0f} | {residual} | {inflation:.1f} | {fidelities}"
    zca, coral = table.loc["ZCA-cor"], table.loc["CORAL at ρ★"]
    assert (
        f"higher mean ({zca['mean']:.3f} against {coral['mean']:.3f}) and CORAL the higher minimum "
        f"({coral['weakest']:.3f} against {zca['weakest']:.3f})"
    ) in page


def test_dropping_columns_leaves_none_above_the_limit():
    example = run("plot_02_methods")
    R = example["R"]
    for limit in (0.2, 0.31, 0.6, 0.9):
        remaining = example["drop_columns"](R, limit)
        part = np.abs(R[np.ix_(remaining, remaining)]) - np.eye(len(remaining))
        assert part.max() <= limit


def test_lmg_is_the_mean_gain_over_all_orders_of_entry():
    rng = np.random.default_rng(0)
    R = np.corrcoef(rng.normal(size=(30, 4)).T)
    r = R @ [0.2, -0.1, 0.3, 0.05]

    def explained(subset):
        subset = list(subset)
        return r[subset] @ np.linalg.solve(R[np.ix_(subset, subset)], r[subset])

    gains = np.zeros(4)
    orders = list(permutations(range(4)))
    for order in orders:
        for k, j in enumerate(order):
            gains[j] += explained(order[: k + 1]) - (explained(order[:k]) if k else 0.0)
    assert np.allclose(run("plot_05_shares")["lmg"](R, r), gains / len(orders), atol=1e-12)
