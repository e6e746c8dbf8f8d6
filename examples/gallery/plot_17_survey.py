"""
For survey researchers: items that overlap
==========================================

Answers to related questions share what they explain. In the American National Election Study of
1996, party identification and the position on a left-right scale correlate by 0.62, and both go
with the vote. This page divides what eight items explain without giving up the name of any, and
protects one item more than the others.
"""

# %%
# The table
# ---------
# 944 respondents (American National Election Studies, 1996; the subset in the public domain that
# comes with the Python package statsmodels 0.15). The page carries the correlations of the coded
# answers, to four decimals. The expected vote (Clinton or Dole) is the outcome and is set aside.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from skcoral import decorrelate, threshold

names = [
    *("party", "own position", "position of Clinton", "position of Dole"),
    *("age", "education", "income", "TV news", "vote"),
]
below = """
 .6186
-.3995 -.1569
 .0480 -.0900 -.3529
 .0080  .0947 -.0325 -.0270
 .1036 -.1059 -.2064  .1857 -.1588
 .2090  .0343 -.2251  .1440 -.0785  .3728
-.0524 -.0109  .0021 -.0140  .4088 -.0581 -.0626
 .7973  .5832 -.4666  .0189  .0537  .0856  .1903 -.0145
"""
R = np.eye(len(names))
R[np.tril_indices(len(names), -1)] = [float(r) for r in below.split()]
R = pd.DataFrame(np.tril(R) + np.tril(R, -1).T, index=names, columns=names)
with_vote = R["vote"].drop("vote")
R = R.drop(index="vote", columns="vote")
explained = float(with_vote @ np.linalg.solve(R, with_vote))
print(f"R² of the vote on eight items: {explained:.3f}")

# %%
# How much can every item keep?
# -----------------------------

print(threshold(R))
exact = decorrelate(R)
print(exact.measured.headline())
assert exact.min_fidelity > 0.94

# %%
# The items overlap moderately, so little has to be given up: eight uncorrelated items exist, each
# of which correlates by 0.94 or more with the answer that it is named after.
#
# What each explains
# ------------------
# Squared correlations with the vote of the eight answers add up to far more than R²; those of
# uncorrelated outputs add up to it exactly.

outputs = exact.T.T @ with_vote.to_numpy()
table = pd.DataFrame({"answer": with_vote**2, "output": outputs**2})
print(table.round(3).to_string())
print(f"sums: {table['answer'].sum():.3f} and {table['output'].sum():.3f}")
assert np.isclose(table["output"].sum(), explained)
assert table["answer"].sum() > 1.7 * explained

figure, ax = plt.subplots(figsize=(7, 3.8), layout="constrained")
places = np.arange(len(table))
ax.barh(places - 0.2, table["answer"], height=0.38, color="C7", label="answer by itself")
ax.barh(places + 0.2, table["output"], height=0.38, color="C0", label="its output")
ax.set_yticks(places, table.index)
ax.invert_yaxis()
ax.set_xlabel("squared correlation with the vote")
ax.legend(frameon=False, loc="lower right")
plt.show()

# %%
# This is one division among several; the page on
# :ref:`shares of R² <sphx_glr_gallery_plot_05_shares.py>` compares it with others.
#
# One item that must not change
# -----------------------------
# A series that has been published for decades cannot turn into something else. Give it a floor of
# its own; the price says what a little more of each floor costs, and the others give way.

own = decorrelate(R, {"party": 0.99, "own position": 0.9})
kept = pd.DataFrame({"fidelity": own.fidelity, "price": own.prices}, index=R.index)
print(own.measured.headline())
print(kept.round(3).to_string())
assert kept.loc["party", "fidelity"] >= 0.99 - 1e-9
assert kept["price"].idxmax() == "party"

# %%
# Codes of ordered answers were treated as numbers here. If the steps of a scale are not equal, use
# :doc:`ranks </guide/ranks>`; for weighted respondents give ``sample_weight``, for interviewers or
# sampling points ``groups`` (:doc:`new rows </guide/new_rows>`). For a file:
# ``coral fit answers.csv --target vote --weights weight -o out.csv``.
