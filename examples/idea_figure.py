"""The picture at the top of the README: Wine before and after, and what each output keeps.

Writes docs/images/idea.png, or the file named on the command line.
"""

from __future__ import annotations

import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

from skcoral import decorrelate
from skcoral.datasets import load_wine

FLOOR = 0.9
BLUE, INK = "#0072B2", "#1f2933"


def main(path: Path) -> None:
    wine = load_wine()
    R = wine.correlation
    answer = decorrelate(R, FLOOR)
    figure, (left, middle, right) = plt.subplots(
        1, 3, figsize=(11.5, 3.9), width_ratios=(1, 1.05, 1), layout="constrained"
    )
    matrix(left, R, f"13 measurements of wine\nlargest correlation {largest(R):.2f}")
    places = np.arange(len(R))
    middle.barh(places, answer.fidelity, color=BLUE, height=0.62)
    middle.axvline(FLOOR, color=INK, linewidth=1, linestyle=(0, (4, 3)))
    middle.set_yticks(places, [name.replace("_", " ") for name in wine.names], fontsize=8)
    middle.set_ylim(len(R) - 0.4, -0.6)
    middle.set_xlim(0, 1)
    middle.set_title(
        f"each output stays its own variable:\ncorrelation with it at least {FLOOR:g}", fontsize=11
    )
    for side in ("top", "right"):
        middle.spines[side].set_visible(False)
    after = answer.correlation
    matrix(
        right, after, f"13 outputs with the same names\nlargest correlation {largest(after):.2f}"
    )
    figure.savefig(path, dpi=130, metadata={"Software": None})


def matrix(ax: plt.Axes, M: np.ndarray, title: str) -> None:
    ax.imshow(M, cmap="RdBu_r", vmin=-1, vmax=1, interpolation="nearest")
    ax.set_xticks([])
    ax.set_yticks([])
    ax.set_title(title, fontsize=11)


def largest(M: np.ndarray) -> float:
    return np.abs(M - np.eye(len(M))).max()


if __name__ == "__main__":
    here = Path(__file__).parents[1] / "docs" / "images" / "idea.png"
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else here)
