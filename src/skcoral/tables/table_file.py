"""Tables larger than memory: Parquet and CSV read batch by batch through pyarrow datasets."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from skcoral._requirements import listing, repeated
from skcoral._validation import check_count
from skcoral.estimator import CORAL
from skcoral.exceptions import InvalidArgumentError, InvalidTableError

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
    dataset : pyarrow.dataset.Dataset
        The reader.
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
    dataset: Any
    batch_rows: int

    def __iter__(self) -> Iterator[pd.DataFrame]:
        yield from self.batches(self.columns)

    def batches(self, columns: Sequence[str]) -> Iterator[pd.DataFrame]:
        """Read some columns, batch by batch, in the order of the rows."""
        import pyarrow as pa
        import pyarrow.dataset as ds

        is_parquet = isinstance(self.dataset.format, ds.ParquetFileFormat)
        read = self._parquet_batches if is_parquet else self._text_batches
        try:
            for batch in read(list(columns)):
                if batch.num_rows:
                    yield batch.to_pandas()
        except pa.ArrowInvalid as error:
            raise InvalidTableError(f"{self.path}: {error}") from None

    def _text_batches(self, columns: list[str]) -> Iterator[Any]:
        yield from self.dataset.to_batches(
            columns=columns, batch_size=self.batch_rows, batch_readahead=1, fragment_readahead=1
        )

    def _parquet_batches(self, columns: list[str]) -> Iterator[Any]:
        from pyarrow.parquet import ParquetFile

        # a dataset's own scanner decodes whole row groups, however large; this reads page by page
        for part in self.dataset.get_fragments():
            with (
                part.open() as stream,
                ParquetFile(stream, pre_buffer=False, buffer_size=2**18) as file,
            ):
                missing = [name for name in columns if name not in file.schema_arrow.names]
                if missing:
                    raise InvalidTableError(f"{part.path}: no column {listing(missing)}.")
                for batch in file.iter_batches(batch_size=self.batch_rows, columns=columns):
                    yield batch.select(columns)

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
            _require(self.dataset, [sample_weight], self.path)
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

        The file appears whole or not at all.

        Parameters
        ----------
        estimator : CORAL
            Fitted on these columns.
        target : path
            Ends in ``.parquet`` or ``.csv``, which decides the format.
        keep : sequence of str
            Columns of the source that are copied, in front.

        Returns
        -------
        int
            Rows written.
        """
        import pyarrow as pa

        target, keep = Path(target), _as_names(keep)
        open_writer = _writer_for(target, keep)
        _require(self.dataset, keep, self.path)
        outputs = [str(name) for name in estimator.get_feature_names_out()]
        clash = [name for name in keep if name in outputs]
        if clash:
            raise InvalidArgumentError(f"{listing(clash)} cannot be both kept and transformed.")
        features = [*getattr(estimator, "feature_names_in_", self.columns)]
        _require(self.dataset, features, self.path)
        names = [*keep, *outputs]
        written = 0
        temporary = target.with_name(f".{target.name[:80]}.{secrets.token_hex(8)}.part")
        try:
            temporary.touch(exist_ok=False)
        except OSError as error:  # the temporary name means nothing to the reader
            raise type(error)(error.errno, error.strerror, str(target)) from None
        try:
            writer = None
            for batch in self.batches(list(dict.fromkeys([*keep, *features]))):
                try:
                    transformed = _plain_transform(estimator, batch[features])
                except InvalidTableError as error:
                    where = f"A batch whose row 0 is row {written} of all"
                    raise InvalidTableError(f"{where}: {error}") from error
                kept = [pa.array(batch[name], from_pandas=True) for name in keep]
                table = pa.table([*kept, *transformed.T], names=names)
                if writer is None:
                    writer = open_writer(temporary, table.schema)
                writer.write_table(table)
                written += table.num_rows
            if writer is None:
                raise InvalidTableError(f"{self.path}: the table has no rows to transform.")
            writer.close()
            temporary.replace(target)
        finally:
            temporary.unlink(missing_ok=True)
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
    return _table_file(_open_dataset(path, "parquet"), path, columns, batch_rows)


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
    path : path or sequence of paths
        What to read; the first line of each file names the columns.
    columns : sequence of str, optional
        The columns to work on; all of them unless given.
    batch_rows : int, optional
        Rows per batch at most; by default about 8 MiB of numbers.
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
    import pyarrow as pa
    import pyarrow.csv as csv
    import pyarrow.dataset as ds

    if not isinstance(delimiter, str) or len(delimiter) != 1:
        raise InvalidArgumentError(f"delimiter must be one character, got {delimiter!r}.")
    parse = csv.ParseOptions(delimiter=delimiter)
    guess = _open_dataset(path, ds.CsvFileFormat(parse_options=parse))
    # types are guessed from the first block; whole numbers there may be fractions further on
    counted = (f for f in guess.schema if _is_number(f.type) and f.type != pa.bool_())
    types = {f.name: pa.float64() for f in counted}
    convert = csv.ConvertOptions(column_types=types)
    exact = ds.CsvFileFormat(parse_options=parse, convert_options=convert)
    return _table_file(_open_dataset(path, exact), path, columns, batch_rows)


def _open_dataset(path: Any, file_format: Any) -> Any:
    import pyarrow as pa
    import pyarrow.dataset as ds

    is_one = isinstance(path, str | os.PathLike)
    source = os.fspath(path) if is_one else [os.fspath(part) for part in path]
    try:
        dataset = ds.dataset(source, format=file_format)
        dataset.schema.names  # noqa: B018 - decodes them
    except (pa.ArrowInvalid, UnicodeDecodeError) as error:
        kind = "Parquet" if file_format == "parquet" else "CSV"
        raise InvalidTableError(f"{path}: not a {kind} table ({error}).") from None
    return dataset


def _table_file(
    dataset: Any, path: Any, columns: Sequence[str] | None, batch_rows: int | None
) -> TableFile:
    label = str(path)
    chosen = tuple(dataset.schema.names if columns is None else _as_names(columns))
    twice = repeated(chosen)
    if twice:
        raise InvalidTableError(f"{label}: {listing(twice)} chosen more than once.")
    _require(dataset, chosen, label)
    text = [name for name in chosen if not _is_number(dataset.schema.field(name).type)]
    if text:
        raise InvalidTableError(
            f"{label}: {listing(text)} hold no numbers. Choose numeric columns with columns=."
        )
    if batch_rows is None:
        batch_rows = max(1, _BATCH_CELLS // max(1, len(chosen)))
    batch_rows = check_count("batch_rows", batch_rows)
    return TableFile(path=label, columns=chosen, dataset=dataset, batch_rows=batch_rows)


def _as_names(names: Sequence[str]) -> list[str]:
    return [names] if isinstance(names, str) else list(names)


def _require(dataset: Any, names: Sequence[str], label: str) -> None:
    existing = set(dataset.schema.names)
    missing = [name for name in names if name not in existing]
    if missing:
        raise InvalidTableError(
            f"{label}: no column {listing(missing)}; there are {listing(dataset.schema.names)}."
        )


def _is_number(kind: Any) -> bool:
    from pyarrow import types

    return bool(
        types.is_floating(kind)
        or types.is_integer(kind)
        or types.is_decimal(kind)
        or types.is_boolean(kind)
        or types.is_null(kind)
    )


def _plain_transform(estimator: CORAL, rows: pd.DataFrame) -> Any:
    """Outputs as an array, whatever container the estimator was told to return."""
    outputs = estimator.transform(rows if hasattr(estimator, "feature_names_in_") else rows.values)
    return outputs.to_numpy() if hasattr(outputs, "to_numpy") else outputs


def _writer_for(target: Path, kept: list[str]) -> Any:
    if target.suffix == ".parquet":
        from pyarrow.parquet import ParquetWriter

        # outputs hardly ever repeat a value: a dictionary of them costs more than it saves
        return lambda path, schema: ParquetWriter(path, schema, use_dictionary=kept)
    if target.suffix == ".csv":
        return _csv_writer
    raise InvalidArgumentError(
        f"{target}: the ending must be .parquet or .csv; it decides the format."
    )


def _csv_writer(path: Path, schema: Any) -> Any:
    import pyarrow as pa
    from pyarrow.csv import CSVWriter

    try:
        return CSVWriter(path, schema)
    except pa.ArrowInvalid as error:
        raise InvalidTableError(
            f"A kept column has no place in a CSV file ({error}): leave it out, or write .parquet."
        ) from None
