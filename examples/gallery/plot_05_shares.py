"""
Shares of R² that add up
========================

Which variable explains how much? Correlated predictors share what they explain. What each explains
alone adds up to too much, and what each adds to all others adds up to too little. Decorrelated
predictors do not share anything, so their squared correlations with the target add up to the R² of
the regression exactly.

CORAL gives one such split. Three established ones stand beside it: Johnson's relative weights, CAR
scores, and LMG (also known as the Shapley value of R²). The verdict at the end is not that CORAL is
the best of them.
"""

# %%
# The data
# --------
# Disease progression of 442 diabetes patients, ten predictors (Efron, Hastie, Johnstone and
# Tibshirani 2004; part of scikit-learn). Two of the predictors, s1 and s2 (total and LDL
# cholesterol), are strongly correlated.

from itertools import combinations
from math import factorial

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.datasets import load_diabetes

from skcoral import threshold
from skcoral.baselines import zca_cor

data = load_diabetes(as_frame=True)
R = data.data.corr()
r = data.data.corrwith(data.target).to_numpy()  # correlations with the target
p = len(R)
whole = float(r @ np.linalg.solve(R, r))
print(f"R² = {whole:.4f}; correlation of s1 and s2: {R.loc['s1', 's2']:.3f}")

# %%
# Four splits of the same R²
# --------------------------
# - **CORAL**: the squared correlation of each output with the target. At ρ★ every output keeps as
#   much of its variable as can be promised to all.
# - **CAR scores** (Zuber and Strimmer): the same for the outputs of ZCA-cor.
# - **Johnson's relative weights**: the shares of the ZCA-cor outputs, given back to the variables
#   by their squared correlations with the outputs.
# - **LMG**: what a variable adds to R² when it enters, averaged over all orders of entry.


def lmg(R, r):
    """Average gain in R² over all orders of entry, from the R² of all 2^p subsets."""
    p = len(r)
    explained = {(): 0.0}
    for size in range(1, p + 1):
        for subset in combinations(range(p), size):
            part = R[np.ix_(subset, subset)]
            explained[subset] = float(r[list(subset)] @ np.linalg.solve(part, r[list(subset)]))
    shares = np.zeros(p)
    for subset, value in explained.items():
        size = len(subset)
        inside = factorial(size - 1) * factorial(p - size) / factorial(p) if size else 0.0
        outside = factorial(size) * factorial(p - size - 1) / factorial(p) if size < p else 0.0
        members = np.isin(np.arange(p), subset)
        shares += np.where(members, inside, -outside) * value
    return shares


def splits(R, r):
    coral, zca = threshold(R).T, zca_cor(R).T
    return {
        "CORAL": (coral.T @ r) ** 2,
        "CAR": (zca.T @ r) ** 2,
        "Johnson": (R @ zca) ** 2 @ (zca.T @ r) ** 2,
        "LMG": lmg(R, r),
    }


shares = pd.DataFrame(splits(R.to_numpy(), r), index=R.columns)
alone = pd.Series(r**2, index=R.columns)
added = pd.Series(
    (np.linalg.solve(R, r) ** 2) / np.diag(np.linalg.inv(R)), index=R.columns
)  # R² less the R² without the variable
fidelity = pd.Series(threshold(R).fidelity, index=R.columns, name="fidelity")
print(shares.assign(alone=alone, added=added, fidelity=fidelity).round(4).to_string())
print(
    f"\nsums: alone {alone.sum():.3f}, added {added.sum():.3f}, each of the four splits "
    f"{shares.sum().min():.3f} to {shares.sum().max():.3f}"
)
assert np.allclose(shares.sum(), whole)
assert added.sum() < whole < alone.sum()
assert zca_cor(R).fidelity.mean() > fidelity.mean()
assert zca_cor(R).fidelity.min() < fidelity.min()

# %%
# The same two variables come first in all four splits, but not in the same order: CORAL gives much
# more to s5 and less to bmi than the others do.

assert all(set(shares[name].nlargest(2).index) == {"bmi", "s5"} for name in shares)
assert (shares.drop(columns="CORAL").idxmax() == "bmi").all()
assert shares["CORAL"].idxmax() == "s5"

colours = {"CORAL": "#0072B2", "CAR": "#E69F00", "Johnson": "#009E73", "LMG": "#1f2933"}
figure, ax = plt.subplots(figsize=(7.4, 4.0), layout="constrained")
x = np.arange(p)
for k, (name, colour) in enumerate(colours.items()):
    ax.bar(x + 0.2 * (k - 1.5), shares[name], width=0.19, color=colour, label=name)
ax.set_xticks(x, R.columns)
ax.set_ylabel("share of R²")
ax.set_title(f"Four splits of R² = {whole:.3f}, each adds up", loc="left")
ax.legend(frameon=False, ncols=4)
ax.spines[["top", "right"]].set_visible(False)

# %%
# Is CORAL closer to LMG?
# -----------------------
# LMG is the split with the best-known justification, and needs the R² of all :math:`2^p` subsets.
# A cheap split that came close to it would be welcome. Here is the distance of each, as the part
# of R² that would have to move from one variable to another, for the diabetes data:

moved = shares.sub(shares["LMG"], axis=0).abs().sum() / 2 / whole
print(moved.round(3).to_string())
assert moved["Johnson"] < moved["CORAL"]

# %%
# One data set proves little. The same for 150 simulated regressions with six predictors, whose
# correlations come from two factors and whose coefficients are drawn at random:

rng = np.random.default_rng(0)
distances = []
for _ in range(150):
    loadings = rng.normal(size=(6, 2))
    cov = loadings @ loadings.T + np.diag(rng.uniform(0.2, 1.0, size=6))
    sd = np.sqrt(np.diag(cov))
    C = cov / np.outer(sd, sd)
    beta = rng.normal(size=6)
    target = C @ beta / np.sqrt(beta @ C @ beta)  # R² = 1; the shares only scale with it
    found = splits(C, target)
    distances.append(
        [np.abs(found[name] - found["LMG"]).sum() / 2 for name in ("CORAL", "CAR", "Johnson")]
    )
distances = pd.DataFrame(distances, columns=["CORAL", "CAR", "Johnson"])
closer = (distances["CORAL"] < distances["CAR"]).mean()
print("mean distance from LMG:", distances.mean().round(3).to_dict())
print(f"CORAL closer than CAR in {closer:.0%}, closest of the three in "
      f"{(distances.idxmin(axis=1) == 'CORAL').mean():.0%} of the regressions")  # fmt: skip
assert distances["Johnson"].mean() < distances["CAR"].mean() < distances["CORAL"].mean()

figure, ax = plt.subplots(figsize=(5.6, 3.4), layout="constrained")
parts = ax.boxplot(
    distances, widths=0.6, patch_artist=True, showfliers=False,
    medianprops={"color": "#1f2933"}, tick_labels=distances.columns,
)  # fmt: skip
for box, name in zip(parts["boxes"], distances.columns, strict=True):
    box.set_facecolor(colours[name])
ax.set_ylabel("distance from LMG,\nas a part of R²")
ax.set_ylim(0, None)
ax.spines[["top", "right"]].set_visible(False)
plt.show()

# %%
# Verdict
# -------
# CORAL is **not** closer to LMG; Johnson's relative weights are, by far, and they cost no more.
# Take LMG, or Johnson's weights where the predictors are many, if the question is how to share R²
# among the *variables*.
#
# Take CORAL if the outputs themselves are used afterwards: its shares are those of columns that
# exist, that can be plotted and put into a model, that do not overlap, and each of which keeps a
# known fidelity to the variable whose name it bears. CAR scores have the same property with a
# larger mean and a smaller minimum of that fidelity.
