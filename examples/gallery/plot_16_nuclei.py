"""
For biologists: cell nuclei, size apart from shape
==================================================

Measurements of form correlate with size. Ten measurements of cell nuclei are a typical case: three
of them are size three times over, and a large nucleus also looks more concave. This page leaves out
what is measured twice, decorrelates the rest under their own names, and compares benign and
malignant samples before and after.
"""

# %%
# The table
# ---------
# 569 fine-needle aspirates of breast masses, with the mean of each measurement over the nuclei of
# an image (Street, Wolberg and Mangasarian 1993, UCI Machine Learning Repository; part of
# scikit-learn). The diagnosis is an outcome and not among the variables.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer

from skcoral import CORAL
from skcoral.choosing import compare_floors
from skcoral.show.pictures import CorrelationDisplay
from skcoral.stability import holdout

data = load_breast_cancer(as_frame=True)
nuclei = data.data.iloc[:, :10].rename(columns=lambda name: name.removeprefix("mean "))
malignant = data.target == 0
R = nuclei.corr()
print(R.loc[["radius", "perimeter", "area"], ["radius", "perimeter", "area"]].round(3))

# %%
# What is measured twice
# ----------------------
# Radius, perimeter and area correlate by 0.98 or more. To decorrelate three measurements of one
# thing, two of them have to become something else. Leaving two out is simpler, and the other eight
# keep more:

shape = nuclei.drop(columns=["perimeter", "area"])
for table in (nuclei, shape):
    found = compare_floors(table.corr())
    print(f"{table.shape[1]} variables. {found.sentence()}")
floor = found.recommended.rho_min
assert floor > 0.9

# %%
# Eight variables under their own names
# -------------------------------------

coral = CORAL(rho_min=floor).set_output(transform="pandas").fit(shape)
outputs = coral.transform(shape)
print(coral.measured_.headline())
CorrelationDisplay.from_estimator(coral).plot()
plt.show()

# %%
# Does it hold for other patients? Fitted without a fifth of the samples and measured on it:

other = holdout(CORAL(rho_min=floor), shape)
print(other.summary())
assert other.fidelity_new.mean(axis=0).min() > floor - 0.02

# %%
# Benign and malignant
# --------------------
# The difference of the two groups in standard deviations, for each variable and for its output.


def difference(table):
    """Mean of the malignant less mean of the benign samples, in pooled standard deviations."""
    groups = [table[malignant], table[~malignant]]
    freedom = [len(group) - 1 for group in groups]
    pooled = sum(group.var() * n for group, n in zip(groups, freedom, strict=True)) / sum(freedom)
    return (groups[0].mean() - groups[1].mean()) / np.sqrt(pooled)


before, after = difference(shape), difference(outputs)
figure, ax = plt.subplots(figsize=(7, 3.8), layout="constrained")
places = np.arange(len(before))
ax.barh(places - 0.2, before, height=0.38, color="C7", label="variable")
ax.barh(places + 0.2, after, height=0.38, color="C0", label="its output")
ax.axvline(0, color="black", linewidth=0.8)
ax.set_yticks(places, shape.columns)
ax.invert_yaxis()
ax.set_xlabel("malignant less benign, standard deviations")
ax.legend(frameon=False)
plt.show()
print(before.round(2).to_frame("variable").assign(output=after.round(2)))
# sphinx_gallery_thumbnail_number = 2
assert after.abs().idxmax() == before.abs().idxmax() == "concave points"
less = ["texture", "smoothness", "symmetry"]
assert (after[less].abs() < 0.5 * before[less].abs()).all()

# %%
# Concave points differ most, before and after. Texture, smoothness and symmetry differ less than
# half as much once what they share with the others is divided. The outputs show how the difference
# is *divided* among measurements, each still close to the one that it is named after, and some of
# them still correlate by up to 0.5. They do not show what one measurement adds to the others; for
# that, adjust for the others in a regression (:doc:`regression on the outputs
# </guide/regression>`). With more columns than samples, as in gene expression, see the page on
# :ref:`wide tables <sphx_glr_gallery_plot_08_wide_table.py>`.
