"""
For indicator builders: composites without double counting
==========================================================

An index that gives eight indicators equal weights does not give them equal influence: where
several of them measure much the same, that theme counts several times. Here an index of
development is built from indicators that were decorrelated first, each still bound to its own
name. The page shows what the weights on the *original* indicators become, signs included, and when
they become unacceptable.
"""

# %%
# Eight World Development Indicators
# ----------------------------------
# The correlation matrix of 137 countries in 2019 is part of the package (World Bank, World
# Development Indicators, CC BY 4.0; correlations computed by the scikit-coral maintainers).
# Fertility and child mortality get the opposite sign first, so that more is better throughout;
# whether more urban population or capital formation *is* better is the index maker's judgement.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from skcoral import decorrelate, threshold
from skcoral.datasets import wdi_correlation

wdi = wdi_correlation()
names = [name.replace("_", " ") for name in wdi.names]
sign = np.where(np.isin(names, ["fertility", "under5 mortality"]), -1.0, 1.0)
names = [f"low {name}" if s < 0 else name for name, s in zip(names, sign, strict=True)]
R = pd.DataFrame(wdi.correlation * np.outer(sign, sign), index=names, columns=names)
p = len(R)
print(R.round(2).set_axis(range(1, p + 1), axis=1).to_string())

# %%
# The index with equal weights
# ----------------------------
# Its variance splits into one part for each indicator, :math:`w_j (Rw)_j`. Four of the eight
# (fertility, internet use, life expectancy, child mortality) are correlated by 0.77 or more with
# each other, and together take nearly two thirds of it.


def describe(w, R=R):
    """Parts of the variance of the index, and its correlation with each indicator."""
    covariance = R.to_numpy() @ w
    variance = w @ covariance
    return w * covariance / variance, covariance / np.sqrt(variance)


equal = np.full(p, 1 / p)
parts, correlations = describe(equal)
theme = ["low fertility", "internet use", "life expectancy", "low under5 mortality"]
counted = pd.Series(parts, index=names)[theme].sum()
print(f"weakest correlation within the theme: {R.loc[theme, theme].min().min():.2f}")
print(f"weight of the theme: {4 / p:.0%}, part of the variance of the index: {counted:.0%}")
assert R.loc[theme, theme].min().min() > 0.77 - 0.005
assert 0.6 < counted < 2 / 3

# %%
# The index of decorrelated indicators
# ------------------------------------
# Give equal weights to the *outputs*. At ρ★ they are uncorrelated, so each has exactly one eighth
# of the variance: nothing is counted twice. Since outputs are linear combinations of the
# indicators, the index is again a weighted sum of these, with the weights :math:`T w`.


def index_weights(floor):
    w = decorrelate(R, floor).T @ equal
    return w / np.abs(w).sum()


rho_star = threshold(R).value
at_threshold = index_weights(None)
table = pd.DataFrame(
    {
        "equal": equal,
        f"ρ★ = {rho_star:.3f}": at_threshold,
        "floor 0.9": index_weights(0.9),
        "floor 0.95": index_weights(0.95),
    },
    index=names,
)
print(table.round(3).to_string())

# %%
# Read the second column before using it. Internet use and life expectancy have **negative**
# weights: they are so well predicted by the rest that removing the double count overshoots, and a
# country would lose points by living longer, all else equal. That is correct arithmetic and an
# index that nobody can defend. Some correlation should stay. The picture shows the weights for all
# floors.

assert (at_threshold[[names.index("internet use"), names.index("life expectancy")]] < 0).all()
floors = np.array([rho_star, *np.arange(76, 99) / 100, 0.985, 0.99, 0.994, 0.997, 0.999, 1.0])
paths = np.array([index_weights(floor) for floor in floors])
good = (paths >= 0).all(axis=1)
lowest = floors[good][0]
assert good[floors >= lowest].all()
assert lowest <= 0.9
print(f"no weight is negative from a floor of {lowest:.2f} on")

colours = dict(zip(theme, ["#0072B2", "#D55E00", "#CC79A7", "#009E73"], strict=True))
styles = dict(zip(theme, ["-", "--", "-", "--"], strict=True))
figure, ax = plt.subplots(figsize=(7.4, 4.4), layout="constrained")
for j, name in enumerate(names):
    colour = colours.get(name, "#8a94a0")
    width = 2.6 if name in colours else 1.3
    ax.plot(floors, paths[:, j], styles.get(name, "-"), color=colour, linewidth=width)
order = np.argsort(paths[0])
heights = paths[0, order].copy()
for k in range(1, p):  # labels that do not touch each other
    heights[k] = max(heights[k], heights[k - 1] + 0.019)
for j, height in zip(order, heights, strict=True):
    ax.text(rho_star - 0.004, height, names[j], ha="right", va="center", fontsize=9,
            color=colours.get(names[j], "#5f6b7a"))  # fmt: skip
ax.axhline(0, color="#1f2933", linewidth=1)
ax.axvline(lowest, color="#1f2933", linewidth=1, linestyle=":")
ax.annotate(f"no negative weight\nfrom {lowest:.2f} on", (lowest, -0.085), xytext=(5, 0),
            textcoords="offset points", fontsize=9)  # fmt: skip
ax.set_xlim(rho_star, 1)
ax.set_xlabel("floor: what each decorrelated indicator keeps of its own (left end: ρ★, right: all)")
ax.set_ylabel("weight in the index")
ax.set_title("Weights on the original indicators", loc="left")
ax.spines[["top", "right", "left"]].set_visible(False)
ax.tick_params(left=False, labelleft=False, right=True, labelright=True)
ax.yaxis.set_label_position("right")

# %%
# What it changes
# ---------------
# The correlation of the index with each indicator is what it says about that indicator. At a floor
# of 0.9 the theme counts less and every weight has the right sign; the index hears more of
# education and capital formation, and remains nearly the one with equal weights. An index maker
# who takes the first principal component instead does the opposite: it counts most what is counted
# several times already.

first = np.linalg.eigh(R)[1][:, -1]
first = first / first.sum()
schemes = {"equal weights": equal, "first component": first, "CORAL, floor 0.9": index_weights(0.9)}
said = pd.DataFrame({name: describe(w)[1] for name, w in schemes.items()}, index=names)
print(said.round(2).to_string())
for name, w in schemes.items():
    part = pd.Series(describe(w)[0], index=names)[theme].sum()
    same = w @ R.to_numpy() @ equal / np.sqrt((w @ R @ w) * (equal @ R @ equal))
    print(f"{name:18} theme {part:.0%} of the variance, correlation with equal weights {same:.3f}")
rare = ["education expenditure", "capital formation"]
assert (said.loc[rare, "CORAL, floor 0.9"] > said.loc[rare, "equal weights"]).all()
assert (said.loc[rare, "first component"] < said.loc[rare, "equal weights"]).all()

plt.show()

# %%
# To use the weights, standardise your table (``examples/world_bank.py`` fetches the World
# Bank's) and take ``standardised @ weights``; or fit ``CORAL(rho_min=0.9)`` and average
# its outputs, which is the same. In the guide: :doc:`composites </guide/composites>`.
