"""A fitted model with the table it was fitted to: measured, checked once, and written."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import PurePath
from typing import Any, BinaryIO

from skcoral import certificates
from skcoral.data.effects import Measured, Measurement
from skcoral.estimator import CORAL
from skcoral.estimator.rows import named_rows
from skcoral.exceptions import InvalidTableError
from skcoral.tables.transforming import (
    columns_with_outputs,
    write_matrix,
    write_transformed,
)
from skcoral.workflow.dataset import Dataset


@dataclass(frozen=True)
class Fit:
    """A model fitted to a dataset; see :meth:`Dataset.fit`."""

    data: Dataset
    model: CORAL
    groups: str | None = None  # the column of clusters

    @cached_property
    def measured(self) -> Measured:
        """The effect on the rows, weighted as in the fit, or on the matrix."""
        n_rows = None if self.data.matrix is not None else self.data.content.n_rows
        return replace(self.model.measured_, rows_given=n_rows)

    @cached_property
    def check(self) -> certificates.Check:
        """The independent check of the certificate."""
        with self.data.progress("Checking"):
            return certificates.check(self.model.result_, self.model.correlation_)

    def certificate(self) -> str:
        """The certificate as the text of a file."""
        return certificates.certificate_text(
            self.model.result_, self.model.correlation_, sources=self.data.names
        )

    def write(self, stream: BinaryIO, path: str, **layout: Any) -> None:
        """Write the table with its variables replaced by outputs, or T for a matrix.

        ``layout`` says whether to ``keep_sources`` and to ``drop_incomplete`` rows.
        """
        data, names = self.data, self.model.result_.names
        if data.matrix is None:
            _write_rows(data, self.model, stream, path, **layout)
        else:
            write_matrix(stream, path, data.names, names, self.model.T_, like=data.table)

    def report(self, *, command: str, notes: Sequence[str], **how: Any) -> str:
        """The report as one HTML page; ``how`` goes to :func:`skcoral.show.report.gather`."""
        from skcoral.show import report

        data, rows = self.data, self.data.rows
        y, why = data.outcome()
        told = [*notes, why]
        if data.matrix is None and rows is None:
            told.append("No hold-out table: the table is large.")
        with data.progress("Making the report"):
            facts = report.gather(
                self.model,
                X=None if rows is None else named_rows(rows.values, data.names),
                known=data.known(self.groups),
                y=y,
                outcome=data.request.target or "",
                measured=self.measured,
                check=self.check,
                title=f"Decorrelation of {PurePath(data.table.label).stem}",
                file=PurePath(data.table.label).name,
                command=command,
                notes=told,
                **how,
            )
            return report.render(facts)


def write_outputs(
    data: Dataset, model: CORAL, stream: BinaryIO, path: str, **layout: Any
) -> Measured | None:
    """Write the rows of a table with the outputs of a model, and measure the effect on them.

    ``layout`` is that of :meth:`Fit.write`. None where rows are few or columns constant in them.
    Incomplete rows are noted in the dataset.
    """
    measurement = Measurement(data.names, model.result_.names)

    def add(rows: Any, outputs: Any) -> None:
        measurement.add(model.standardised(rows), outputs)

    data.incomplete[:] = _write_rows(data, model, stream, path, on_rows=add, **layout)
    if measurement.n_rows < 3:
        return None
    try:
        return measurement.result(rows_given=data.content.n_rows)
    except InvalidTableError:
        return None


def _write_rows(
    data: Dataset,
    model: CORAL,
    stream: BinaryIO,
    path: str,
    *,
    keep_sources: bool = False,
    drop_incomplete: bool = False,
    on_rows: Callable[[Any, Any], None] | None = None,
) -> list[int]:
    """Write the rows of a table with the outputs of a model; returns where incomplete ones are."""
    columns = columns_with_outputs(data.table.names, data.names, keep_sources=keep_sources)
    # Sheets and typed files hold numbers already; the numbers of texts are written as numbers.
    others = map(data.content.column, data.passed_through if data.table.unit == "line" else ())
    with data.progress("Writing") as tell:
        return write_transformed(
            *(stream, path, data.table, data.names, model),
            columns=columns,
            on_rows=on_rows,
            on_batch=lambda batch: tell(batch.fraction),
            drop_incomplete=drop_incomplete,
            numeric=[column.name for column in others if column.is_written_as_number],
        )
