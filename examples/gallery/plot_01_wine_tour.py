"""
A tour on the Wine data
=======================

Thirteen chemical and visual measurements of 178 wines are correlated with each other, some of them
strongly. We replace them by thirteen new columns under the same names: each new column stays close
to its own measurement, and the new columns are correlated as little as that allows.

Two words are used throughout. The *fidelity* of a new column is its correlation with the
measurement whose name it bears. A *floor* is the least fidelity that you accept.
"""

# %%
# The table, and what is wrong with it
# ------------------------------------
# The data come with scikit-learn (Aeberhard and Forina, UCI Machine Learning Repository).

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from skcoral import CORAL, decorrelate, threshold
from skcoral.certificates import check
from skcoral.datasets import load_wine
from skcoral.show.pictures import CorrelationDisplay, FidelityDisplay

wine = load_wine().to_frame()
wine = wine.rename(columns={"od280/od315_of_diluted_wines": "od280/od315"})
wine.columns = wine.columns.str.replace("_", " ")
R = wine.corr()

strongest = np.argmax(np.abs(R) - np.eye(len(R)))
first, second = R.columns[list(np.unravel_index(strongest, R.shape))]
print(f"{len(wine)} wines, {wine.shape[1]} measurements")
print(f"strongest pair: {first} and {second}, correlation {R.loc[first, second]:.2f}")

# %%
# Fit
# ---
# ``CORAL`` is a scikit-learn transformer. Here every output has to keep a correlation of at least
# 0.9 with its own measurement. The summary begins with what was measured on the rows, and then says
# what is proved.

coral = CORAL(rho_min=0.9).set_output(transform="pandas").fit(wine)
outputs = coral.transform(wine)
print(coral.summary())

# %%
# The matrices before and after, in the same order and on the same scale:

CorrelationDisplay.from_estimator(coral).plot()

# %%
# Every output is still its own variable
# --------------------------------------
# ZCA-cor and principal components, drawn beside it, leave no correlation at all and pay for it with
# the measurements that fare worst. (At ρ★, further down, CORAL leaves none either, and the weakest
# measurement keeps more.)

display = FidelityDisplay.from_estimator(coral).plot()
for method, kept in display.baselines.items():
    print(f"{method}: the weakest measurement keeps {kept.min():.3f}")

# %%
# The outputs can be read in the units of the measurements. One wine, before and after:

in_units = CORAL(rho_min=0.9, output_scale="original").set_output(transform="pandas")
same_units = in_units.fit_transform(wine)
print(pd.DataFrame({"measured": wine.iloc[0], "decorrelated": same_units.iloc[0]}).round(2))

# %%
# How far can it go?
# ------------------
# ρ★ is the highest floor at which no correlation at all is left. Up to it, decorrelation is free;
# above it, some correlation has to stay. The two bounds below meet, so this is not the best of many
# attempts but the best there is, and ``check`` recomputes the proof without the solver.

exact = threshold(R)
print(f"{exact.lower:.9f} <= rho* <= {exact.upper:.9f}")
print("binding:", ", ".join(exact.binding[:3]))
assert exact.lower > max(kept.min() for kept in display.baselines.values())
assert check(exact, R).passed

# %%
# A measurement that matters more can have a floor of its own. The others make room:

floors = dict.fromkeys(wine.columns, 0.85) | {"alcohol": 0.98}
answer = decorrelate(R, floors)
print(answer.to_frame().loc[["alcohol", "ash", "flavanoids"]].round(3))
assert answer.fidelity[0] >= 0.98 - 1e-9

plt.show()

# %%
# Next: :ref:`which method when <sphx_glr_gallery_plot_02_methods.py>`,
# :ref:`choosing a floor <sphx_glr_gallery_plot_03_floor.py>`,
# :ref:`the frontier and its prices <sphx_glr_gallery_plot_04_frontier.py>`. In the guide:
# :doc:`decorrelate a table </guide/table>`.
