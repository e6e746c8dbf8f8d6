"""
Confidence: what n buys
=======================

A floor is kept exactly on the rows that were fitted. The population that they come from keeps a
little less: the transformation was chosen on the very rows that it is measured on. With
``confidence=0.95`` floors are raised until, with 95 % confidence, *all* of them hold in the
population. This page shows how much that costs, and how the cost falls with the number of rows.

The rows are **simulated**, so that the population is known.
"""

# %%
# A population
# ------------
# Six variables from two factors, normal rows. The floor is half-way between ρ★ and one, so that
# some correlation has to stay.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from skcoral import CORAL, decorrelate, threshold
from skcoral.data.effects import measure_matrix
from skcoral.datasets import make_factor_system

R = make_factor_system(6, n_factors=2, communality=0.7)
floor = round((1 + threshold(R).value) / 2, 3)
root = np.linalg.cholesky(R)
print(f"ρ★ of the population {threshold(R).value:.3f}, floor asked for {floor}")


def in_the_population(model):
    """The weakest fidelity that the outputs of a fitted model have in the population."""
    return measure_matrix(R, model.T_).min_fidelity


# %%
# Fit with and without confidence
# -------------------------------
# Eight tables of each size, each fitted twice.

sizes = [50, 100, 200, 400]
rng = np.random.default_rng(1)
rows = []
for n in sizes:
    for _ in range(8):
        X = rng.normal(size=(n, 6)) @ root.T
        plain = CORAL(rho_min=floor).fit(X)
        sure = CORAL(rho_min=floor, confidence=0.95).fit(X)
        rows.append(
            (n, in_the_population(plain), in_the_population(sure), sure.floors_.mean(),
             plain.result_.objective, sure.result_.objective)
        )  # fmt: skip
columns = ["n", "plain", "confident", "raised floor", "residual", "residual, confident"]
table = pd.DataFrame(rows, columns=columns)
print(table.groupby("n").mean().round(3).to_string())
held = table[["plain", "confident"]].ge(floor).groupby(table["n"]).sum()
print("\ntables of eight in which every floor holds in the population\n", held)
assert table["plain"].ge(floor).mean() < 0.2
assert table["confident"].ge(floor).mean() > 0.85

# %%
# Each dot is one table. Without confidence nearly all tables miss the floor in the population, at
# every n, by less and less. With confidence nearly all keep it, and the price, the correlation that
# the raised floors leave, falls towards that of a known population.

blue, orange, grey = "#0072B2", "#D55E00", "#5f6b7a"
known = decorrelate(R, floor).objective
figure, (left, right) = plt.subplots(1, 2, figsize=(7.4, 4.4), layout="constrained")
for name, colour, marker, shift in (("plain", orange, "s", 0.94), ("confident", blue, "o", 1.06)):
    x = table["n"] * shift
    label = "with confidence=0.95" if name == "confident" else "plain floors"
    left.scatter(x, table[name], s=30, color=colour, marker=marker, alpha=0.7, lw=0, label=label)
    values = "residual" if name == "plain" else "residual, confident"
    mean = table.groupby("n")[values].mean()
    right.plot(sizes, mean, color=colour, marker=marker, linewidth=2, label=label)
left.axhline(floor, color="#1f2933", linewidth=1)
left.annotate(f"floor {floor}", (47, floor), xytext=(0, 4), textcoords="offset points", fontsize=9)
left.set_title("weakest fidelity in the population", loc="left", fontsize=11)
right.axhline(known, color=grey, linestyle=(0, (5, 3)), label="population known")
right.set_title("correlation left (sum of squares)", loc="left", fontsize=11)
right.set_ylim(0, None)
right.legend(frameon=False)
for ax in (left, right):
    ax.set_xscale("log")
    ax.set_xticks(sizes, sizes)
    ax.minorticks_off()
    ax.set_xlabel("rows n")
    ax.spines[["top", "right"]].set_visible(False)
plt.show()

# %%
# One table in detail
# -------------------
# Each floor is raised by its own uncertainty. ``lower`` is what the population keeps with 95 %
# confidence, all variables together; ``residual_bound`` is the largest correlation with another
# output that it may have there.

print(sure.confidence_.to_frame().round(3).to_string())
print(sure.confidence_.sentence())

# %%
# How often the promise holds was measured for many more populations, also with heavy tails, series
# in time and clusters, and is tabulated in the guide: :doc:`new rows and confidence
# </guide/new_rows>`.
