"""
Neighbours only: a support from a map
=====================================

Rain in 16 districts is correlated from one district to the next. To look at what is particular to
each district, we decorrelate; but an output that mixes in rain from the other end of the country is
hard to explain. So each output may only use its own district and the districts that share a border
with it. Such a restriction is called a *support*.

The map and the rain are **simulated**.
"""

# %%
# A map, and who is whose neighbour
# ---------------------------------
# Districts are the cells of a Voronoi diagram; the points are mirrored at the four sides so that
# all cells end at the border of the country.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.collections import PolyCollection
from scipy.spatial import Voronoi

from skcoral import CORAL, decorrelate
from skcoral.solvers.support import exactness

rng = np.random.default_rng(3)
p = 16
centres = rng.uniform(size=(p, 2))
for _ in range(30):  # districts of similar size: move each centre to the middle of its cell
    grid = rng.uniform(size=(4000, 2))
    nearest = ((grid[:, None] - centres) ** 2).sum(axis=2).argmin(axis=1)
    centres = np.array([grid[nearest == j].mean(axis=0) for j in range(p)])

mirrored = [centres * [s, t] + [a, b] for s, t, a, b in
            ((1, 1, 0, 0), (-1, 1, 0, 0), (-1, 1, 2, 0), (1, -1, 0, 0), (1, -1, 0, 2))]  # fmt: skip
diagram = Voronoi(np.vstack(mirrored))
cells = [diagram.vertices[diagram.regions[diagram.point_region[j]]] for j in range(p)]
names = [f"d{j + 1:02d}" for j in range(p)]
borders = [(names[i], names[j]) for i, j in diagram.ridge_points if max(i, j) < p]
print(f"{p} districts, {len(borders)} borders")

# %%
# Monthly rain for 25 years, with correlations that fall with the distance:

distance = np.sqrt(((centres[:, None] - centres) ** 2).sum(axis=2))
truth = np.exp(-distance / 0.45)
rain = pd.DataFrame(rng.normal(size=(300, p)) @ np.linalg.cholesky(truth).T, columns=names)
R = rain.corr()

# %%
# Decorrelate with neighbours only
# --------------------------------
# A list of pairs is read as a graph: each end of an edge may enter the output of the other. Can it
# be exact? ``exactness`` answers before anything is optimised.

print(exactness(R, borders))
local = CORAL(rho_min=0.9, support=borders).fit(rain)
free = decorrelate(R, 0.9)
answer = local.result_
print(answer.summary())

# %%
# A support makes the problem non-convex, so the answer carries a lower bound, and the status says
# whether the bound was reached. Here it was: no transformation with these zeros and floors leaves
# less. What the restriction costs, compared with the answer that may use the whole country:

print(f"sum of squared correlations: {free.objective:.3f} from the whole country, "
      f"{answer.objective:.3f} from neighbours only")  # fmt: skip
print(f"coefficients: {np.count_nonzero(free.T)} and {np.count_nonzero(answer.T)}")
assert answer.status == "optimal"
assert free.objective < answer.objective < 1.5 * free.objective

# %%
# The map
# -------
# What the output of one district is made of, in both answers, and the correlations by distance.

j = int(np.argmin(((centres - 0.5) ** 2).sum(axis=1)))  # a district in the middle
figure = plt.figure(figsize=(8.6, 5.8), layout="constrained")
maps, below = figure.subfigures(2, 1, height_ratios=(1.25, 1))
left, right = maps.subplots(1, 2)
for ax, T, title in ((left, free.T, "the whole country"), (right, answer.T, "its neighbours")):
    shade = np.where(np.abs(T[:, j]) > 0, T[:, j], np.nan)
    cmap = plt.get_cmap("RdBu_r").with_extremes(bad="#e3e7eb")
    colours = PolyCollection(cells, array=shade, cmap=cmap, edgecolors="#1f2933", linewidths=0.8)
    colours.set_clim(-0.5, 0.5)
    ax.add_collection(colours)
    for k, (x, y) in enumerate(centres):
        if np.abs(T[k, j]) > 0:
            colour = "white" if abs(T[k, j]) > 0.3 else "#1f2933"
            ax.text(x, y, f"{T[k, j]:.2f}", ha="center", va="center", fontsize=8, color=colour)
    ax.set_title(f"{names[j]}, made of {title}", fontsize=11)
    ax.set_aspect("equal")
    ax.set_axis_off()
    ax.autoscale_view()
maps.colorbar(colours, ax=[left, right], label="coefficient", shrink=0.8)

ax = below.subplots()
pairs = np.triu_indices(p, 1)
ax.scatter(distance[pairs], R.to_numpy()[pairs], s=12, color="#5f6b7a", label="rain")
ax.scatter(
    distance[pairs], answer.correlation[pairs], s=16, marker="s", color="#0072B2",
    label="outputs, neighbours only",
)  # fmt: skip
ax.axhline(0, color="#1f2933", linewidth=0.8)
ax.set_xlabel("distance between districts")
ax.set_ylabel("correlation")
ax.legend(frameon=False)
ax.spines[["top", "right"]].set_visible(False)
plt.show()

# %%
# A support can also come from a theory (which items belong to which scale), from pathways of genes,
# or from what can be measured together: a boolean matrix, a dictionary such as
# ``{"d01": ["d02", "d07"]}``, or a labelled table say the same. In the guide:
# :doc:`which sources may enter </guide/sources>`.
