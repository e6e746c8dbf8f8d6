"""
Factor returns in rolling windows, and effective bets
=====================================================

Factors of a portfolio are decorrelated every day by the days before it. How many independent bets
does an equally weighted portfolio hold, and is each of them still the factor that it is named
after?

The returns are **simulated**: fat tails, clustered volatility, and two crises in which correlations
rise. The names of the factors are for reading only.
"""

# %%
# Simulated returns
# -----------------
# Two common shocks with GARCH(1,1) volatility, Student's t with 5 degrees of freedom, and a stress
# that multiplies the common part. Quality and low volatility move together; growth is nearly the
# other side of value.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.dates import MonthLocator

from skcoral.baselines import pca
from skcoral.panels import effective_bets, minimum_torsion, rolling

NAMES = ["market", "size", "value", "momentum", "quality", "low_vol", "carry", "growth"]
CRISES = [(300, 380), (620, 700)]


def simulate(days, seed=0):
    """Simulated daily factor returns, in per cent."""
    rng = np.random.default_rng(seed)
    p = len(NAMES)
    loadings = rng.normal(size=(p, 2)) * [0.9, 0.6]
    loadings[5] = 0.9 * loadings[4] + 0.1 * loadings[5]
    loadings[7] = -0.9 * loadings[2]
    stress = np.zeros(days)
    for start, stop in CRISES:
        stress[start:stop] = 1.0
    stress = pd.Series(stress).ewm(halflife=15).mean().to_numpy()
    shocks = rng.standard_t(5, size=(days, 2)) / np.sqrt(5 / 3)
    own = rng.standard_t(5, size=(days, p)) / np.sqrt(5 / 3)
    variance, rows = np.ones(2), np.empty((days, p))
    for t in range(days):
        common = np.sqrt(variance * (1.0 + 4.0 * stress[t])) * shocks[t]
        variance = 0.05 + 0.08 * (np.sqrt(variance) * shocks[t]) ** 2 + 0.87 * variance
        rows[t] = loadings @ common + 0.7 * own[t]
    index = pd.date_range("2021-01-01", periods=days, freq="B", name="date")
    return pd.DataFrame(0.6 * rows, index=index, columns=NAMES)


returns = simulate(800)

# %%
# One model for each day
# ----------------------
# ``rolling`` fits every window of 120 days; ``lag=1`` means that a day is transformed by the window
# that ends the day before, so nothing looks ahead. Every window has its own certificate.

panel = rolling(returns, 120, lag=1, rho_min=0.9)
print(panel.summary())
panel.plot()

# %%
# Effective bets
# --------------
# The variance of a portfolio splits over uncorrelated factors; the exponential of the entropy of
# the shares is the effective number of bets (Meucci). *Which* uncorrelated factors is a choice.
# Principal components have no names. Minimum torsion takes those that are nearest to the factors
# on average. CORAL keeps every factor at a floor, and where that is above ρ★, some of the variance
# is shared between bets.

equal = np.full(len(NAMES), 1.0 / len(NAMES))
records = []
for day in returns.index[121::10]:
    model = panel.model(day)
    R = pd.DataFrame(model.correlation_, index=NAMES, columns=NAMES)
    covariance = R * np.outer(model.scale_, model.scale_)
    methods = {
        "principal components": pca(R),
        "minimum torsion": minimum_torsion(R),
        "CORAL, floor 0.9": model.result_,
    }
    for name, answer in methods.items():
        bets = effective_bets(covariance, equal, answer)
        shared = bets.shared / bets.variance
        records.append((day, name, bets.effective, answer.min_fidelity, shared))
table = pd.DataFrame(records, columns=["day", "factors", "bets", "weakest", "shared"])
figures = table.groupby("factors", sort=False)[["bets", "weakest", "shared"]]
print(figures.agg(["mean", "min"]).round(2).add(0.0).to_string())

# %%

colours = {
    "principal components": "#5f6b7a",
    "minimum torsion": "#D55E00",
    "CORAL, floor 0.9": "#0072B2",
}
figure, axes = plt.subplots(2, 1, figsize=(7.2, 5.4), sharex=True, layout="constrained")
labels = ("effective bets (of 8)", "weakest fidelity")
for ax, column, label in zip(axes, ("bets", "weakest"), labels, strict=True):
    for name, colour in colours.items():
        rows = table[table["factors"] == name]
        style = {"linewidth": 2.4 if "CORAL" in name else 1.8}
        ax.plot(rows["day"], rows[column], color=colour, label=name, **style)
    for start, stop in CRISES:
        ax.axvspan(returns.index[start], returns.index[stop], color="#f0e442", alpha=0.3, lw=0)
    ax.set_ylabel(label)
    ax.set_ylim(0, 8 if column == "bets" else 1)
    ax.spines[["top", "right"]].set_visible(False)
axes[0].legend(frameon=False, ncols=3, fontsize=9, loc="upper center")
axes[0].set_title("Simulated factor returns, windows of 120 days (yellow: crises)", loc="left")
axes[1].set_xlim(table["day"].min(), table["day"].max())
axes[1].xaxis.set_major_locator(MonthLocator(bymonth=(1, 7)))
plt.show()
# sphinx_gallery_thumbnail_number = 2

# %%
# What the floor buys
# -------------------

least = figures.min()["weakest"]
mean = figures.mean()
worst = least["minimum torsion"]
print(
    f"Under minimum torsion a factor kept only {worst:.2f} of itself in some window, so its bet is "
    "partly\non other factors. At a floor of 0.9 no factor keeps less, and the price is that "
    f"{mean.loc['CORAL, floor 0.9', 'shared']:.0%} of the\nvariance is shared between correlated "
    "bets on average."
)
assert least["CORAL, floor 0.9"] >= 0.9 - 1e-9
assert worst < 0.9

# %%
# If no variance may be shared, leave the floor out (``rolling(returns, 120, lag=1)``): then every
# window is solved at its own ρ★, drawn in the first picture. The command does the same for files:
# ``coral roll returns.csv --date date --window 120 --lag 1 --rho-min 0.9 -o out.csv``. In the
# guide: :doc:`rolling windows and panels </guide/panels>`.
