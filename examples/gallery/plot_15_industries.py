"""
For quants: industry returns as bets with names
===============================================

An equally weighted portfolio of twelve industries is not twelve bets: the industries move together.
Uncorrelated bets can be made of them in many ways. This page compares four by two questions: how
many bets does the portfolio hold, and is each of them still about the industry that it is named
after?
"""

# %%
# The table
# ---------
# Monthly returns of twelve industry portfolios of US stocks, 1949 to March 2017, 819 months: data
# library of Kenneth R. French, in the edition that comes with the Python package linearmodels 7.1.
# The page carries their correlations, to four decimals.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from skcoral import decorrelate
from skcoral.baselines import minimum_torsion, pca, zca_cor
from skcoral.choosing import compare_floors
from skcoral.panels import effective_bets
from skcoral.show.pictures import FidelityDisplay

names = [
    *("non-durables", "durables", "manufacturing", "energy", "chemicals", "computers"),
    *("telecoms", "utilities", "shops", "health", "finance", "other"),
]
below = """
.6389
.7753 .8219
.4848 .4868 .6354
.7936 .7225 .8685 .5984
.5988 .6645 .7943 .4624 .6726
.6166 .5740 .6281 .4203 .5651 .6098
.6331 .4331 .5214 .5448 .5328 .3489 .5151
.8308 .7348 .8088 .4338 .7547 .7078 .6315 .4847
.7427 .5078 .6782 .4358 .7169 .6230 .5245 .4841 .6562
.7845 .7237 .8123 .5534 .7630 .6486 .6468 .5951 .7841 .6691
.7771 .7637 .9126 .6031 .8009 .7675 .6311 .5246 .8139 .6688 .8190
"""
p = len(names)
R = np.eye(p)
R[np.tril_indices(p, -1)] = [float(r) for r in below.split()]
R = pd.DataFrame(np.tril(R) + np.tril(R, -1).T, index=names, columns=names)
print(f"correlations between {R.min().min():.2f} and {(R - np.eye(p)).max().max():.2f}")

# %%
# Four sets of uncorrelated bets
# ------------------------------
# The portfolio holds every industry at the same risk. Its variance splits over uncorrelated bets,
# and the exponential of the entropy of the shares is the effective number of bets.

equal_risk = np.full(p, 1 / p)
methods = {
    "principal components": pca(R),
    "ZCA-cor": zca_cor(R),
    "minimum torsion": minimum_torsion(R),
    "CORAL at ρ★": decorrelate(R),
}
records = {}
for name, answer in methods.items():
    bets = effective_bets(R, equal_risk, answer)
    fidelity = answer.fidelity
    records[name] = (bets.effective, fidelity.min(), fidelity.mean(), fidelity[2])
columns = ["effective bets", "weakest fidelity", "mean fidelity", "manufacturing"]
table = pd.DataFrame.from_dict(records, orient="index", columns=columns)
print(table.round(2).to_string())
assert table["effective bets"].max() > 10 * table["effective bets"].min()
assert table["weakest fidelity"].idxmax() == "CORAL at ρ★"

# %%
# The number of bets is a property of the bets, not of the portfolio: between one and twelve for the
# same holdings. On principal components nearly all risk is one bet, on the market, and eleven have
# no name. ZCA-cor and minimum torsion spread it evenly, but their bet on manufacturing, the
# industry with the largest VIF, correlates by less than 0.6 with it. CORAL gives up evenness, and
# every bet correlates by at least 0.71 with its industry: the most that twelve uncorrelated bets
# can promise to all.

assert int(np.argmax(np.diag(np.linalg.inv(R)))) == names.index("manufacturing")
assert table.loc[["ZCA-cor", "minimum torsion"], "manufacturing"].max() < 0.6
exact = methods["CORAL at ρ★"]
FidelityDisplay.from_result(exact, R).plot()
plt.show()

# %%
# What a bet holds
# ----------------
# A bet on manufacturing is manufacturing, hedged with the industries that it moves with.
# Coefficients are per standard deviation.

hedged = pd.Series(exact.T[:, 2], index=names)
largest = hedged.sort_values(key=abs, ascending=False).head(5)
print(largest.round(2).to_string())
assert largest.index[0] == "manufacturing"
assert largest.index[1] == "other"

# %%
# Some correlation for more of each industry
# ------------------------------------------
# If bets may correlate a little, each can stay closer to its industry. The highest floor with no
# correlation above 0.5 and no VIF above 2:

found = compare_floors(R)
print(found.sentence())
chosen = decorrelate(R, found.recommended.rho_min)
bets = effective_bets(R, equal_risk, chosen)
print(chosen.measured.headline())
print(f"Of the variance of the portfolio, {bets.shared / bets.variance:.0%} is shared by bets.")
assert chosen.min_fidelity > 0.89
assert 0.65 < bets.shared / bets.variance < 0.72

# %%
# Most of the variance of a portfolio that holds everything is common to all industries. It can be
# shared by bets that stay close to their industries, or divided among bets that do not; no choice
# of factors removes it. For one model per day see the page on
# :ref:`rolling windows <sphx_glr_gallery_plot_07_factor_returns.py>`; in the guide:
# :doc:`panels </guide/panels>`.
