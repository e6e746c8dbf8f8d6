"""
For econometricians: regression on the outputs
==============================================

Longley's economic series are the textbook case of collinear regressors: six variables that mostly
grow with time, and coefficients whose signs nobody believes. A regression on decorrelated outputs
has the same fitted values and quite different t values. This page shows both side by side, and why
the second set is not evidence about the first.
"""

# %%
# The table
# ---------
# Employment in the United States, 1947 to 1962, and six regressors (J. W. Longley, 1967, *Journal
# of the American Statistical Association* 62, 819–841; the figures are in the public domain).
# The outcome is set aside first: **the outcome is never decorrelated with its regressors**, because
# every output would then contain a part of it.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from skcoral import CORAL

columns = ["employed", "deflator", "gnp", "unemployed", "armed_forces", "population", "year"]
rows = """
60323  83.0 234289 2356 1590 107608 1947
61122  88.5 259426 2325 1456 108632 1948
60171  88.2 258054 3682 1616 109773 1949
61187  89.5 284599 3351 1650 110929 1950
63221  96.2 328975 2099 3099 112075 1951
63639  98.1 346999 1932 3594 113270 1952
64989  99.0 365385 1870 3547 115094 1953
63761 100.0 363112 3578 3350 116219 1954
66019 101.2 397469 2904 3048 117388 1955
67857 104.6 419180 2822 2857 118734 1956
68169 108.4 442769 2936 2798 120445 1957
66513 110.8 444546 4681 2637 121950 1958
68655 112.6 482704 3813 2552 123366 1959
69564 114.2 502601 3931 2514 125368 1960
69331 115.7 518173 4806 2572 127852 1961
70551 116.9 554894 4007 2827 130081 1962
"""
longley = pd.DataFrame([row.split() for row in rows.strip().splitlines()], columns=columns)
longley = longley.astype(float)
y, X = longley["employed"], longley.drop(columns="employed")

# %%
# Two regressions
# ---------------
# Ordinary least squares, once on the columns and once on outputs without a VIF above 2.


def least_squares(X, y):
    """Coefficients with the intercept first, t values, R², and fitted values."""
    design = np.column_stack([np.ones(len(X)), X])
    coef = np.linalg.lstsq(design, y, rcond=None)[0]
    fitted = design @ coef
    variance = np.sum((y - fitted) ** 2) / (len(y) - design.shape[1])
    t = coef / np.sqrt(variance * np.diag(np.linalg.inv(design.T @ design)))
    return coef, t, 1 - np.sum((y - fitted) ** 2) / np.sum((y - y.mean()) ** 2), fitted


coral = CORAL(max_vif=2).set_output(transform="pandas").fit(X)
outputs = coral.transform(X)
print(coral.measured_.headline())

coef, t, r2, fitted = least_squares(X, y)
coef_out, t_out, r2_out, fitted_out = least_squares(outputs, y)
print(f"R² on the columns {r2:.6f}, on the outputs {r2_out:.6f}")
print(f"largest difference of fitted values: {np.abs(fitted - fitted_out).max():.1e}")

# %%
# The outputs span the same space as the columns, so the fit is the same to rounding: nothing is
# gained or lost for prediction. The coefficients on the outputs are the coefficients on the columns
# in other coordinates, and ``source_coefficients`` translates them back:

back = coral.source_coefficients(coef_out[1:], intercept=coef_out[0])
print(pd.DataFrame({"on the columns": coef[1:], "translated back": back.coef}, index=X.columns))

# %%
# The t values
# ------------

table = pd.DataFrame(
    {"t on the column": t[1:], "t on the output": t_out[1:], "fidelity": coral.fidelity_},
    index=X.columns,
)
print(table.round(2))

fig, ax = plt.subplots(figsize=(7, 3.6), layout="constrained")
places = np.arange(len(table))
ax.barh(places - 0.2, table["t on the column"], height=0.38, label="on the column", color="C7")
ax.barh(places + 0.2, table["t on the output"], height=0.38, label="on the output", color="C0")
ax.axvline(0, color="black", linewidth=0.8)
ax.set_yticks(places, table.index)
ax.invert_yaxis()
ax.set_xlabel("t value")
ax.set_title("The same fit in two sets of regressors")
ax.legend(frameon=False)

# %%
# Population goes from a small negative t value to a large positive one. This is not a discovery
# about population. The two numbers answer different questions:
#
# * The coefficient of a **column** asks what changes with that column while the five others are
#   held fixed. The data hardly contain such changes, so the answer is uncertain.
# * The coefficient of an **output** asks what changes with a new variable that correlates by at
#   least the floor with population and shares little with the other outputs. That variable keeps a
#   part of the common growth, and employment grew.
#
# Each output takes its share of what the columns have in common, by a rule that looks at the
# regressors only. A large t value says that this share, as divided, goes with the outcome. It does
# not say that the column has an effect of its own, and the sign of a single column's coefficient
# cannot be recovered from it: the standard error of that is as large as it was.
#
# When to do it: to describe how the fit is divided among named variables, each close to its own
# column, without the cancellation of large coefficients of opposite sign. When not to: to test a
# column's own effect (collect data in which it varies by itself), to select columns (drop them), to
# predict (ridge regression), or to ask what one column adds to given others (residualise it on
# those, or report shares of R²). In the guide: :doc:`regression on the outputs
# </guide/regression>`.
