"""Tables out: files that appear whole or not at all, in the format that their name promises."""

from __future__ import annotations

import bz2
import contextlib
import csv
import errno
import gzip
import io
import lzma
import os
import secrets
from collections.abc import Iterator, Sequence
from datetime import date, time, timedelta
from decimal import Decimal
from pathlib import Path
from types import NoneType
from typing import Any, BinaryIO, Protocol

import numpy as np

from skcoral.exceptions import InvalidArgumentError, InvalidTableError
from skcoral.io._sources import format_of_name
from skcoral.io.cells import plain_cells
from skcoral.io.tables import Format

_EXCEL_ROWS = 1_048_576
_EXCEL_TEXT = 32_767
#: What a sheet holds besides text; anything else is written as text.
_EXCEL_TYPES = (NoneType, bool, int, float, Decimal, date, time, timedelta)


class Outputs:
    """A set of files that is put in place at the end, all together, or not at all.

    Each file is written beside its destination under a hidden temporary name and renamed into
    place by :meth:`commit`. Leaving the ``with`` block without it removes what was written.

    Parameters
    ----------
    force : bool, default False
        Replace files that exist; otherwise an existing one is an error before anything is done.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> folder = Path(tempfile.mkdtemp())
    >>> with Outputs() as outputs:
    ...     with outputs.open(folder / "a.txt") as stream:
    ...         _ = stream.write(b"whole")
    ...     outputs.commit()
    >>> (folder / "a.txt").read_bytes()
    b'whole'
    """

    def __init__(self, *, force: bool = False) -> None:
        self.force = force
        self._staged: dict[Path, Path] = {}

    def __enter__(self) -> Outputs:
        return self

    def __exit__(self, *exc: object) -> None:
        for temporary in self._staged.values():
            temporary.unlink(missing_ok=True)
        self._staged.clear()

    def reserve(self, path: str | Path) -> Path:
        """Check early that a file can be put at ``path``, and stage an empty one."""
        target = Path(path)
        if target.resolve() in {other.resolve() for other in self._staged}:
            raise InvalidArgumentError(
                f"{target}: two outputs have the same name.\nGive every output a name of its own."
            )
        if target.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(target))
        if target.exists() and not target.is_file():
            # A device or a pipe would be replaced by a file, for all programs.
            raise OSError(errno.EINVAL, "not a regular file", str(target))
        if target.exists() and not self.force:
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(target))
        # Beside what a link points to: the link stays one.
        temporary = target.resolve().with_name(f".{target.name[:40]}.{secrets.token_hex(8)}.part")
        # Known before it exists: an interruption at any moment must not leave it behind.
        self._staged[target] = temporary
        try:
            os.close(os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        except OSError as error:
            del self._staged[target]
            # The temporary name means nothing to the reader of the message.
            raise type(error)(error.errno, error.strerror, str(target)) from None
        return target

    def staged(self, path: str | Path) -> Path:
        """Where a reserved file is being written, for code that wants a path and not a stream."""
        target = Path(path)
        if target not in self._staged:
            self.reserve(target)
        return self._staged[target]

    @contextlib.contextmanager
    def open(self, path: str | Path) -> Iterator[BinaryIO]:
        """Open a staged file for writing bytes (reserving it first where that was not done)."""
        with self.staged(path).open("wb") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())

    def write_text(self, path: str | Path, text: str) -> None:
        """Write a whole text file in UTF-8."""
        with self.open(path) as stream:
            stream.write(text.encode("utf-8"))

    def commit(self) -> None:
        """Put all files in place."""
        for target in self._staged:
            if target.exists() and not self.force:
                raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(target))
        mask = os.umask(0)
        os.umask(mask)
        for target, temporary in list(self._staged.items()):
            mode = target.stat().st_mode & 0o777 if target.exists() else 0o666 & ~mask
            temporary.chmod(mode)
            temporary.replace(target.resolve())
            del self._staged[target]


class TableWriter(Protocol):
    """Writes a table batch by batch."""

    def write(self, columns: Sequence[Any]) -> None:
        """Write some rows, given as one sequence of cells per column."""

    def close(self) -> None:
        """Finish the file; without it the file is not complete."""


def output_format(path: str | Path) -> Format:
    """The format that a file's name asks for; an unknown ending is an error.

    Examples
    --------
    >>> output_format("out.csv.gz"), output_format("out.xlsx")
    ('csv', 'excel')
    """
    found = format_of_name(str(path))
    if found is None or Path(path).suffix.lower() == ".zip":
        raise InvalidArgumentError(
            f"{path}: the ending does not say which format to write.\n"
            "Use .csv, .tsv, .parquet or .xlsx (.csv.gz, .csv.bz2, .csv.xz and .csv.zst compress)."
        )
    return found


def table_writer(
    stream: BinaryIO,
    names: Sequence[str],
    *,
    path: str | Path = "-",
    separator: str = ",",
    decimal: str = ".",
) -> TableWriter:
    """Make the writer for a path's format (``"-"``: CSV); the caller owns ``stream``.

    Text files are written with the given separator and decimal mark; numbers carry all the digits
    that are needed to read the same number back.
    """
    kind: Format = "csv" if str(path) == "-" else output_format(path)
    if kind == "parquet":
        return _ParquetWriter(stream, names)
    if kind == "excel":
        return _ExcelWriter(stream, names)
    mark = "\t" if kind == "tsv" else separator
    if decimal == mark:
        decimal = "."
    return _TextWriter(stream, names, Path(path).suffix.lower(), mark, decimal)


class _TextWriter:
    def __init__(
        self, stream: BinaryIO, names: Sequence[str], ending: str, separator: str, decimal: str
    ) -> None:
        self._packer: Any = None
        if ending == ".gz":
            # No time stamp: the same table gives the same bytes.
            self._packer = gzip.GzipFile(
                fileobj=stream, mode="wb", filename="", mtime=0, compresslevel=6
            )
        elif ending == ".bz2":
            self._packer = bz2.BZ2File(stream, "wb")
        elif ending == ".xz":
            self._packer = lzma.LZMAFile(stream, "wb")  # noqa: SIM115 - closed by close()
        elif ending == ".zst":
            import pyarrow as pa

            self._packer = pa.CompressedOutputStream(_KeptOpen(stream), "zstd")
        self._decimal = decimal
        self._text = io.TextIOWrapper(self._packer or stream, encoding="utf-8", newline="")
        self._csv = csv.writer(self._text, delimiter=separator, lineterminator="\n")
        self._csv.writerow(names)

    def write(self, columns: Sequence[Any]) -> None:
        self._csv.writerows(zip(*(self._cells(column) for column in columns), strict=True))

    def _cells(self, column: Any) -> list[str]:
        if isinstance(column, np.ndarray):
            written = [repr(value) for value in column.tolist()]
            return (
                [c.replace(".", self._decimal) for c in written]
                if self._decimal != "."
                else written
            )
        return [_as_text(cell) for cell in plain_cells(column)]

    def close(self) -> None:
        self._text.flush()
        self._text.detach()
        if self._packer is not None:
            self._packer.close()


class _KeptOpen(io.RawIOBase):
    """A stream for packers that close what they write to: the caller owns it and goes on."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        return self._stream.write(data)


class _ParquetWriter:
    def __init__(self, stream: BinaryIO, names: Sequence[str]) -> None:
        self._stream = stream
        self._names = list(names)
        self._writer: Any = None
        self._schema: Any = None

    def write(self, columns: Sequence[Any]) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        arrays = [self._array(j, column) for j, column in enumerate(columns)]
        if self._writer is None:
            self._schema = pa.schema(
                [(name, a.type) for name, a in zip(self._names, arrays, strict=True)]
            )
            self._writer = pq.ParquetWriter(self._stream, self._schema)
        self._writer.write_table(pa.Table.from_arrays(arrays, schema=self._schema))

    def _array(self, j: int, column: Any) -> Any:
        import pyarrow as pa

        if hasattr(column, "type"):
            # Texts are read with their repetitions stored once, and written as plain ones.
            kind = column.type
            repeated = pa.types.is_dictionary(kind) and kind.index_type == pa.int32()
            return column.dictionary_decode() if repeated else column
        if isinstance(column, np.ndarray):
            return pa.array(column)
        wanted = None if self._schema is None else self._schema.field(j).type
        try:
            return pa.array(column, type=wanted)
        except (pa.ArrowInvalid, pa.ArrowTypeError):
            # A sheet may mix numbers and words in one column; Parquet may not.
            return pa.array([None if c is None else _as_text(c) for c in column], type=pa.string())

    def close(self) -> None:
        if self._writer is None:
            self.write([np.empty(0)] * len(self._names))
        self._writer.close()


class _ExcelWriter:
    def __init__(self, stream: BinaryIO, names: Sequence[str]) -> None:
        import openpyxl

        self._stream = stream
        self._book = openpyxl.Workbook(write_only=True)
        self._sheet = self._book.create_sheet("coral")
        self._sheet.append([self._cell(name) for name in names])
        self._rows = 1

    def write(self, columns: Sequence[Any]) -> None:
        cells = [c.tolist() if isinstance(c, np.ndarray) else plain_cells(c) for c in columns]
        self._rows += len(cells[0])
        if self._rows > _EXCEL_ROWS:
            raise InvalidTableError(
                f"the table has more than {_EXCEL_ROWS - 1:,} rows, which is all a sheet can hold."
                "\nWrite .csv or .parquet instead."
            )
        try:
            for row in zip(*cells, strict=True):
                self._sheet.append([self._cell(cell) for cell in row])
        except InvalidTableError:
            # A sheet that is left open complains on its own when it is collected.
            self._sheet.close()
            raise

    def _cell(self, value: Any) -> Any:
        zoned = getattr(value, "tzinfo", None) is not None
        if isinstance(value, _EXCEL_TYPES) and not zoned:
            return value
        from openpyxl.cell import WriteOnlyCell
        from openpyxl.utils.exceptions import IllegalCharacterError

        text = _as_text(value)
        if len(text) > _EXCEL_TEXT:
            raise InvalidTableError(
                f"the text {text[:30] + '…'!r} has more than {_EXCEL_TEXT:,} characters, which is "
                "all a cell of a sheet can hold.\nWrite .csv or .parquet instead."
            )
        try:
            cell = WriteOnlyCell(self._sheet, value=text)
        except IllegalCharacterError:
            raise InvalidTableError(
                f"the text {text[:30]!r} has a control character, which a sheet cannot hold.\n"
                "Write .csv or .parquet instead."
            ) from None
        # Text that starts with "=" stays text: a data file must not become a formula.
        cell.data_type = "s"
        return cell

    def close(self) -> None:
        self._book.save(self._stream)


def _as_text(cell: Any) -> str:
    if cell is None:
        return ""
    return cell if isinstance(cell, str) else str(cell)
