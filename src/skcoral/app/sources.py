"""Where the numbers come from: bundled examples, an uploaded file, a pasted matrix."""

from __future__ import annotations

import re
import threading
from dataclasses import dataclass, field, replace
from typing import Any

from skcoral import datasets
from skcoral.core.display import printable
from skcoral.core.limits import VISITOR, use
from skcoral.exceptions import InvalidTableError
from skcoral.tables.arrow_arrays import plain_cells
from skcoral.tables.reading import sheet_names
from skcoral.tables.sources import GZIP
from skcoral.workflow.opening import OpenedFile, open_file, open_matrix

UPLOAD_MB = 25
ENDINGS = ("csv", "tsv", "txt", "xlsx", "xls", "ods", "parquet", "dta")
#: Of the preview.
_FIRST_ROWS, _LONGEST_CELL = 8, 80
#: One upload is parsed at a time: several large ones must not fill the memory together.
_one_at_a_time = threading.Lock()


@dataclass(frozen=True, kw_only=True)
class Source:
    """A table or a matrix, and where it comes from.

    Attributes
    ----------
    dialect : dict of str to str
        How a file was read where that is not the default.
    public : bool
        Whether everybody may share what is computed from it: true for examples only.
    """

    key: str
    opened: OpenedFile
    dialect: dict[str, str] = field(default_factory=dict)
    note: str = ""
    public: bool = False
    is_file: bool = False

    @property
    def label(self) -> str:
        """What to call it."""
        return self.opened.table.label

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


def example(name: str, *, size: int = 18) -> Source:
    """Load one of the bundled examples."""
    if name == "wine":
        wine = datasets.load_wine()
        data = wine.to_frame().to_csv(index=False).encode()
        return replace(read_file(data, "wine.csv", key="wine"), note=wine.source, public=True)
    if name == "wdi":
        wdi = datasets.wdi_correlation()
        key, label, R, names = name, "World Bank", wdi.correlation, wdi.names
        note = f"{wdi.n_rows} countries. {wdi.source} ({wdi.licence})"
        note = re.sub(r"https?://([^)\s/]+)[^)\s]*", r"[\1](\g<0>)", note)
    else:
        key, label = f"simulated-{size}", "simulated"
        R, names = datasets.make_system(size), tuple(f"x{j}" for j in range(1, size + 1))
        note = f"A random correlation matrix of {size} variables, always the same one."
    return Source(key=key, opened=open_matrix(R, names, label), note=note, public=True)


def pasted(text: str) -> Source:
    """Read a pasted correlation or covariance matrix."""
    with use(VISITOR):
        opened = open_file(text.encode(), name="pasted matrix", matrix=True)
    is_covariance = opened.matrix is not None and opened.matrix.scale is not None
    note = "A covariance matrix was pasted: its correlations are used." if is_covariance else ""
    return Source(key=text, opened=opened, note=note)


def sheets(data: bytes, name: str) -> tuple[str, ...]:
    """The sheets of an uploaded workbook; none for any other file."""
    _refuse_packed(data, name)
    with use(VISITOR):
        return sheet_names(data, name=name)


def read_file(
    data: bytes,
    name: str,
    *,
    key: str,
    dialect: dict[str, str] | None = None,
    matrix: bool | None = None,
) -> Source:
    """Read an uploaded file, within the limits of a shared server.

    A correlation or covariance matrix is recognised, or taken as one where ``matrix`` says so.
    """
    _refuse_packed(data, name)
    how: dict[str, Any] = dict(dialect or {})
    with use(VISITOR), _one_at_a_time:
        opened = open_file(data, name=name, matrix=matrix, in_memory=True, **how)
    return Source(key=key, opened=opened, dialect=dialect or {}, is_file=True)


def _refuse_packed(data: bytes, name: str) -> None:
    """Refuse compressed files, whose size after unpacking is not known."""
    if data.startswith(GZIP):
        raise InvalidTableError(
            f"{name}: the file is compressed.\nUpload it unpacked, or use the command: "
            "coral fit reads compressed files."
        )
