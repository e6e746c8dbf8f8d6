"""Which variable explains how much? Shares of R² that add up and keep their names.

Correlated predictors share what they explain: their squared correlations with the target add up to
too much, what each adds to all others to too little. The outputs of CORAL are uncorrelated, so
their squared correlations with the target add up to the R² of the regression exactly, and each
output is still its own variable to the fidelity printed beside it.

    python examples/shares.py

The shares are those of the outputs. Another exact decorrelator would give others; this is the one
whose least faithful output is as faithful as can be.
"""

import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.linear_model import LinearRegression

from skcoral import CORAL


def r_squared(X, y):
    return LinearRegression().fit(X, y).score(X, y)


def shares(X, y):
    """R² of all columns together; of each alone; added by each to the others; and by output."""
    coral = CORAL().fit(X)
    whole = r_squared(X, y)
    alone = [r_squared(X[:, [j]], y) for j in range(X.shape[1])]
    added = [whole - r_squared(np.delete(X, j, axis=1), y) for j in range(X.shape[1])]
    outputs = coral.transform(X)
    share = [r_squared(outputs[:, [j]], y) for j in range(X.shape[1])]
    return coral, whole, np.column_stack([coral.fidelity_, alone, added, share])


def main():
    data = load_diabetes()
    coral, whole, table = shares(data.data, data.target)
    least = coral.fidelity_.min()
    print(f"R2 = {whole:.4f}; least correlation of an output with its variable: {least:.4f}")
    print(f"{'':5}{'fidelity':>10}{'alone':>10}{'added':>10}{'share':>10}")
    for name, row in zip(data.feature_names, table, strict=True):
        print(f"{name:5}" + "".join(f"{value:10.4f}" for value in row))
    print(f"{'sum':15}" + "".join(f"{value:10.4f}" for value in table[:, 1:].sum(axis=0)))


if __name__ == "__main__":
    main()
