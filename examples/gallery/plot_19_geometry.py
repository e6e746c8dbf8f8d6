"""
Regions, caps and outputs
=========================

The first figure of the paper, on the three variables of Wine that bind its threshold the most. An
output is a vector on the ellipsoid :math:`t^T R t = 1`; in :math:`w = R^{1/2} t` the ellipsoid is
the unit sphere, and a floor is a cap around the source. One output is chosen in each cap, as
orthogonal as the caps allow.
"""

import matplotlib.pyplot as plt
import numpy as np

from skcoral import decorrelate
from skcoral.datasets import load_wine

RHO_MIN = 0.9
NAMES = ["total_phenols", "flavanoids", "od280/od315_of_diluted_wines"]

wine = load_wine()
chosen = [wine.names.index(name) for name in NAMES]
R = wine.correlation[np.ix_(chosen, chosen)]
T = decorrelate(R, RHO_MIN).T

values, vectors = np.linalg.eigh(R)
root = (vectors * np.sqrt(values)) @ vectors.T  # its columns are the sources on the sphere
inverse_root = (vectors / np.sqrt(values)) @ vectors.T
outputs = root @ T
print("cosines of the outputs:", (outputs.T @ outputs)[np.triu_indices(3, 1)].round(3))
print("fidelities:", np.diag(R @ T).round(3))

# %%
# A cap is a fan of circles around its source, up to the angle whose cosine is the floor.


def sphere(n=37):
    turn, tilt = np.meshgrid(np.linspace(0, 2 * np.pi, n), np.linspace(0, np.pi, n))
    return np.stack([np.cos(turn) * np.sin(tilt), np.sin(turn) * np.sin(tilt), np.cos(tilt)], -1)


def cap(centre, n_rings=12, n_steps=73):
    across = np.linalg.svd(centre[None, :])[2][1:]
    turn = np.linspace(0.0, 2.0 * np.pi, n_steps)
    ring = np.cos(turn)[:, None] * across[0] + np.sin(turn)[:, None] * across[1]
    angle = np.linspace(0.0, np.arccos(RHO_MIN), n_rings)[:, None, None]
    return np.cos(angle) * centre + np.sin(angle) * ring


# %%
# The same caps in three coordinates: :math:`t`, :math:`w`, and the correlations :math:`c = R t`
# with the sources, where an output lies beyond the plane :math:`c_{jj} = \rho_j`.

panels = [
    ("(a) regions on the ellipsoid tᵀRt = 1", inverse_root, None),
    ("(b) caps on the sphere, w = R^½ t", np.eye(3), root),
    ("(c) one output in each cap", np.eye(3), outputs),
    ("(d) correlations with the sources, c = R t", root, outputs),
]
figure = plt.figure(figsize=(9, 8), layout="constrained")
for k, (title, basis, arrows) in enumerate(panels):
    ax = figure.add_subplot(2, 2, k + 1, projection="3d")
    surface = sphere() @ basis
    ax.plot_wireframe(
        *np.moveaxis(surface, -1, 0), color="#d7dce2", linewidth=0.4, rstride=3, cstride=3
    )
    for j, colour in enumerate(("#0072B2", "#D55E00", "#009E73")):
        mesh = cap(root[:, j]) @ basis
        ax.plot_surface(
            *np.moveaxis(mesh, -1, 0), color=colour, alpha=0.22, linewidth=0, shade=False
        )
        ax.plot(*mesh[-1].T, color=colour, linewidth=1.6, label=NAMES[j])
        if arrows is not None:
            end = arrows[:, j] @ basis
            ax.plot(*np.stack([np.zeros(3), end], axis=1), color=colour, linewidth=1.8)
    reach = 1.02 * np.abs(surface).max()
    ax.set(xlim=(-reach, reach), ylim=(-reach, reach), zlim=(-reach, reach), title=title)
    ax.set_box_aspect((1, 1, 1), zoom=1.2)
    ax.set_axis_off()
    ax.view_init(elev=22, azim=35)
figure.legend(*ax.get_legend_handles_labels(), loc="outside lower center", ncols=3, frameon=False)
plt.show()
