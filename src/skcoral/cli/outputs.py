"""Output files: all of them or none, and rows that are measured as they are written."""

from __future__ import annotations

import contextlib
import shutil
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, BinaryIO, cast

import numpy as np

from skcoral.cli import console
from skcoral.cli.loading import Loaded
from skcoral.cli.options import LayoutOptions
from skcoral.cli.run import UsageError
from skcoral.measured import Measured, Measurement
from skcoral.tables.staging import Outputs
from skcoral.tables.transforming import Sheet, explaining_sheets, write_transformed
from skcoral.tables.writing import output_format


def check_output(output: str | None, as_json: bool) -> None:
    """Refuse an output that cannot be written, before anything is done."""
    if output == "-" and as_json:
        raise UsageError(
            "--json and '-o -' both want standard output.\nWrite the table to a file instead."
        )
    if output is not None and output != "-":
        output_format(output)


@contextlib.contextmanager
def all_or_none(force: bool, *paths: str | Path | None) -> Iterator[Outputs]:
    """Files that are put in place together when the block ends, or not at all."""
    with Outputs(force=force) as outputs:
        for path in paths:
            if isinstance(path, Path) and str(path) == "-":
                raise UsageError(
                    "'-' is standard output, and only a table is written there (-o -).\n"
                    "Give the other outputs the names of files."
                )
            if path is not None and str(path) != "-":
                outputs.reserve(path)
        yield outputs
        outputs.commit()


@contextlib.contextmanager
def destination(outputs: Outputs, path: str | None) -> Iterator[BinaryIO | None]:
    """Open an output; what goes to standard output is kept back until all else has succeeded."""
    if path is None:
        yield None
    elif path != "-":
        with outputs.open(path) as stream:
            yield stream
    else:
        with tempfile.SpooledTemporaryFile(max_size=2**26) as kept:
            yield cast(BinaryIO, kept)
            kept.seek(0)
            shutil.copyfileobj(kept, sys.stdout.buffer)
            sys.stdout.buffer.flush()


def measure(measurement: Measurement, estimator: Any, rows: Any, outputs: Any = None) -> None:
    """Add rows and their outputs, which are computed where they are not given."""
    if estimator.missing == "em":  # estimated values are not measured
        complete = ~np.isnan(np.asarray(rows)).any(axis=1)
        rows, outputs = rows[complete], None if outputs is None else outputs[complete]
    if len(rows):
        sources = estimator.standardised(rows)
        if estimator.margins_ is not None:
            measurement.n_outside += estimator.margins_.outside(rows)
        outputs = np.asarray(estimator.transform(rows)) if outputs is None else outputs
        measurement.add(sources, outputs)


def write(
    stream: BinaryIO,
    path: str,
    loaded: Loaded,
    estimator: Any,
    measurement: Measurement,
    options: LayoutOptions,
) -> tuple[int, list[int]]:
    """Write the complete rows; returns how many, and where the others stand."""

    def sheets() -> list[Sheet]:
        if measurement.n_rows < 3:
            return []
        measured = measured_result(measurement, estimator, loaded.content.n_rows)
        return explaining_sheets(estimator.result_, measured, loaded.names)

    with console.progress("Writing") as tell:
        return write_transformed(
            stream,
            path,
            loaded.table,
            loaded.names,
            estimator,
            on_rows=lambda rows, outputs: measure(measurement, estimator, rows, outputs),
            on_batch=lambda batch: tell(batch.fraction),
            columns=options.layout.columns(loaded.table.names, loaded.names),
            sheets=sheets,
            escape_formulas=options.escape_formulas,
        )


def measured_result(measurement: Measurement, estimator: Any, rows_given: int) -> Measured:
    """The figures of all rows that were added."""
    margins = estimator.margins_
    kind = "none" if margins is None else margins.kind
    found = measurement.result(rows_given=rows_given, margins=kind)
    return replace(found, complete=estimator.missing == "em" and found.rows_used != rows_given)
