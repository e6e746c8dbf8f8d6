"""Three sites that may not share rows fit one model together.

Each site writes a file of sums over its rows: a count, one mean per column, one co-moment per pair
of columns. The files travel, the rows stay. Whoever collects them merges the sums and solves once;
the model is that of all rows together, to rounding.

    python examples/federated_moments.py

Sums over very few rows can give rows away (those of one row *are* that row), so a site should not
send a file of fewer rows than its rules allow.
"""

import tempfile
from pathlib import Path

import numpy as np
from sklearn.datasets import load_wine

from skcoral import CORAL
from skcoral.io import load_model, load_moments, save_model, save_moments
from skcoral.moments import Moments, merge_all

LEAST_ROWS = 20


def at_a_site(rows, names, path):
    """What runs where the rows are; nothing but the file leaves."""
    if len(rows) < LEAST_ROWS:
        raise SystemExit(f"{len(rows)} rows are too few to share sums of.")
    moments = Moments(names)
    for start in range(0, len(rows), 25):  # as they come in; any batch size gives the same
        moments.update(rows[start : start + 25])
    save_moments(moments, path)


def at_the_centre(paths, model_path):
    """What runs where the files meet; it sees no row."""
    moments = merge_all(load_moments(path) for path in paths)
    model = CORAL(rho_min=0.8, output_scale="original").fit_moments(moments)
    save_model(model, model_path)


def main():
    wine = load_wine()
    X, names = wine.data, wine.feature_names
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        files = [folder / f"site-{k}.json" for k in range(3)]
        for k, path in enumerate(files):
            # one cultivar per site: the sites are as different as they can be
            at_a_site(X[wine.target == k], names, path)
            print(f"{path.name}: {path.stat().st_size} bytes for {(wine.target == k).sum()} rows")
        at_the_centre(files, folder / "model.json")
        model = load_model(folder / "model.json")

    pooled = CORAL(rho_min=0.8, output_scale="original").fit(X)
    difference = np.abs(model.T_ - pooled.T_).max()
    print(f"fitted together: {model.n_samples_seen_} rows, {model.result_!r}")
    print(f"largest difference from the model of the pooled rows: {difference:.1e}")


if __name__ == "__main__":
    main()
