"""Tables larger than memory: files, or folders of them, that are fitted and transformed in batches.

They are read as all tables are (:mod:`skcoral.tables.reading`), but no batch is kept.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from skcoral._requirements import listing, repeated
from skcoral._staging import replacing
from skcoral._validation import check_count
from skcoral.estimator import CORAL
from skcoral.exceptions import InvalidArgumentError, InvalidTableError
from skcoral.showing import printable
from skcoral.tables.reading import open_table
from skcoral.tables.sources import Source
from skcoral.tables.table import Batch, Table, finite_numbers
from skcoral.tables.transforming import Column, write_transformed
from skcoral.tables.writing import output_format

if TYPE_CHECKING:
    import pandas as pd

_BATCH_CELLS = 2**20  # 8 MiB of float64: small beside memory, large beside the cost of a call


@dataclass(frozen=True)
class TableFile:
    r"""A table on disk, read in batches of rows as often as needed; see :func:`from_parquet`.

    Iterating gives data frames of the chosen columns, so ``CORAL().fit(iter(table))`` works.

    Attributes
    ----------
    path : str
        Where it is, for messages.
    columns : tuple of str
        The columns to work on, all numeric.
    table : Table
        All columns, of one file after the other.
    batch_rows : int
        Rows per batch at most.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "rows.csv"
    >>> _ = path.write_text("a,b\n1,2\n2,4.5\n3,5\n")
    >>> table = from_csv(path)
    >>> table.columns, sum(len(batch) for batch in table)
    (('a', 'b'), 3)
    """

    path: str
    columns: tuple[str, ...]
    table: Table
    batch_rows: int

    def __iter__(self) -> Iterator[pd.DataFrame]:
        yield from self.batches(self.columns)

    def batches(self, columns: Sequence[str]) -> Iterator[pd.DataFrame]:
        """Read some columns, batch by batch, in the order of the rows."""
        import pandas as pd

        table = _selected(self.table, columns, columns)
        for batch in table.batches(self.batch_rows):
            cells = zip(columns, batch.columns, strict=True)
            yield pd.DataFrame({n: finite_numbers(table, c, batch.rows, n) for n, c in cells})

    def fit(self, estimator: CORAL, *, sample_weight: str | None = None) -> CORAL:
        """Fit an estimator to all rows, one batch in memory at a time.

        Parameters
        ----------
        estimator : CORAL
            Fitted anew, in place.
        sample_weight : str, optional
            The column that tells how many times each row counts.

        Returns
        -------
        CORAL
            The estimator.
        """
        batches: Iterator[Any] = iter(self)
        if sample_weight is not None:
            self.table.index(sample_weight)
            features = [name for name in self.columns if name != sample_weight]
            batches = (
                (batch[features], batch[sample_weight])
                for batch in self.batches([*features, sample_weight])
            )
        return estimator.fit(batches)

    def transform(
        self, estimator: CORAL, target: str | os.PathLike[str], *, keep: Sequence[str] = ()
    ) -> int:
        """Write the outputs of a fitted estimator to a new file, in constant memory.

        The file appears whole or not at all; an existing one is replaced.

        Parameters
        ----------
        estimator : CORAL
            Fitted on these columns.
        target : path
            Its ending decides the format: ``.parquet``, ``.csv``, ``.csv.gz`` and so on.
        keep : sequence of str
            Columns of the source that are copied, in front.

        Returns
        -------
        int
            Rows written.
        """
        target, keep = Path(target), _as_names(keep)
        output_format(target)
        outputs = [str(name) for name in estimator.get_feature_names_out()]
        clash = [name for name in keep if name in outputs]
        if clash:
            raise InvalidArgumentError(f"{listing(clash)} cannot be both kept and transformed.")
        features = [str(name) for name in getattr(estimator, "feature_names_in_", self.columns)]
        for name in (*keep, *features):
            self.table.index(name)
        columns: list[Column] = [(name, name) for name in keep]
        columns += [(name, k) for k, name in enumerate(outputs)]
        chosen = _selected(self.table, list(dict.fromkeys([*keep, *features])), features)
        with replacing(target) as stream:
            written, _ = write_transformed(
                stream,
                str(target),
                chosen,
                features,
                estimator,
                columns=columns,
                refuse_incomplete=True,
                size=self.batch_rows,
            )
            if not written:
                raise InvalidTableError(
                    f"{printable(str(self.path))}: the table has no rows to transform."
                )
        return written


def from_parquet(
    path: str | os.PathLike[str] | Sequence[str],
    *,
    columns: Sequence[str] | None = None,
    batch_rows: int | None = None,
) -> TableFile:
    """Open a Parquet file, a folder of them, or a list of files, for reading in batches.

    Parameters
    ----------
    path : path or sequence of paths
        What to read.
    columns : sequence of str, optional
        The columns to work on; all of them unless given.
    batch_rows : int, optional
        Rows per batch at most; by default about 8 MiB of numbers.

    Examples
    --------
    >>> import tempfile
    >>> from sklearn.datasets import load_wine
    >>> from skcoral import CORAL
    >>> from skcoral.tables import from_parquet
    >>> folder = tempfile.mkdtemp()
    >>> load_wine(as_frame=True).data.to_parquet(f"{folder}/wine.parquet")
    >>> table = from_parquet(f"{folder}/wine.parquet", batch_rows=50)
    >>> coral = table.fit(CORAL(rho_min=0.8))
    >>> table.transform(coral, f"{folder}/decorrelated.parquet")
    178
    """
    return _table_file(path, columns, batch_rows, format="parquet")


def from_csv(
    path: str | os.PathLike[str] | Sequence[str],
    *,
    columns: Sequence[str] | None = None,
    batch_rows: int | None = None,
    delimiter: str = ",",
) -> TableFile:
    """Open a CSV file, a folder of them, or a list of files, for reading in batches.

    Parameters
    ----------
    path, columns, batch_rows
        As for :func:`from_parquet`; each file names the columns.
    delimiter : str, default=","
        What separates the cells.

    Examples
    --------
    >>> import tempfile
    >>> from skcoral import CORAL
    >>> from skcoral.datasets import load_wine
    >>> from skcoral.tables import from_csv
    >>> path = tempfile.mkdtemp() + "/wine.csv"
    >>> load_wine().to_frame().to_csv(path, sep=";", index=False)
    >>> coral = from_csv(path, delimiter=";").fit(CORAL(rho_min=0.8))
    >>> coral.n_samples_seen_
    178
    """
    if not isinstance(delimiter, str) or len(delimiter) != 1:
        raise InvalidArgumentError(f"delimiter must be one character, got {delimiter!r}.")
    return _table_file(path, columns, batch_rows, format="csv", separator=delimiter)


def _table_file(
    path: Any, columns: Sequence[str] | None, batch_rows: int | None, **reading: Any
) -> TableFile:
    label = str(path)
    table = _joined(label, _sources(path), reading)
    chosen = table.names if columns is None else tuple(_as_names(columns))
    twice = repeated(chosen)
    if twice:
        raise InvalidTableError(f"{label}: {listing(twice)} chosen more than once.")
    for name in chosen:
        table.index(name)
    if batch_rows is None:
        batch_rows = max(1, _BATCH_CELLS // max(1, len(chosen)))
    found = TableFile(label, chosen, table, check_count("batch_rows", batch_rows))
    first = next(_selected(table, chosen, chosen).batches(1000), Batch((), [[]] * len(chosen)))
    cells = zip(chosen, first.columns, strict=True)
    text = [name for name, column in cells if table.numbers(column)[1].any()]
    if text:
        raise InvalidTableError(
            f"{label}: {listing(text)} hold no numbers. Choose numeric columns with columns=."
        )
    return found


def _sources(path: Any) -> list[Source]:
    """The files of a path, of a folder or of several of them, in any file system of pyarrow's."""
    from pyarrow import fs

    found: list[Source] = []
    for one in [path] if isinstance(path, str | os.PathLike) else path:
        place = os.fspath(one)
        system, place = (
            fs.FileSystem.from_uri(place) if "://" in place else (fs.LocalFileSystem(), place)
        )
        (info,) = system.get_file_info([place])
        if info.type == fs.FileType.NotFound:
            raise FileNotFoundError(f"{printable(str(one))}: there is no such file or folder.")
        files = [info]
        if info.type == fs.FileType.Directory:
            listed = system.get_file_info(fs.FileSelector(place, recursive=True))
            hidden = ("_", ".")
            files = [f for f in listed if f.is_file and not f.base_name.startswith(hidden)]
        found += [
            Source(f.path, partial(system.open_input_file, f.path), f.size)
            for f in sorted(files, key=lambda f: f.path)
        ]
    if not found:
        raise InvalidTableError(f"{printable(str(path))}: there are no files.")
    return found


def _joined(label: str, sources: list[Source], reading: dict[str, Any]) -> Table:
    """The rows of one file after the other; the first tells names and decimal mark."""
    first = open_table(sources[0], keep=False, **reading)
    names = first.names
    if first.format != "parquet":
        reading = {**reading, "decimal": first.decimal}

    def read(size: int, places: Sequence[int] | None) -> Iterator[Batch]:
        wanted = names if places is None else [names[j] for j in places]
        for source in sources:
            part = open_table(source, keep=False, **reading)
            missing = [name for name in wanted if name not in part.names]
            if missing:
                raise InvalidTableError(f"{source.label}: no column {listing(missing)}.")
            yield from part.batches(size, wanted)

    return replace(first, label=label, read=read, n_rows=None)


def _selected(table: Table, names: Sequence[str], variables: Sequence[str]) -> Table:
    """Some columns of a table; truth values of variables become zeros and ones."""
    spelled = set(variables)

    def read(size: int, places: Sequence[int] | None) -> Iterator[Batch]:
        wanted = names if places is None else [names[j] for j in places]
        for batch in table.batches(size, wanted):
            cells = zip(wanted, batch.columns, strict=True)
            columns = [_truth_as_numbers(c) if name in spelled else c for name, c in cells]
            yield replace(batch, columns=columns)

    return replace(table, names=tuple(names), read=read)


def _truth_as_numbers(cells: Any) -> Any:
    """Truth values, also those spelled out, as zeros and ones; any others as they are."""
    import pyarrow as pa
    import pyarrow.compute as pc

    kind = getattr(cells, "type", None)
    if kind == pa.string() and len(cells) and str(cells[0]).lower() in ("true", "false"):
        try:
            return pc.cast(pc.cast(cells, pa.bool_()), pa.uint8())
        except pa.ArrowInvalid:
            return cells
    return pc.cast(cells, pa.uint8()) if kind == pa.bool_() else cells


def _as_names(names: Sequence[str]) -> list[str]:
    return [names] if isinstance(names, str) else list(names)
