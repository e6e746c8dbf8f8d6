"""
Which method when
=================

Seven ways to get rid of correlation, on the same 13 measurements of wine, judged by the same
figures: how much correlation is left, and how much of each variable is kept. No method wins in
every column, and the page ends with what each of them is good for.
"""

# %%
# The methods
# -----------
# *Fidelity* is the correlation of an output with the variable whose name it bears. Principal
# components have no names of their own: each is matched to one variable, in the way that makes the
# least fidelity as large as possible. The same is done for sparse components. ZCA depends on the
# units of the columns, Cholesky (Gram–Schmidt) on their order.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from skcoral import decorrelate, maximize_fidelity, threshold
from skcoral.baselines import cholesky, pca, sparse_pca, zca, zca_cor
from skcoral.data.effects import measure_matrix
from skcoral.datasets import load_wine

wine = load_wine().to_frame()
R = wine.corr().to_numpy()
p = len(R)
chosen = decorrelate(R, 0.9)

transformations = {
    "as they are": np.eye(p),
    "PCA": pca(R).T,
    "sparse PCA": sparse_pca(R, alpha=0.1).T,
    "Cholesky": cholesky(R).T,
    "ZCA": zca(R, scale=wine.std()).T,
    "ZCA-cor": zca_cor(R).T,
    "CORAL at ρ★": threshold(R).T,
    "CORAL, floor 0.9": chosen.T,
    "CORAL, no VIF above 2": maximize_fidelity(R, 2, criterion="vif").T,
}

# %%
# Dropping columns is a method, too. Of the strongest pair, the column that is correlated more with
# all others goes, until no correlation is larger than what CORAL leaves at a floor of 0.9. Or the
# column with the largest VIF goes, until none is above 2.


def drop_columns(R, limit):
    kept = list(range(len(R)))
    while True:
        size = np.abs(R[np.ix_(kept, kept)]) - np.eye(len(kept))
        i, j = np.unravel_index(size.argmax(), size.shape)
        if size[i, j] <= limit:
            return kept
        kept.pop(int(i if size[i].mean() >= size[j].mean() else j))


def vif(R):
    return np.diag(np.linalg.inv(R))


def drop_by_vif(R, limit):
    kept = list(range(len(R)))
    while (factors := vif(R[np.ix_(kept, kept)])).max() > limit:
        kept.pop(int(factors.argmax()))
    return kept


dropped = {
    "dropping by correlation": drop_columns(R, chosen.measured.largest_correlation),
    "dropping by VIF": drop_by_vif(R, 2),
}
for name, kept in dropped.items():
    print(f"{name} keeps {len(kept)} of {p} columns:", ", ".join(wine.columns[kept]))

# %%
# One table
# ---------


def judge(T):
    """Figures of the outputs of standardised variables with correlation matrix R."""
    measured = measure_matrix(R, T)
    return {
        "outputs": T.shape[1],
        "largest |r|": measured.largest_correlation,
        "largest VIF": measured.largest_vif,
        "weakest": measured.min_fidelity,
        "mean": measured.mean_fidelity,
        "sources per output": np.mean((np.abs(T) > 1e-9).sum(axis=0)),
    }


table = pd.DataFrame({name: judge(T) for name, T in transformations.items()}).T
for name, kept in dropped.items():
    part = R[np.ix_(kept, kept)]
    table.loc[name] = {
        "outputs": len(kept),
        "largest |r|": np.abs(part - np.eye(len(kept))).max(),
        "largest VIF": vif(part).max(),
        "weakest": 1.0,  # of those that are left
        "mean": 1.0,
        "sources per output": 1.0,
    }
table = table.astype({"outputs": int})
print(table.round(3).to_string())

# %%
# Fidelity of every variable, one dot each. What is left of the correlation stands at the right. A
# column that was dropped has a dot at zero here: nothing is kept of it.

order = [
    "PCA", "sparse PCA", "Cholesky", "ZCA", "ZCA-cor", "CORAL at ρ★", "CORAL, floor 0.9",
    "CORAL, no VIF above 2", "dropping by correlation", "dropping by VIF",
]  # fmt: skip
blue, grey, orange, ink = "#0072B2", "#5f6b7a", "#D55E00", "#1f2933"
figure, ax = plt.subplots(figsize=(6.8, 4.8), layout="constrained")
for y, name in enumerate(order):
    if name in transformations:
        dots = np.diag(R @ transformations[name])
    else:
        dots = np.where(np.isin(np.arange(p), dropped[name]), 1.0, 0.0)
    colour = blue if "CORAL" in name else grey
    level = y + 0.26 * (np.argsort(np.argsort(dots)) / (p - 1) - 0.5) * 2
    ax.scatter(dots, level, s=34, color=colour, alpha=0.75, linewidths=0, zorder=3)
    ax.plot([dots.min()] * 2, [y - 0.36, y + 0.36], color=orange, linewidth=2.5, zorder=4)
    rest = table.loc[name, "largest |r|"]
    ax.text(1.04, y, "0" if rest < 1e-8 else f"{rest:.2f}", va="center", color=ink)
ax.text(1.04, -0.85, "largest |r|\nthat is left", va="bottom", color=ink, fontsize=9)
ax.set_yticks(range(len(order)), order)
ax.set_ylim(len(order) - 0.5, -0.6)
ax.set_xlim(-0.04, 1.02)
ax.set_xlabel("correlation of each output with its own variable (orange: the weakest)")
ax.set_title("What each method keeps of 13 variables", loc="left")
ax.grid(axis="x", color="#d7dce2", linewidth=0.7)
ax.spines[["top", "right", "left"]].set_visible(False)
ax.tick_params(left=False)
plt.show()

# %%
# What the table says, checked here so that the text below stays true:

exact = table[table["largest |r|"] < 1e-8]
assert exact["mean"].idxmax() == "ZCA-cor"
assert exact["weakest"].idxmax() == "CORAL at ρ★"
assert table.loc["sparse PCA", "largest |r|"] > table.loc["CORAL, floor 0.9", "largest |r|"]
assert table.loc["sparse PCA", "weakest"] < table.loc["CORAL, floor 0.9", "weakest"]
assert table.loc["sparse PCA", "sources per output"] < table.loc["Cholesky", "sources per output"]
assert table.loc["sparse PCA", "largest |r|"] > table.loc["as they are", "largest |r|"]
print(table.loc[["ZCA-cor", "CORAL at ρ★"], ["weakest", "mean"]].round(3))

# %%
# Which when
# ----------
# - **Only predictions count**: none of them. Ridge regression or a tree ensemble copes with
#   correlated columns as they are.
# - **Columns may go**: drop them. What is left is exactly what was measured.
# - **Fewer, nameless summaries are wanted**: PCA. The first few components keep more
#   of the total variance than any other few linear combinations.
# - **Loadings with many zeros are wanted**: sparse PCA. It does not try to decorrelate, and leaves
#   more correlation here than there was.
# - **There is a natural order** (first this, then what that adds to it): Cholesky. The first
#   variable stays as it is, and the last one pays.
# - **No correlation may be left, and the average variable counts**: ZCA-cor has the largest mean
#   fidelity there is, in closed form. ZCA does the same in the units of the columns, which favours
#   the columns with large numbers.
# - **No correlation may be left, and no variable may be lost**: CORAL at ρ★ has the largest weakest
#   fidelity there is, and a smaller mean than ZCA-cor.
# - **Some correlation is bearable**: CORAL with a floor. It is the only one here with a knob
#   between "as they are" and "uncorrelated".
