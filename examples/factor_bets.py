"""What a floor buys: effective bets of an equally weighted portfolio, day by day.

The factor returns are **simulated**. They have what real ones are known for: fat tails (Student's t
with 5 degrees of freedom), clustered volatility (GARCH(1,1)), and correlations that change, rising
when markets fall into a crisis. Names are for reading only.

    python examples/factor_bets.py [--days N]

Each day's factors are made uncorrelated by the 120 days before it, in three ways: principal
components, minimum torsion, and CORAL at a floor that no factor may fall below.
"""

from __future__ import annotations

import argparse

import numpy as np
import pandas as pd

from skcoral.baselines import pca
from skcoral.panels import effective_bets, minimum_torsion, rolling

NAMES = ["market", "size", "value", "momentum", "quality", "low_vol", "carry", "growth"]
WINDOW, FLOOR = 120, 0.9


def simulate(days: int, seed: int = 0) -> pd.DataFrame:
    """Simulated daily factor returns, in per cent."""
    rng = np.random.default_rng(seed)
    p = len(NAMES)
    loadings = rng.normal(size=(p, 2)) * [0.9, 0.6]
    loadings[5] = 0.9 * loadings[4] + 0.1 * loadings[5]  # quality and low volatility move together
    loadings[7] = -0.9 * loadings[2]  # growth is nearly the other side of value
    stress = np.zeros(days)
    for start in range(400, days, 700):  # a crisis of some months now and then
        stress[start : start + 120] = 1.0
    stress = pd.Series(stress).ewm(halflife=15).mean().to_numpy()
    shocks = rng.standard_t(5, size=(days, 2)) / np.sqrt(5 / 3)
    own = rng.standard_t(5, size=(days, p)) / np.sqrt(5 / 3)
    variance, rows = np.ones(2), np.empty((days, p))
    for t in range(days):
        common = np.sqrt(variance * (1.0 + 4.0 * stress[t])) * shocks[t]
        variance = 0.05 + 0.08 * (np.sqrt(variance) * shocks[t]) ** 2 + 0.87 * variance
        rows[t] = loadings @ common + 0.7 * own[t]
    index = pd.date_range("2015-01-01", periods=days, freq="B", name="date")
    return pd.DataFrame(0.6 * rows, index=index, columns=NAMES)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--days", type=int, default=1500)
    returns = simulate(parser.parse_args().days)
    equal = np.full(len(NAMES), 1.0 / len(NAMES))

    panel = rolling(returns, WINDOW, lag=1, rho_min=FLOOR)
    print("Simulated factor returns:", panel.summary(), sep="\n")

    months = panel.to_frame().index[::60]
    figures = []
    for day in months:
        later = min(returns.index.get_loc(day) + 1, len(returns) - 1)
        model = panel.model(returns.index[later])
        R = pd.DataFrame(model.correlation_, index=NAMES, columns=NAMES)
        covariance = R * np.outer(model.scale_, model.scale_)
        for name, answer in (
            ("principal components", pca(R)),
            ("minimum torsion", minimum_torsion(R)),
            (f"CORAL, floor {FLOOR}", model.result_),
        ):
            bets = effective_bets(equal, covariance, answer)
            figures.append((name, answer.min_fidelity, bets.effective, bets.shared / bets.variance))
    table = pd.DataFrame(figures, columns=["factors", "weakest", "bets", "shared"])
    mean, least = table.groupby("factors", sort=False).mean(), table.groupby("factors").min()
    print("\nEqually weighted portfolio, every 60th day:")
    for name, row in mean.iterrows():
        print(
            f"  {name:22} {row['bets']:.2f} effective bets, weakest factor keeps "
            f"{row['weakest']:.2f} on average and {least.loc[name, 'weakest']:.2f} at least, "
            f"{row['shared']:+.0%} of the variance shared between bets"
        )
    worst = least.loc["minimum torsion", "weakest"]
    print(
        f"\nWhat the floor buys: under minimum torsion a factor kept only {worst:.2f} of itself, "
        f"so its\nbet is one of another name. At a floor of {FLOOR} no factor ever keeps less, and "
        "the price is the\nshare of the variance that correlated bets have in common. Principal "
        "components have no names at all."
    )


if __name__ == "__main__":
    main()
