"""
A wide table: more columns than rows
====================================

Gene expression: 60 samples, 500 genes. The correlation matrix has rank 59, so no transformation
makes 500 outputs uncorrelated, and what is fitted on 60 samples need not hold for the next ones.
The fit reports the first of these facts; this page measures the second.

The data are **simulated**: six pathways of 25 genes each share a common signal, the other genes are
independent. Since we know the truth, we can measure on 1,000 fresh samples what was fitted on 60.
"""

# %%
# Simulated expression
# --------------------

import warnings

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from skcoral import CORAL
from skcoral.exceptions import SingularCorrelationWarning

GENES, PATHWAYS, SIZE = 500, 6, 25
pathway = np.repeat(np.arange(PATHWAYS), SIZE)


def samples(n, rng):
    signal = rng.normal(size=(n, PATHWAYS))
    X = rng.normal(size=(n, GENES))
    X[:, : PATHWAYS * SIZE] = 0.8 * signal[:, pathway] + 0.6 * X[:, : PATHWAYS * SIZE]
    return X


rng = np.random.default_rng(0)
X, fresh = samples(60, rng), samples(1000, rng)
print(f"{X.shape[0]} samples of {X.shape[1]} genes; correlation within a pathway {0.8**2:.2f}")

# %%
# Fit
# ---
# The fit warns: the table has no exact decorrelator. With a common floor of 0.9 it finds the least
# sum of squared correlations that the rank allows, and proves that it is the least. No 500 × 500
# array is formed: the transformation is the identity plus a product of two factors.

with warnings.catch_warnings(record=True) as told:
    warnings.simplefilter("always")
    coral = CORAL(rho_min=0.9).fit(X)
for warning in told:
    print(f"{warning.category.__name__}: {warning.message}\n")
assert any(warning.category is SingularCorrelationWarning for warning in told)
print(coral.T_, coral.result_.status)

# %%
# What holds for fresh samples
# ----------------------------
# The same for several floors, measured on the samples fitted and on fresh ones.


def judge(X, outputs):
    """Weakest fidelity of all genes; correlation within pathways (root mean square)."""
    Z, Y = ((A - A.mean(axis=0)) / A.std(axis=0) for A in (X, outputs))
    fidelity = (Z * Y).mean(axis=0)
    inside = np.corrcoef(Y[:, : len(pathway)].T)[pathway[:, None] == pathway]
    inside = inside[inside < 1 - 1e-12]  # not the correlation of a gene with itself
    return fidelity.min(), np.sqrt((inside**2).mean())


floors = [0.7, 0.8, 0.9, 0.95]
rows = []
for floor in floors:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SingularCorrelationWarning)
        model = coral if floor == 0.9 else CORAL(rho_min=floor).fit(X)
    rows.append((*judge(X, model.transform(X)), *judge(fresh, model.transform(fresh))))
columns = pd.MultiIndex.from_product([["fitted", "fresh"], ["weakest", "within"]])
table = pd.DataFrame(rows, columns=columns, index=pd.Index(floors, name="floor"))
before = judge(fresh, fresh)[1]
print(table.round(3).to_string())
print(f"correlation within pathways before (fresh samples): {before:.3f}")

# %%
# The floors hold on fresh samples, here even with room to spare: what 60 samples do not determine
# is left as it is. The decorrelation holds only in part: more than half of what was removed on the
# samples fitted was noise of these samples.

removed_fitted = judge(X, X)[1] - table[("fitted", "within")]
removed_fresh = before - table[("fresh", "within")]
kept = removed_fresh / removed_fitted
print("part of the reduction that fresh samples keep:", kept.round(2).to_dict())
assert kept.between(0.3, 0.5).all()
assert (table[("fresh", "weakest")] > table.index).all()

blue, orange, grey = "#0072B2", "#D55E00", "#5f6b7a"
figure, (left, right) = plt.subplots(1, 2, figsize=(7.2, 4.4), layout="constrained")
for name, colour, marker in (("fitted", blue, "o"), ("fresh", orange, "s")):
    label = f"{len(X)} samples fitted" if name == "fitted" else f"{len(fresh):,} fresh samples"
    left.plot(floors, table[(name, "weakest")], marker=marker, color=colour, linewidth=2)
    right.plot(
        floors, table[(name, "within")], marker=marker, color=colour, linewidth=2, label=label
    )
left.set_title("weakest fidelity of 500 genes", loc="left")
left.set_ylim(0.6, 1)
right.set_title("correlation within pathways", loc="left")
right.set_ylim(0, 0.8)
right.axhline(before, color=grey, linestyle=(0, (5, 3)), label="before")
right.legend(frameon=False, loc="lower right")
for ax in (left, right):
    ax.set_xlabel("floor")
    ax.set_xticks(floors)
    ax.spines[["top", "right"]].set_visible(False)
plt.show()

# %%
# With about as many rows as columns, instead of many fewer, low floors do overfit: fidelity itself
# is then lost on fresh rows. In the guide: :doc:`singular and wide tables </guide/singular>`.
