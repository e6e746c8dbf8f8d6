"""What four ways of decorrelating leave of the Wine data, as the table of the README.

Prints the table in Markdown.
"""

from __future__ import annotations

import numpy as np

from skcoral import decorrelate, threshold
from skcoral.baselines import pca, zca_cor
from skcoral.datasets import load_wine
from skcoral.measures import worst_residual

FLOOR = 0.9
HEADER = ("Wine, 13 variables", "outputs", "largest \\|r\\|", "weakest fidelity", "mean fidelity")


def main() -> None:
    for row in (HEADER, ("---",) * len(HEADER), *rows()):
        print("| " + " | ".join(row) + " |")


def rows() -> list[tuple[str, ...]]:
    R = load_wine().correlation
    exact, chosen = threshold(R), decorrelate(R, FLOOR)
    left = worst_residual(R, chosen.T)
    kept = drop_columns(R, left)
    return [
        ("as they are", "13", f"{worst_residual(R, np.eye(13)):.2f}", "1", "1"),
        (
            f"dropping columns, none above {left:.2f}",
            f"{len(kept)} of 13",
            f"{worst_residual(R[np.ix_(kept, kept)], np.eye(len(kept))):.2f}",
            f"1, but {13 - len(kept)} are gone",
            "",
        ),
        described("PCA, best matching", pca(R).fidelity, 0.0),
        described("ZCA-cor", zca_cor(R).fidelity, 0.0),
        described("CORAL at ρ★", exact.fidelity, worst_residual(R, exact.T)),
        described(f"CORAL, floor {FLOOR:g}", chosen.fidelity, left),
    ]


def described(name: str, fidelity: np.ndarray, left: float) -> tuple[str, ...]:
    largest = "0" if left < 1e-8 else f"{left:.2f}"
    return (name, "13", largest, f"{fidelity.min():.3f}", f"{fidelity.mean():.3f}")


def drop_columns(R: np.ndarray, limit: float) -> list[int]:
    """Of the strongest pair, drop the column with the larger mean correlation, until it is weak."""
    kept = list(range(len(R)))
    while True:
        size = np.abs(R[np.ix_(kept, kept)]) - np.eye(len(kept))
        i, j = np.unravel_index(size.argmax(), size.shape)
        if size[i, j] <= limit:
            return kept
        kept.pop(int(i if size[i].mean() >= size[j].mean() else j))


if __name__ == "__main__":
    main()
