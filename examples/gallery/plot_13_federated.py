"""
Federated moments: one model, no rows exchanged
===============================================

Three sites measure the same variables and may not share their rows. Each writes a file of sums: a
count, one mean per column, one co-moment per pair of columns. The files travel, the rows stay.
Whoever collects the files merges them and solves once; the model is that of all rows together, to
rounding.
"""

# %%
# At each site
# ------------
# The Wine data, one cultivar per site, so that the sites are as different as they can be. Sums over
# very few rows can give rows away (those of one row *are* that row), so a site sends nothing before
# it has enough.

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_wine

from skcoral import CORAL
from skcoral.data.moments import Moments, merge_all
from skcoral.models import load_moments, save_moments

LEAST_ROWS = 20
wine = load_wine()
names = [name.replace("od280/od315_of_diluted_wines", "od280/od315") for name in wine.feature_names]
folder = Path(tempfile.mkdtemp())


def at_a_site(rows, path):
    """What runs where the rows are; nothing but the file leaves."""
    if len(rows) < LEAST_ROWS:
        raise SystemExit(f"{len(rows)} rows are too few to share sums of.")
    moments = Moments(names)
    for start in range(0, len(rows), 25):  # as they come in; any batch size gives the same
        moments.update(rows[start : start + 25])
    save_moments(moments, path)


files = [folder / f"site-{k + 1}.json" for k in range(3)]
for k, path in enumerate(files):
    rows = wine.data[wine.target == k]
    at_a_site(rows, path)
    print(f"{path.name}: {path.stat().st_size} bytes for {len(rows)} rows")

# %%
# Where the files meet
# --------------------
# Names are compared, so a site with another order of columns is refused instead of mixed up.


def at_the_centre(paths):
    """What runs where the files meet; it sees no row."""
    parts = [load_moments(path) for path in paths]
    return parts, CORAL(rho_min=0.8).fit_moments(merge_all(parts))


parts, model = at_the_centre(files)
print(f"fitted together: {model.n_samples_seen_} rows")
print(model.summary())

# %%
# It is the model that would have been fitted if all rows had been in one place:

pooled = CORAL(rho_min=0.8).fit(wine.data)
difference = np.abs(model.T_ - pooled.T_).max()
print(f"largest difference from the model of the pooled rows: {difference:.1e}")
assert difference < 1e-12

# %%
# Why not average the sites' correlations?
# ----------------------------------------
# Because differences *between* sites are correlation, too. Within the sites flavanoids and hue
# are hardly related, or negatively; over all wines they go together, because one cultivar is low in
# both. The merged moments know this, an average of three matrices does not.


def correlation(moments):
    return moments.covariance / np.outer(moments.scale, moments.scale)


inside = [correlation(part) for part in parts]
merged = correlation(merge_all(parts))
weights = np.array([len(wine.data[wine.target == k]) for k in range(3)]) / len(wine.data)
average = np.einsum("k,kij->ij", weights, np.array(inside))
i, j = names.index("flavanoids"), names.index("hue")
print("flavanoids and hue, by site:", [f"{M[i, j]:.2f}" for M in inside])
print(f"averaged {average[i, j]:.2f}, merged {merged[i, j]:.2f}")
assert np.allclose(merged, np.corrcoef(wine.data.T), atol=1e-12)
assert max(M[i, j] for M in inside) < 0.1 < merged[i, j]
lowest = [wine.data[wine.target == k][:, [i, j]].mean(axis=0) for k in range(3)]
assert (np.argmin(lowest, axis=0) == 2).all()  # the third cultivar is low in both

figure, axes = plt.subplots(2, 2, figsize=(6.2, 5.6), layout="constrained")
titles = [f"site {k + 1}, {(wine.target == k).sum()} rows" for k in range(3)]
titles.append(f"merged, {len(wine.data)} rows")
for ax, M, title in zip(axes.flat, [*inside, merged], titles, strict=True):
    image = ax.imshow(M, cmap="RdBu_r", vmin=-1, vmax=1, interpolation="nearest")
    for a, b in ((i, j), (j, i)):
        ax.add_patch(plt.Rectangle((b - 0.5, a - 0.5), 1, 1, fill=False, color="#1f2933", lw=1.5))
    ax.set_xticks([])
    ax.set_yticks([])
    ax.set_title(title, fontsize=11)
figure.colorbar(image, ax=axes, label="correlation", shrink=0.6)
plt.show()

# %%
# The framed cells are flavanoids and hue. Two files of one site that differ by a single row differ
# by that row: let each site decide how many rows it takes before it sends, and send once. In the
# guide: :doc:`many rows </guide/many_rows>`.
