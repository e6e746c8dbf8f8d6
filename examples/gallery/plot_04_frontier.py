"""
The frontier and its prices
===========================

How much correlation has to stay, as a function of the floor? The curve is zero up to ρ★, convex
and increasing after it, and every point of it is proved to be the least possible. Its slope is the
price of the floor, and the price splits over the variables: it says whose floor is the dear one.
"""

# %%
# The curve
# ---------
# ``frontier`` places its points evenly along the curve. The classical methods and the
# untransformed variables are points, each at the fidelity that it happens to have; no method can
# lie below the curve.

import matplotlib.pyplot as plt
import numpy as np

from skcoral import decorrelate, frontier, maximize_fidelity, threshold
from skcoral.datasets import load_wine
from skcoral.show.pictures import FrontierDisplay

R = load_wine().to_frame().rename(columns={"od280/od315_of_diluted_wines": "od280/od315"}).corr()
curve = frontier(R, n_points=15)
chosen = decorrelate(R, 0.9)
FrontierDisplay.from_result(curve, R, chosen=chosen).plot()
print(curve)

# %%
# Two questions, one curve
# ------------------------
# *What is the least residual at this floor?* and *what is the highest floor within this residual?*
# are answered by the same curve, read in two directions.

budget = chosen.objective
back = maximize_fidelity(R, budget=budget)
print(f"floor 0.9 leaves {budget:.6f}; a budget of {budget:.6f} allows {back.rho_min[0]:.6f}")
assert abs(back.rho_min[0] - 0.9) < 1e-6

# %%
# Prices
# ------
# The price of variable j is the derivative of the residual with respect to its floor. It is a
# statement about small changes, and can be tested: raise one floor by a thousandth and solve again.

j = int(chosen.prices.argmax())
floors = np.full(len(R), 0.9)
floors[j] += 1e-3
change = decorrelate(R, floors).objective - chosen.objective
print(
    f"dearest: {R.columns[j]}, price {chosen.prices[j]:.3f}, "
    f"measured {change / 1e-3:.3f} for one thousandth more"
)
assert change / 1e-3 >= chosen.prices[j] - 1e-6  # the curve is convex: never less than its tangent
assert abs(change / 1e-3 / chosen.prices[j] - 1) < 0.05

# %%
# Prices change along the curve. Near ρ★ few variables make up most of the price; at high floors all
# variables compete.

rho_star = threshold(R).value
grid = np.linspace(rho_star + 2e-3, 0.97, 30)
prices = np.array([decorrelate(R, floor).prices for floor in grid])
share = prices / prices.sum(axis=1, keepdims=True)
top = np.argsort(share.mean(axis=0))[::-1][:5]
print(f"share of five variables in the price, just above ρ★: {share[0, top].sum():.0%}")
print(f"and at a floor of {grid[-1]:.2f}: {share[-1, top].sum():.0%}")
assert share[0, top].sum() > 0.8 > 0.6 > share[-1, top].sum()

colours = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00"]
figure, (left, right) = plt.subplots(
    1, 2, figsize=(8.6, 4.0), width_ratios=(1, 1.25), layout="constrained"
)
left.plot(grid, prices.sum(axis=1), color="#1f2933", linewidth=2.5)
left.set_title("price of a common floor", loc="left", fontsize=11)
left.set_xlabel("floor")
left.set_ylabel("residual per unit of floor")
left.set_ylim(0, None)
rest = 1.0 - share[:, top].sum(axis=1)
right.stackplot(
    grid, *(share[:, k] for k in top), rest, colors=[*colours, "#d7dce2"], edgecolor="white",
    linewidth=0.6,
)  # fmt: skip
right.set_title("and whose floor it is", loc="left", fontsize=11)
right.set_xlabel("floor")
right.set_ylabel("share of the price")
right.set_ylim(0, 1)
labels = [R.columns[k].replace("_", " ") for k in top] + [f"{len(R) - 5} others"]
edges = np.concatenate([[0], np.cumsum([*share[-1, top], rest[-1]])])
right.yaxis.set_major_formatter("{x:.0%}")
for label, low, high in zip(labels, edges[:-1], edges[1:], strict=True):
    right.annotate(
        label, (1.02, (low + high) / 2), xycoords=("axes fraction", "data"), va="center", fontsize=9
    )
for ax in (left, right):
    ax.set_xlim(grid[0], grid[-1])
    ax.spines[["top", "right"]].set_visible(False)
plt.show()

# %%
# A dear variable is one that others can nearly predict. If its exact values matter, that is the
# price. If they do not, give it a lower floor of its own, and the same residual keeps more of all
# the others: ``decorrelate(R, {"flavanoids": 0.8, ...})``.
