"""Output files: all of them or none, and rows that are measured as they are written."""

from __future__ import annotations

import contextlib
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO, cast

import numpy as np

from skcoral.cli import console
from skcoral.cli.loading import Loaded
from skcoral.cli.options import LayoutOptions
from skcoral.cli.run import UsageError
from skcoral.core.display import printable
from skcoral.core.files import Outputs
from skcoral.data.effects import Measured, Measurement
from skcoral.exceptions import InvalidTableError
from skcoral.tables.transforming import (
    Sheet,
    columns_with_outputs,
    explaining_sheets,
    write_transformed,
)
from skcoral.tables.writing import output_format


def check_output(output: str | None, as_json: bool) -> None:
    """Refuse an output that cannot be written, before anything is done."""
    if output == "-" and as_json:
        raise UsageError(
            "--json and '-o -' both want standard output.\nWrite the table to a file instead."
        )
    if output is not None and output != "-":
        output_format(output)


def check_ending(
    path: Path | None, endings: Sequence[str], what: str, remedy: str = "Choose such a name."
) -> None:
    """Refuse a name whose ending does not tell how ``what`` is to be written."""
    if path is not None and path.suffix.lower() not in endings:
        raise UsageError(
            f"{printable(str(path))}: {what} must end in {' or '.join(endings)}.\n{remedy}"
        )


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


class OutputMeasurement(Measurement):
    """Figures of the rows that a model transforms, added batch by batch."""

    def __init__(self, estimator: Any, loaded: Loaded) -> None:
        super().__init__(loaded.names, estimator.result_.names)
        self.estimator, self.loaded = estimator, loaded

    def add_rows(self, rows: Any, outputs: Any = None) -> None:
        """Add complete rows and their outputs, which are computed where they are not given."""
        estimator = self.estimator
        if len(rows):
            outputs = np.asarray(estimator.transform(rows)) if outputs is None else outputs
            self.add(estimator.standardised(rows), outputs)

    def measured(self) -> Measured | None:
        """The figures; None where rows are few or columns constant in them."""
        given = self.loaded.content.n_rows
        if self.n_rows < 3:
            return None
        try:
            return self.result(rows_given=given)
        except InvalidTableError:
            return None

    def write(self, stream: BinaryIO, path: str, options: LayoutOptions) -> tuple[int, list[int]]:
        """Write and measure the rows; returns how many, and where those left out stand."""
        loaded, estimator = self.loaded, self.estimator

        def sheets() -> list[Sheet]:
            found = self.measured()
            return (
                [] if found is None else explaining_sheets(estimator.result_, found, loaded.names)
            )

        with console.progress("Writing") as tell:
            return write_transformed(
                stream,
                path,
                loaded.table,
                loaded.names,
                estimator,
                on_rows=self.add_rows,
                on_batch=lambda batch: tell(batch.fraction),
                columns=columns_with_outputs(
                    loaded.table.names, loaded.names, keep_sources=options.keep_sources
                ),
                sheets=sheets,
            )
