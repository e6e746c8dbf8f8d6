"""A fitted model with the table it was fitted to: measured, checked once, and written."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import PurePath
from typing import Any, BinaryIO

import numpy as np

from skcoral import certificates
from skcoral.data.effects import Measured
from skcoral.estimator import CORAL
from skcoral.estimator.rows import named_rows
from skcoral.exceptions import InvalidArgumentError
from skcoral.tables.cells import float_array, selected
from skcoral.tables.table import complete_rows
from skcoral.tables.writing import output_format, table_writer, write_matrix
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
            write_outputs(data, self.model, stream, path, **layout)
        else:
            write_matrix(stream, path, data.names, names, self.model.T_, like=data.table)

    def report(self, *, command: str, notes: Sequence[str], **how: Any) -> str:
        """The report as one HTML page; ``how`` goes to :func:`skcoral.show.report.gather`."""
        from skcoral.show import report

        data, rows = self.data, self.data.rows
        y, why = data.outcome()
        sentences = [*notes, why]
        if data.matrix is None and rows is None:
            sentences.append("No hold-out table: the table is large.")
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
                notes=sentences,
                **how,
            )
            return report.render(facts)


def write_outputs(
    data: Dataset,
    model: CORAL,
    stream: BinaryIO,
    path: str,
    *,
    keep_sources: bool = False,
    drop_incomplete: bool = False,
) -> None:
    """Write the rows of a table with the outputs of a model.

    Outputs are empty in rows with a missing value, unless these rows are dropped.
    """
    table = data.table
    columns = _columns(table.names, data.names, keep_sources=keep_sources)
    writer = table_writer(stream, [name for name, _ in columns], path=path, like=table)
    # Files with types hold numbers in place of texts of numbers, which have no types of their own.
    has_types = path != "-" and output_format(path) not in ("csv", "tsv")
    others = data.passed_through if has_types and table.unit == "line" else ()
    numeric = [name for name in others if data.content.columns[name].is_written_as_number]
    incomplete: list[int] = []
    with data.progress("Writing") as tell:
        for part in complete_rows(table, data.names):
            incomplete.extend(part.dropped)
            cells = dict(zip(table.names, part.batch.columns, strict=True))
            for name in numeric:
                numbers, _ = table.numbers(cells[name])
                kind = "int64" if data.content.columns[name].is_whole else "double"
                cells[name] = float_array(numbers).cast(kind)
            outputs = np.full((len(part.usable), len(model.result_.names)), np.nan)
            if len(part.values):
                named = hasattr(model, "feature_names_in_")
                rows = named_rows(part.values, data.names) if named else part.values
                outputs[part.usable] = np.asarray(model.transform(rows))
            written = part.usable if drop_incomplete else np.ones_like(part.usable)
            if written.any():
                made = (cells[c] if isinstance(c, str) else outputs[:, c] for _, c in columns)
                writer.write([selected(column, written) for column in made])
            tell(part.batch.fraction)
    writer.close()
    data.incomplete[:] = data.incomplete or incomplete


def _columns(
    names: Sequence[str], variables: Sequence[str], *, keep_sources: bool
) -> list[tuple[str, str | int]]:
    """The columns to write: their names, and the column that each copies or its output's number.

    Each variable is replaced by its output, or followed by it.
    """
    place = {name: k for k, name in enumerate(variables)}
    columns: list[tuple[str, str | int]] = []
    for name in names:
        if keep_sources or name not in place:
            columns.append((name, name))
        if name in place:
            columns.append((f"{name}_d" if keep_sources else name, place[name]))
    (twice, count), *_ = Counter(name for name, _ in columns).most_common(1)
    if count > 1:
        raise InvalidArgumentError(
            f"An output would be called {twice!r}, and there is a column of that name.\n"
            "Rename that column, or leave out --keep-sources."
        )
    return columns
