"""Open a file, see what its columns hold, and choose the variables."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from skcoral.core.validation import listing
from skcoral.exceptions import InvalidArgumentError, InvalidTableError
from skcoral.tables.columns import TableProfile, profile
from skcoral.tables.matrices import NamedMatrix, check_rows, matrix_in
from skcoral.tables.reading import open_table
from skcoral.tables.table import Table
from skcoral.tables.variables import no_numbers, select_variables
from skcoral.workflow.dataset import Dataset, Progress, Request, quiet


@dataclass(frozen=True)
class OpenedFile:
    """A table whose columns have been looked at, or the correlation matrix that a file holds."""

    table: Table
    content: TableProfile
    matrix: NamedMatrix | None = None
    progress: Progress = field(default=quiet, compare=False)

    @cached_property
    def reasons(self) -> dict[str, str]:
        """Why columns cannot be variables, by name."""
        columns = self.content.columns.items() if self.matrix is None else ()
        return {name: why for name, column in columns if (why := column.unusable(self.table))}

    @cached_property
    def unreadable(self) -> tuple[str, ...]:
        """Columns of numbers with cells that are none: they are refused unless excluded."""
        columns = self.content.columns.items()
        return tuple(name for name, column in columns if column.is_unreadable)

    @property
    def offered(self) -> tuple[str, ...]:
        """Columns that can be chosen as variables, those that cannot be read included."""
        if self.matrix is not None:
            return self.matrix.names
        left_out = self.reasons.keys() - {*self.unreadable}
        return tuple(name for name in self.table.names if name not in left_out)

    @cached_property
    def doubtful(self) -> dict[str, str]:
        """Columns that look like ids, years or weights, with the reason."""
        offered = self.offered if self.matrix is None else ()
        return {name: doubt for name in offered if (doubt := self.content.columns[name].doubt)}

    def choose(self, request: Request) -> Dataset:
        """Take the variables that are asked for, or all columns of numbers."""
        other_uses = (request.weights, *request.labels)
        if request.target is not None and request.target in other_uses:
            raise InvalidArgumentError(
                f"--target {request.target!r} has another use as well: it holds weights, dates or "
                "groups.\nName the column that the variables are to explain."
            )
        how: dict[str, Any] = {"progress": self.progress, "request": request}
        if self.matrix is not None:
            matrix = self._part_of_matrix(self.matrix, request)
            return Dataset(self.table, self.content, matrix.names, matrix=matrix, **how)
        aside = [name for name in (request.target, *other_uses) if name is not None]
        names, how["constant"], how["doubtful"] = select_variables(
            self.table,
            self.content,
            request.columns or None,
            exclude=(*request.exclude, *aside),
            include=request.include,
        )
        if request.weights is not None:
            weights = self.content.columns[request.weights]
            if weights.kind != "number" or weights.is_unreadable:
                raise no_numbers(self.table, [weights])
        return Dataset(self.table, self.content, names, **how)

    def _part_of_matrix(self, matrix: NamedMatrix, request: Request) -> NamedMatrix:
        label = self.table.label
        check_options(label, weights=request.weights, covariance=request.covariance)
        wanted = request.columns or matrix.names
        exclude = {*request.exclude, *filter(None, [request.target])}
        named = replace(self.table, names=matrix.names)
        for name in (*wanted, *exclude):
            named.index(name)
        names = tuple(name for name in wanted if name not in exclude)
        if len(set(names)) < 2:
            raise InvalidTableError(
                f"{label}: at least two variables are needed.\nChoose more of them."
            )
        return matrix.part(names)

    def for_model(self, model: Any) -> Dataset:
        """The columns that a model was fitted on: by name, or in order where it has no names."""
        check_rows(self.matrix, self.table.label)
        wanted = getattr(model, "feature_names_in_", None)
        wanted = None if wanted is None else [str(name) for name in wanted]
        missing = [name for name in wanted or () if name not in self.table.names]
        if missing:
            raise InvalidTableError(
                f"{self.table.label}: columns of the model are missing: "
                f"{listing(missing, quote='')}.\n"
                "Give a table with all columns that the model was fitted on; order does not matter."
            )
        names, _, _ = select_variables(
            self.table, self.content, wanted, include=None, may_be_constant=True
        )
        if len(names) != model.n_features_in_:
            raise InvalidTableError(
                f"{self.table.label}: the model has {model.n_features_in_} columns without names, "
                f"and the table has {len(names)} columns of numbers.\n"
                "Give a table with the columns that the model was fitted on, in the same order."
            )
        return Dataset(self.table, self.content, names, progress=self.progress)


def open_file(
    source: Any,
    *,
    matrix: bool | None = None,
    progress: Progress = quiet,
    **reading: Any,
) -> OpenedFile:
    """Open a file, with the options ``reading`` of ``open_table``, and look at its columns.

    Whether it holds a correlation or covariance ``matrix`` is recognised unless it is said, and
    ``progress`` is given what is being done and returns a context that takes the fraction done.
    """
    table = open_table(source, **reading)
    with progress(f"Looking at {table.label}") as tell:
        content = profile(table, tell)
    given = None if matrix is False else matrix_in(table, content, asked=matrix is True)
    return OpenedFile(table, content, given, progress)


def check_options(label: str, **options: Any) -> None:
    """Refuse options that are about rows, for a file that holds a matrix."""
    for name, value in options.items():
        if value:
            raise InvalidArgumentError(
                f"{label}: --{name.replace('_', '-')} needs rows, and the file holds a matrix.\n"
                "Leave it out, or say --no-matrix if these are rows of data."
            )
