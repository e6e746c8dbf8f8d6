"""
Streaming many rows
===================

A table of twenty million rows does not fit into memory, and does not have to. All that CORAL needs
from it is a count, one mean per column and one co-moment per pair of columns. They are updated
batch by batch and do not grow with the table; the solve at the end does not know how many rows
there were.

This page runs 200,000 **simulated** rows, so that it takes seconds. For twenty million the work of
reading is a hundred times as much, and memory and the solve stay the same; measured figures for a
Parquet file of that size are in the guide (:doc:`many rows </guide/many_rows>`), and
``python benchmarks/scale.py --rows 20000000`` measures your machine.
"""

# %%
# A file that is written and read in batches
# ------------------------------------------
# Eight sensors with a common drift, 200,000 rows, far away from zero (as temperatures in kelvin or
# time stamps are).

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from skcoral import CORAL, threshold
from skcoral.data.moments import Moments

NAMES = [f"sensor_{k + 1}" for k in range(8)]
ROWS, BATCH = 200_000, 20_000


def batches(offset=300.0, rows=ROWS, seed=0):
    rng = np.random.default_rng(seed)
    mix = np.linalg.cholesky(0.7 ** np.abs(np.subtract.outer(range(8), range(8))))
    for _ in range(rows // BATCH):
        yield offset + rng.normal(size=(BATCH, 8)) @ mix.T


folder = Path(tempfile.mkdtemp())
SCHEMA = pa.schema([(name, pa.float64()) for name in NAMES])
with pq.ParquetWriter(folder / "sensors.parquet", SCHEMA) as file:
    for rows in batches():
        file.write_table(pa.table(dict(zip(NAMES, rows.T, strict=True))))

# %%
# Fit and transform the file; neither step ever holds all rows. At the terminal, ``coral fit`` and
# ``coral transform`` do the same.


def frames():
    for batch in pq.ParquetFile(folder / "sensors.parquet").iter_batches():
        yield batch.to_pandas()


coral = CORAL(rho_min=0.95).fit(frames())
with pq.ParquetWriter(folder / "decorrelated.parquet", SCHEMA) as out:
    for frame in frames():
        out.write_table(pa.table(dict(zip(NAMES, coral.transform(frame).T, strict=True))))
print(coral.summary())

numbers = 1 + 8 + 8 * 9 // 2
print(f"{coral.n_samples_seen_:,} rows of {len(NAMES)} columns were reduced to {numbers} numbers")

# %%
# Check what was written, again in batches: the correlations of the outputs are those that the fit
# promised.

written = Moments(NAMES)
for batch in pq.ParquetFile(folder / "decorrelated.parquet").iter_batches():
    written.update(batch.to_pandas()[NAMES])
G = written.covariance / np.outer(written.scale, written.scale)
difference = np.abs(G - coral.result_.correlation).max()
print(f"largest difference between promised and written correlations: {difference:.1e}")
assert difference < 1e-10

# %%
# How many rows are enough?
# -------------------------
# ``partial_fit`` takes the batches as they come, and a model is there at any time. Here is ρ★ as
# rows come in, with the value for the population, which we know because the rows are simulated.

truth = threshold(0.7 ** np.abs(np.subtract.outer(range(8), range(8)))).value
running, seen, values = CORAL(), [], []
marks = set(np.unique(np.geomspace(20, ROWS, 25).astype(int)))
count = 0
for rows in batches():
    cuts = sorted(m - count for m in marks if count < m < count + len(rows))
    for piece in np.split(rows, cuts):
        running.partial_fit(piece)
        count += len(piece)
        seen.append(count)
        values.append(running.threshold_.value)
print(f"ρ★ of all rows {values[-1]:.5f}, of the population {truth:.5f}")
assert count == ROWS
assert abs(values[-1] - truth) < 0.003

# %%
# Why not simply add up squares?
# ------------------------------
# Sums of squares and products lose all their digits where columns are far from zero compared with
# their spread. The moments here keep the mean to twice the usual number of digits and compensate
# their sums.

offsets = np.logspace(0, 8, 9)
simple, compensated = [], []
for offset in offsets:
    rows = next(batches(offset, rows=BATCH))
    exact = np.corrcoef((rows - rows[0]).T)  # small numbers: nothing is lost
    n, total, products = len(rows), rows.sum(axis=0), rows.T @ rows
    cov = (products - np.outer(total, total) / n) / (n - 1)
    sd = np.sqrt(np.abs(np.diag(cov)) + 1e-300)
    simple.append(np.abs(cov / np.outer(sd, sd) - exact).max())
    moments = Moments.from_rows(rows)
    found = moments.covariance / np.outer(moments.scale, moments.scale)
    compensated.append(np.abs(found - exact).max())
for offset, plain, kept in zip(offsets, simple, compensated, strict=True):
    print(
        f"mean {offset:.0e} standard deviations: error {plain:.0e} by plain sums, {kept:.0e} here"
    )
assert simple[-1] > 0.1
assert max(compensated) < 1e-9

blue, orange, grey = "#0072B2", "#D55E00", "#5f6b7a"
figure, (left, right) = plt.subplots(1, 2, figsize=(7.2, 4.4), layout="constrained")
left.semilogx(seen, values, color=blue, marker="o", markersize=5, linewidth=2)
left.axhline(truth, color=grey, linestyle=(0, (5, 3)))
left.annotate("population", (2e5, truth), xytext=(0, -14), textcoords="offset points", color=grey,
              ha="right")  # fmt: skip
left.set_title("ρ★ as rows come in", loc="left")
left.set_xlabel("rows")
right.loglog(offsets, np.maximum(simple, 1e-17), color=orange, marker="s", label="plain sums")
right.loglog(offsets, np.maximum(compensated, 1e-17), color=blue, marker="o", label="Moments")
right.set_title("error of the correlations", loc="left")
right.set_xlabel("mean, in standard deviations")
right.legend(frameon=False)
for ax in (left, right):
    ax.spines[["top", "right"]].set_visible(False)
plt.show()
