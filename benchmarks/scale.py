"""Fit a CORAL on a Parquet file larger than one likes to load: peak memory and time.

    python benchmarks/scale.py --rows 20000000

Makes a file of correlated columns, then measures, each in a process of its own: a fit to its
batches, a transformation to a second file, and a plain NumPy pass over the same file (sums and
cross products, batch by batch) as the yardstick. The files are removed.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

COLUMNS = 20
GROUP_ROWS = 2**18


def make(path: Path, rows: int) -> dict[str, float]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng = np.random.default_rng(0)
    mixing = np.eye(COLUMNS) + 0.4 * rng.normal(size=(COLUMNS, COLUMNS))
    centre = 10.0 ** rng.uniform(0, 4, size=COLUMNS)
    names = [f"column_{j}" for j in range(COLUMNS)]
    schema = pa.schema([(name, pa.float64()) for name in names])
    # random digits do not compress: storing them plainly keeps the making short
    with pq.ParquetWriter(path, schema, use_dictionary=False, compression="none") as writer:
        for start in range(0, rows, GROUP_ROWS):
            n = min(GROUP_ROWS, rows - start)
            X = rng.standard_normal((n, COLUMNS)) @ mixing + centre
            writer.write_table(pa.table(list(X.T), schema=schema), row_group_size=n)
    return {"rows": rows}


def frames(path: Path) -> Iterator[Any]:
    """The rows of a file, batch by batch; page by page, whatever the size of its row groups."""
    import pyarrow.parquet as pq

    file = pq.ParquetFile(path, pre_buffer=False, buffer_size=2**18)
    for batch in file.iter_batches(batch_size=2**16):
        yield batch.to_pandas()


def fit(path: Path) -> dict[str, float]:
    from skcoral import CORAL
    from skcoral.models import save_model

    coral = CORAL().fit(frames(path))
    save_model(coral, path.with_suffix(".json"))
    return {"rows": coral.n_samples_seen_, "threshold": coral.threshold_.value}


def transform(path: Path) -> dict[str, float]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    from skcoral.models import load_model

    coral, rows = load_model(path.with_suffix(".json")), 0
    schema = pq.read_schema(path)
    with pq.ParquetWriter(path.with_name("outputs.parquet"), schema, use_dictionary=False) as out:
        for frame in frames(path):
            outputs = coral.transform(frame)
            out.write_table(pa.table(list(outputs.T), schema=schema))
            rows += len(outputs)
    return {"rows": rows}


def check(path: Path) -> dict[str, float]:
    """Outputs read back: correlation matrix of what is on disk, by another road."""
    total, product, n = np.zeros(COLUMNS), np.zeros((COLUMNS, COLUMNS)), 0
    for frame in frames(path.with_name("outputs.parquet")):
        X = frame.to_numpy()
        total, product, n = total + X.sum(axis=0), product + X.T @ X, n + len(X)
    C = product - np.outer(total, total) / n
    d = np.sqrt(np.diag(C))
    return {"rows": n, "largest_residual": float(np.abs(C / np.outer(d, d) - np.eye(len(d))).max())}


def numpy_pass(path: Path) -> dict[str, float]:
    import pyarrow.parquet as pq

    total, product, n = np.zeros(COLUMNS), np.zeros((COLUMNS, COLUMNS)), 0
    for batch in pq.ParquetFile(path, pre_buffer=False).iter_batches(batch_size=2**16):
        X = np.column_stack([column.to_numpy() for column in batch.columns])
        total += X.sum(axis=0)
        product += X.T @ X
        n += len(X)
    return {"rows": n}


def load_libraries() -> None:
    """Import what the steps use, so that only their work is timed."""
    import pandas  # noqa: F401
    import pyarrow.dataset
    import pyarrow.parquet  # noqa: F401

    import skcoral.models.files  # noqa: F401


STEPS = {"fit": fit, "transform": transform, "check": check, "numpy": numpy_pass}


def measured(step: str, path: Path, rows: int) -> dict[str, float]:
    """Run one step in a process of its own, so that its peak memory is its own.

    The process that starts it must stay small: a child's peak counts from its parent's size.
    """
    command = [sys.executable, __file__, "--step", step, "--path", str(path), "--rows", str(rows)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    return json.loads(done.stdout)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--folder", type=Path, default=None, help="where to put the files")
    parser.add_argument("--step", choices=[*STEPS, "make"], help=argparse.SUPPRESS)
    parser.add_argument("--path", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.step:
        load_libraries()
        wall, cpu = time.perf_counter(), time.process_time()
        if arguments.step == "make":
            outcome = make(arguments.path, arguments.rows)
        else:
            outcome = STEPS[arguments.step](arguments.path)
        outcome["seconds"] = round(time.perf_counter() - wall, 2)
        outcome["cpu_seconds"] = round(time.process_time() - cpu, 2)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        outcome["peak_mib"] = round(peak / 1024, 1)
        print(json.dumps(outcome))
        return
    with tempfile.TemporaryDirectory(dir=arguments.folder) as folder:
        path = Path(folder) / "table.parquet"
        outcomes = {}
        # the first pass only fills the file cache, as far as it goes
        for step in ("make", "numpy", "numpy", "fit", "transform", "check"):
            outcomes[step] = measured(step, path, arguments.rows)
        print(f"{arguments.rows} rows x {COLUMNS} columns, {path.stat().st_size / 2**30:.2f} GiB")
        for step, outcome in outcomes.items():
            print(f"{step:>10}: {outcome}")
        for clock in ("seconds", "cpu_seconds"):
            ratio = outcomes["fit"][clock] / outcomes["numpy"][clock]
            print(f"fit / plain NumPy pass, {clock}: {ratio:.2f}")


if __name__ == "__main__":
    main()
