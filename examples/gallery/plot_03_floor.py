"""
Choosing a floor
================

The floor is the one number that you choose: the least correlation that every output keeps with its
own variable. A high floor keeps the variables as they are and leaves correlation between them; a
low one removes correlation and changes the variables more. This page shows three ways to get to
it.
"""

# %%
# Ask for a recommendation
# ------------------------
# ``compare_floors`` tries the usual floors. (On the command line: ``coral inspect data.csv``.)

import matplotlib.pyplot as plt
import numpy as np

from skcoral import CORAL, decorrelate, threshold
from skcoral.choosing import compare_floors
from skcoral.datasets import load_wine

wine = load_wine().to_frame()
R = wine.corr()
found = compare_floors(R)
print(found.to_frame()[["floor", "largest_correlation", "largest_vif"]].round(2).to_string())
print(found.sentence())

# %%
# Or say what you can bear
# ------------------------
# Often the limit is known and the floor is not. Then give the limit, and the highest floor for it
# is found, together with a proof that no higher floor is possible.

for limit in ({"max_vif": 2}, {"max_correlation": 0.3}, {"budget": 0.1}):
    coral = CORAL(**limit).fit(wine)
    (name, value), measured = *limit.items(), coral.measured_
    print(
        f"{name} = {value:<4g} floor {coral.floors_[0]:.3f}, largest correlation "
        f"{measured.largest_correlation:.2f}, largest VIF {measured.largest_vif:.2f}"
    )

# %%
# Or look at the curve
# --------------------
# Each point is the transformation with the least residual correlation (sum of squares) at its
# floor. Up to ρ★ nothing is left. From there the largest correlation rises about evenly; the VIF
# stays harmless for long and rises steeply near a floor of one.

rho_star = threshold(R).value
floors = np.unique([*np.linspace(0.78, 0.995, 40), rho_star])
answers = [decorrelate(R, floor) for floor in floors]
largest = np.array([answer.measured.largest_correlation for answer in answers])
inflation = np.array([answer.measured.largest_vif for answer in answers])

blue, orange, grey = "#0072B2", "#D55E00", "#5f6b7a"
recommended = found.recommended
figure, axes = plt.subplots(2, 1, figsize=(6.4, 5.2), sharex=True, layout="constrained")
curves = (
    (largest, "largest correlation left", 0.5, recommended.largest_correlation),
    (inflation, "largest VIF", 2.0, recommended.largest_vif),
)
for ax, (values, label, limit, mark) in zip(axes, curves, strict=True):
    ax.plot(floors, values, color=blue, linewidth=2.5)
    ax.axhline(limit, color=orange, linestyle=(0, (5, 3)))
    ax.annotate(
        "usual limit", (0.785, limit), xytext=(0, 4), textcoords="offset points", color=orange
    )
    ax.axvline(rho_star, color=grey, linewidth=1)
    ax.plot(recommended.floor, mark, "o", color=blue, markersize=9, clip_on=False)
    ax.set_ylabel(label)
    ax.set_xlim(0.78, 1.0)
    ax.spines[["top", "right"]].set_visible(False)
axes[0].set_ylim(0, 0.86)
axes[1].set_ylim(1, 5)
axes[0].annotate(
    f"ρ★ = {rho_star:.3f}", (rho_star, 0.72), xytext=(-6, 0), textcoords="offset points",
    ha="right", color=grey,
)  # fmt: skip
axes[0].annotate(
    f"recommended: {recommended.floor:g}",
    (recommended.floor, recommended.largest_correlation),
    xytext=(12, -5), textcoords="offset points", color=blue,
)  # fmt: skip
axes[1].set_xlabel("floor: what every output keeps of its own variable")
plt.show()

# %%
# Not every variable needs the same floor
# ---------------------------------------
# If one variable is what the study is about, let it be kept nearly as it is, and the others give
# way. The *price* says what one more unit of each floor would cost, in units of the sum of squared
# correlations; it is zero where a floor does not bind.

names = list(R.columns)
own = decorrelate(R, dict.fromkeys(names, 0.85) | {"alcohol": 0.99})
common = decorrelate(R, 0.85)
print(f"left with 0.85 for all: {common.objective:.3f}; with 0.99 for alcohol: {own.objective:.3f}")
print(own.to_frame()[["fidelity", "floor", "price"]].sort_values("price").tail(4).round(2))
assert own.objective > common.objective

# %%
# A rule of thumb: if people read the outputs under the names of the variables, start from 0.9 or
# 0.95; if a later step assumes uncorrelated inputs, take ρ★, which is what ``CORAL()`` does. In a
# regression a VIF below 2 makes the coefficients on the outputs precise, and does not make them
# coefficients of the columns (:doc:`regression on the outputs </guide/regression>`). In the guide:
# :doc:`choose a floor </guide/floor>`.
