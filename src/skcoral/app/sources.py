"""Where the numbers come from: an uploaded file, or the example."""

from __future__ import annotations

import threading
from dataclasses import dataclass

from skcoral import datasets
from skcoral.core.display import printable
from skcoral.core.limits import VISITOR, use
from skcoral.tables.cells import plain_cells
from skcoral.tables.reading import sheet_names
from skcoral.workflow.opening import OpenedFile, open_file

UPLOAD_MB = 25
ENDINGS = ("csv", "tsv", "txt", "xlsx", "xls", "ods", "parquet", "dta")
#: Of the preview.
_FIRST_ROWS, _LONGEST_CELL = 8, 80
#: One upload is parsed at a time: several large ones must not fill the memory together.
_one_at_a_time = threading.Lock()


@dataclass(frozen=True, kw_only=True)
class Source:
    """A table or a matrix, and where it comes from."""

    key: str
    opened: OpenedFile
    sheet: str | None = None  # of a workbook, where the visitor chose one
    is_example: bool = False  # the table that everybody sees first

    @property
    def names(self) -> tuple[str, ...]:
        """The columns that can be variables."""
        return self.opened.offered

    @property
    def has_rows(self) -> bool:
        """Whether this is a table, and not a matrix."""
        return self.opened.matrix is None

    def first_rows(self) -> list[list[str]]:
        """The first cells of every column, as the file has them."""
        with use(VISITOR):
            batch = next(self.opened.table.batches(_FIRST_ROWS), None)
        if batch is None:  # nothing but names
            return [[] for _ in self.opened.table.names]
        return [
            ["" if cell is None else printable(str(cell)[:_LONGEST_CELL]) for cell in cells]
            for cells in map(plain_cells, batch.columns)
        ]


def example() -> Source:
    """The Wine data."""
    text = datasets.load_wine().to_frame().to_csv(index=False)
    opened = open_file(text.encode(), name="wine.csv")
    return Source(key="wine", opened=opened, is_example=True)


def sheets(data: bytes, name: str) -> tuple[str, ...]:
    """The sheets of an uploaded workbook; none for any other file."""
    with use(VISITOR):
        return sheet_names(data, name=name)


def read_file(data: bytes, name: str, *, key: str, sheet: str | None = None) -> Source:
    """Read an uploaded file, within the limits of a shared server."""
    with use(VISITOR), _one_at_a_time:
        opened = open_file(data, name=name, sheet=sheet)
    return Source(key=key, opened=opened, sheet=sheet)
