"""
For indicator builders: weights with a known direction
======================================================

Indices of development are composites: health, prosperity, investment. They overlap, because healthy
countries are prosperous ones. CORAL takes the overlap out, and left alone it may use any indicator
with any sign to do so. An index maker knows more than that: which indicators belong to an index,
that more of each should never lower it, and roughly how much another indicator may be subtracted.
All of this goes into one table with the columns ``source``, ``output``, ``lower`` and ``upper``.
"""

# %%
# Three indices of eight indicators
# ---------------------------------
# The correlation matrix of 137 countries in 2019 is part of the package (World Bank, World
# Development Indicators, CC BY 4.0; correlations computed by the scikit-coral maintainers).
# Fertility and child mortality get the opposite sign, so that more is better throughout.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from skcoral import decorrelate
from skcoral.certificates import check
from skcoral.datasets import wdi_correlation

wdi = wdi_correlation()
names = [name.replace("_", " ") for name in wdi.names]
sign = np.where(np.isin(names, ["fertility", "under5 mortality"]), -1.0, 1.0)
names = [f"low {name}" if s < 0 else name for name, s in zip(names, sign, strict=True)]
R = pd.DataFrame(wdi.correlation * np.outer(sign, sign), index=names, columns=names)
indices = {
    "health": ["life expectancy", "low under5 mortality", "low fertility"],
    "prosperity": ["gdp per capita", "internet use", "urban population"],
    "investment": ["education expenditure", "capital formation"],
}
B = pd.DataFrame({index: np.isin(names, own) * 1.0 for index, own in indices.items()}, index=names)
overlap = B.T @ R @ B
scale = np.sqrt(np.diag(overlap))
overlap = overlap / np.outer(scale, scale)
print(overlap.round(2).to_string())

# %%
# Without a direction
# -------------------
# ``anchors=B`` keeps every output close to its index, here to a correlation of 0.9. Health and
# prosperity, correlated by 0.77, become uncorrelated. Every indicator enters every output, most of
# them with a minus somewhere: explaining the health index takes all eight.

free = decorrelate(R, 0.9, anchors=B)
assert free.status == "exact"
loadings = pd.DataFrame(free.T, index=names, columns=list(indices))
print(loadings.round(2).to_string())
print(f"coefficients other than zero: {(np.abs(free.T) > 1e-9).sum()}")

# %%
# What is known, as a table
# -------------------------
# An index consists of its own indicators, each with a coefficient of at least 0.1: the direction is
# known, and none may be left out. From health, income may be subtracted, and child mortality from
# prosperity, at most 0.3 standard deviations of it. Nothing else enters. An empty cell means no
# limit.

rows = [(source, index, 0.1, None) for index, own in indices.items() for source in own]
rows += [("gdp per capita", "health", -0.3, 0.0), ("low under5 mortality", "prosperity", -0.3, 0.0)]
known = pd.DataFrame(rows, columns=["source", "output", "lower", "upper"])
print(known.to_string(index=False))

answer = decorrelate(R, 0.9, anchors=B, support=known)
loadings = pd.DataFrame(answer.T, index=names, columns=list(indices))
print(loadings.round(2).to_string())
for row in known.itertuples():
    value = loadings.loc[row.source, row.output]
    assert value >= row.lower
    assert not value > row.upper  # no limit: NaN
assert (answer.T != 0).sum() == len(known)
assert answer.min_fidelity >= 0.9 - 1e-10

# %%
# What the knowledge costs
# ------------------------
# The restricted outputs are no longer uncorrelated. How much correlation has to stay is bracketed:
# the answer attains the upper number, and no transformation within the same support and floors,
# whatever its signs, falls below the lower one.


def largest(G):
    return float(np.abs(G - np.eye(len(G))).max())


before, after, unrestricted = map(
    largest, (overlap.to_numpy(), answer.correlation, free.correlation)
)
print(f"largest correlation between indices: {before:.2f} before,")
print(f"{after:.2f} with known directions, {unrestricted:.2f} without")
print(f"sum of squares: {answer.objective:.4f}, proved to be at least {answer.lower_bound:.4f}")
assert check(answer, R).passed
assert unrestricted < 1e-8 < after < 0.2 < before

figure, axes = plt.subplots(1, 2, figsize=(8.4, 3.8), sharey=True, layout="constrained")
for ax, T, title in zip(axes, (free.T, answer.T), ("free", "known directions"), strict=True):
    ax.imshow(np.where(T == 0, np.nan, T), cmap="PuOr", vmin=-1.1, vmax=1.1, aspect="auto")
    for i, j in np.argwhere(T != 0):
        ax.text(j, i, f"{T[i, j]:.2f}", ha="center", va="center", fontsize=9)
    ax.set_title(title, loc="left")
    ax.set_xticks(range(len(indices)), list(indices))
    ax.set_yticks(range(len(names)), names)
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
plt.show()

# %%
# For a table of rows, ``CORAL(rho_min=0.9, anchors=B, support=known)`` does the same. In the guide:
# :doc:`composites </guide/composites>` and :doc:`which sources may enter </guide/sources>`.
