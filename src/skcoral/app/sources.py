"""Where the numbers come from: bundled examples, an uploaded file, a pasted matrix."""

from __future__ import annotations

import re
import threading
from dataclasses import dataclass, field, replace

from skcoral import datasets
from skcoral.core.limits import VISITOR, use
from skcoral.core.results import Array, read_only
from skcoral.exceptions import InvalidTableError
from skcoral.tables import matrices
from skcoral.tables.columns import TableProfile, profile, too_few
from skcoral.tables.matrices import NamedMatrix, matrix_in, named_matrix, parse_matrix
from skcoral.tables.reading import open_table, sheet_names
from skcoral.tables.roles import Doubt
from skcoral.tables.sources import PACKED
from skcoral.tables.table import Batch, Table

UPLOAD_MB = 25
ENDINGS = ("csv", "tsv", "txt", "xlsx", "xls", "ods", "parquet", "dta")
#: One upload is parsed at a time: several large ones must not fill the memory together.
_one_at_a_time = threading.Lock()


@dataclass(frozen=True, kw_only=True)
class _Source:
    """Columns of numbers that can be variables, and where they come from.

    Attributes
    ----------
    doubtful : dict of str to Doubt
        Columns that are hardly variables (ids, years), with the reason.
    dialect : dict of str to str
        How a file was read where that is not the default.
    public : bool
        Whether everybody may share what is computed from it: true for examples only.
    """

    key: str
    label: str
    names: tuple[str, ...]
    doubtful: dict[str, Doubt] = field(default_factory=dict)
    dialect: dict[str, str] = field(default_factory=dict)
    note: str = ""
    public: bool = False


@dataclass(frozen=True, kw_only=True)
class MatrixSource(_Source):
    """A correlation matrix; ``said`` tells what was recognised, ``is_file`` whether in a file."""

    R: Array
    said: tuple[str, ...] = ()
    is_file: bool = False


@dataclass(frozen=True, kw_only=True)
class TableSource(_Source):
    """A table, its columns of numbers as ``values`` (NaN where missing), and why others are not."""

    table: Table
    content: TableProfile
    values: Array
    left_out: tuple[tuple[str, str], ...]

    @property
    def unusable(self) -> tuple[str, ...]:
        """Columns left out that are not text: the command must be told to exclude them."""
        kinds = ((name, self.content.column(name).kind) for name, _ in self.left_out)
        return tuple(name for name, kind in kinds if kind != "text" or not name)


Source = MatrixSource | TableSource


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
    return MatrixSource(key=key, label=label, R=R, names=names, note=note, public=True)


def pasted(text: str) -> MatrixSource:
    """Read a pasted correlation or covariance matrix."""
    label = "pasted matrix"
    with use(VISITOR):
        R, names = parse_matrix(text)
    found = named_matrix(R, names, label, has_labels=True, asked=False)
    said: tuple[str, ...] = ()
    if found is not None and found.scale is not None:
        R, said = found.R, ("A covariance matrix was pasted: its correlations are used.",)
    return MatrixSource(key=text, label=label, R=R, names=names, said=said)


def sheets(data: bytes, name: str) -> tuple[str, ...]:
    """The sheets of an uploaded workbook; none for any other file."""
    _refuse_packed(data, name)
    with use(VISITOR):
        return sheet_names(data, name=name)


def read_file(data: bytes, name: str, *, key: str, dialect: dict[str, str] | None = None) -> Source:
    """Read an uploaded file, within the limits of a shared server.

    A correlation or covariance matrix is recognised and taken as one.
    """
    _refuse_packed(data, name)
    with use(VISITOR), _one_at_a_time:
        table = open_table(data, name=name, **(dialect or {}))  # type: ignore[arg-type]
        content = _profile(table)
        matrix = matrix_in(table, content)
        if matrix is not None:
            return _matrix_source(matrix, table, key, dialect)
        return _with_numbers(key, table, content, dialect or {})


def read_matrix(data: bytes, name: str, *, key: str) -> MatrixSource:
    """Read an uploaded file that is said to hold a matrix, with or without names."""
    _refuse_packed(data, name)
    with use(VISITOR), _one_at_a_time:
        table, _, matrix = matrices.read_matrix(data, name=name)
    return _matrix_source(matrix, table, key)


def _matrix_source(
    matrix: NamedMatrix, table: Table, key: str, dialect: dict[str, str] | None = None
) -> MatrixSource:
    return MatrixSource(
        key=key,
        label=table.label,
        names=matrix.names,
        dialect=dialect or {},
        R=read_only(matrix.R),
        said=(*table.assumed, matrix.sentence),
        is_file=True,
    )


def _profile(table: Table) -> TableProfile:
    seen = 0

    def refuse_many_cells(n_rows: int) -> None:
        what = f"{n_rows:,} rows or more of {len(table.names):,} columns are too many cells"
        VISITOR.require("cells", n_rows * len(table.names), table.label, what)

    def count(batch: Batch) -> None:
        nonlocal seen
        seen += len(batch.rows)
        refuse_many_cells(seen)

    refuse_many_cells(table.n_rows or 0)
    content = profile(table, on_batch=count)
    if content.n_rows == 0:
        remedy = "Choose another sheet" if table.other_sheets else "Give a table with data"
        raise InvalidTableError(
            f"{table.label}: there is a header but no rows under it.\n{remedy}."
        )
    return content


def _with_numbers(
    key: str, table: Table, content: TableProfile, dialect: dict[str, str]
) -> TableSource:
    reasons = {column.name: column.unusable(table) for column in content.columns}
    kept = [name for name, why in reasons.items() if not why]
    left_out = [(name, why) for name, why in reasons.items() if why]
    if len(kept) < 2:
        raise too_few(table, content, kept, "Check the separator and the header.")
    doubts = {name: content.column(name).doubt for name in kept}
    return TableSource(
        key=key,
        label=table.label,
        names=tuple(kept),
        doubtful={name: why for name, why in doubts.items() if why is not None},
        dialect=dialect,
        table=table,
        content=content,
        values=read_only(table.to_numpy(kept)),
        left_out=tuple(left_out),
    )


def _refuse_packed(data: bytes, name: str) -> None:
    """Refuse compressed files, whose size after unpacking is not known."""
    packed = next((kind for kind, start in PACKED.items() if data.startswith(start)), None)
    if packed is not None:
        raise InvalidTableError(
            f"{name}: the file is compressed ({packed}).\nUpload it unpacked, or use the command: "
            "coral fit reads compressed files."
        )
