"""Tables that people bring, made on the spot."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_iris


@pytest.fixture(scope="session")
def iris_csv(tmp_path_factory) -> Path:
    """Iris with its species as a text column in the middle."""
    data = load_iris()
    path = tmp_path_factory.mktemp("iris") / "iris.csv"
    lines = ["sepal_length,sepal_width,species,petal_length,petal_width"]
    for row, kind in zip(data.data.tolist(), data.target, strict=True):
        a, b, c, d = map(repr, row)
        lines.append(f"{a},{b},{data.target_names[kind]},{c},{d}")
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture(scope="session")
def birds_csv(tmp_path_factory) -> Path:
    """Text with commas and marks, dates, and missing values written in two ways."""
    rng = np.random.default_rng(3)
    sizes = rng.normal(size=(120, 1)) * [5, -1, 12, 700] + np.array([44, 17, 200, 4200])
    noise = rng.normal(size=(120, 4)) * [1, 1, 4, 300]
    cells = [[f"{x:.1f}" for x in row] for row in sizes + noise]
    cells[3], cells[10][3] = ["NA"] * 4, ""
    lines = ["island,bill_length,bill_depth,seen,flipper,mass,sex"]
    for i, (b, d, f, m) in enumerate(cells):
        sex = ["male", "female", "NA"][i % 3]
        lines.append(f'"Dream, {i % 2}",{b},{d},2009-11-{i % 28 + 1:02d},{f},{m},{sex}')
    path = tmp_path_factory.mktemp("birds") / "birds.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture(scope="session")
def dependent_csv(tmp_path_factory) -> Path:
    """A table in which one column is the sum of two others and one never changes."""
    rng = np.random.default_rng(5)
    a, b, c = rng.normal(size=(3, 40))
    path = tmp_path_factory.mktemp("dependent") / "dependent.csv"
    table = np.column_stack([a, b, c, a + b, np.full(40, 7.0)])
    np.savetxt(path, table, fmt="%.17g", delimiter=",", header="a,b,c,total,same", comments="")
    return path
