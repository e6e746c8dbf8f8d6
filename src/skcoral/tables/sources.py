"""Recognise a file by its content, and open its bytes again for every pass."""

from __future__ import annotations

import bz2
import contextlib
import gzip
import io
import lzma
import os
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path, PurePath
from typing import Any, BinaryIO

from skcoral.exceptions import InvalidArgumentError, InvalidTableError
from skcoral.limits import MB, Clock, Limits, current, shown
from skcoral.tables import delimited
from skcoral.tables.dialect import marked_encoding, recognise_encoding
from skcoral.tables.table import Format, Table

Opener = Callable[[], BinaryIO]
_ENDINGS: dict[str, Format] = {
    ".csv": "csv",
    ".txt": "csv",
    ".tsv": "tsv",
    ".tab": "tsv",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".xlsx": "excel",
    ".xlsm": "excel",
}
_PACKED = {".gz", ".bz2", ".xz", ".zst", ".zip"}
#: Bytes that any file may unpack to.
_HARMLESS = 64 * MB
#: How compressed files, archives and Parquet files begin; all others are text.
_BINARY = (
    b"\x1f\x8b",
    b"BZh",
    b"\xfd7zX",
    b"\x28\xb5\x2f\xfd",
    b"PK\x03\x04",
    b"PAR1",
    b"\xd0\xcf",
)


def open_table(
    source: str | Path | bytes | BinaryIO,
    *,
    name: str | None,
    format: Format | None,
    separator: str | None,
    decimal: str | None,
    encoding: str | None,
    sheet: str | None,
    na: tuple[str, ...],
) -> Table:
    """See :func:`skcoral.tables.table.open_table`."""
    limits = current()
    label, opener, size = _opener(source, name, encoding)
    head = _start(opener, label)
    if not head:
        raise InvalidTableError(f"{label}: the file is empty.\nGive a table with a header line.")
    kind = _kind(head, opener, label)
    named = format_of_name(label)
    if kind == "text":
        if format in ("parquet", "excel") or (format is None and named in ("parquet", "excel")):
            wanted = "Parquet" if "parquet" in (format, named) else "Excel (.xlsx)"
            raise InvalidTableError(
                f"{label}: this is not a file of type {wanted}: its first bytes are {head!r}.\n"
                "Check the file, or name it after what it is (.csv, .tsv)."
            )
        return delimited.open_text(
            label,
            lambda: _unpacked(opener, label, limits),
            size,
            tab=(format or named) == "tsv",
            separator=separator,
            decimal=decimal,
            encoding=encoding,
            na=na,
        )
    from skcoral.tables import typed

    if kind == "parquet":
        return replace(typed.open_parquet(label, opener), na=na)
    return replace(typed.open_excel(label, opener, sheet), na=na)


def read_text(source: str | Path | bytes, encoding: str | None) -> str:
    """See :func:`skcoral.tables.table.read_text`."""
    limits = current()
    label, opener, _ = _opener(source, None, encoding)
    unpacked = lambda: _unpacked(opener, label, limits)  # noqa: E731
    chosen = encoding or recognise_encoding(unpacked)
    with unpacked() as stream:
        data = stream.read(limits.record_bytes + 1)
    limits.require("record_bytes", len(data), label, "the text is long for a matrix")
    return data.decode("utf-8-sig" if chosen == "utf-8" else chosen, errors="replace")


def sheet_names(source: str | Path | bytes | BinaryIO, name: str | None) -> tuple[str, ...]:
    """See :func:`skcoral.tables.table.sheet_names`."""
    label, opener, _ = _opener(source, name)
    head = _start(opener, label)
    if _kind(head, opener, label) != "excel":
        return ()
    from skcoral.tables import typed

    return typed.sheet_names(label, opener)


def _start(opener: Opener, label: str) -> bytes:
    """The first bytes; what cannot be read is a matter of the table, not of the output."""
    try:
        with opener() as stream:
            return stream.read(8)
    except (PermissionError, FileNotFoundError):
        raise
    except OSError as error:
        raise _unreadable(label, error) from error


def _unreadable(label: str, error: Exception) -> InvalidTableError:
    return InvalidTableError(
        f"{label}: it cannot be read ({getattr(error, 'strerror', None) or error}).\n"
        "Name a file with a table."
    )


def format_of_name(name: str) -> Format | None:
    """The format that a file's ending promises (``.csv.gz`` counts as CSV)."""
    path = PurePath(name.lower())
    ending = PurePath(path.stem).suffix if path.suffix in _PACKED else path.suffix
    return _ENDINGS.get(ending)


def _opener(
    source: str | Path | bytes | BinaryIO, name: str | None, encoding: str | None = None
) -> tuple[str, Opener, int | None]:
    if isinstance(source, bytes | bytearray | memoryview):
        data = bytes(source)
        return name or "table", lambda: io.BytesIO(data), len(data)
    if not isinstance(source, str | os.PathLike):
        other: Any = source
        if not callable(getattr(other, "read", None)) or isinstance(other, io.TextIOBase):
            raise InvalidArgumentError(
                "A table is a path, bytes or a file opened for reading bytes, not "
                f"{type(source).__name__}."
            )
        return _spooled(source, name or "table", encoding)
    if str(source) == "-":
        return _standard_input(name, encoding)
    path = Path(source)
    try:
        if path.is_dir():
            raise InvalidTableError(
                f"{path}: this is a folder, not a file.\nName a file inside it."
            )
        if not path.exists():
            raise InvalidTableError(
                f"{path}: there is no such file.\nCheck the name and the folder."
            )
        if not path.is_file():
            # A pipe can be read once only, and every command reads its table more than once.
            with path.open("rb") as stream:
                return _spooled(stream, name or str(path), encoding)
        return name or str(path), lambda: path.open("rb"), path.stat().st_size
    except PermissionError:
        raise
    except (OSError, ValueError) as error:
        if isinstance(error, InvalidTableError):
            raise
        raise _unreadable(str(path), error) from error


def _standard_input(name: str | None, encoding: str | None) -> tuple[str, Opener, int | None]:
    if sys.stdin is None or sys.stdin.isatty():
        raise InvalidTableError(
            "standard input: nothing is piped in.\nPipe a table in, or name a file instead of '-'."
        )
    return _spooled(sys.stdin.buffer, name or "standard input", encoding)


def _spooled(stream: BinaryIO, label: str, encoding: str | None) -> tuple[str, Opener, int | None]:
    """Keep what comes from a pipe or a device, within bounds, after a look at its start."""
    limits = current()
    start = stream.read(delimited.SNIFF)
    if not start[:4].startswith(_BINARY):
        delimited.refuse_binary(label, start, encoding or marked_encoding(start))
    spool = _Spool()
    size, piece = 0, start
    clock = Clock(limits, label)
    while piece:
        size += len(piece)
        clock.check()
        limits.require(
            "piped_bytes",
            size,
            label,
            f"more than {shown('piped_bytes', limits.piped_bytes)} come in and no end is seen",
            "Save it to a file and name that.",
        )
        try:
            spool.append(piece)
        except OSError as error:
            raise InvalidTableError(
                f"{label}: after {size:,} bytes the temporary folder {tempfile.gettempdir()} "
                f"cannot take more ({error.strerror or error}).\n"
                "Save it to a file and name that, or set TMPDIR to a folder with room."
            ) from error
        piece = stream.read(1 << 20)
    return label, spool.open, size


class _Spool:
    """A temporary file without a name, which lives as long as the table."""

    def __init__(self) -> None:
        with tempfile.TemporaryFile() as file:
            self._descriptor = os.dup(file.fileno())

    def append(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            view = view[os.write(self._descriptor, view) :]

    def open(self) -> BinaryIO:
        os.lseek(self._descriptor, 0, os.SEEK_SET)
        return os.fdopen(os.dup(self._descriptor), "rb")

    def __del__(self) -> None:
        os.close(self._descriptor)


def _kind(head: bytes, opener: Opener, label: str) -> str:
    if head.startswith(b"PAR1"):
        return "parquet"
    if head.startswith(b"\xd0\xcf\x11\xe0"):
        raise InvalidTableError(
            f"{label}: this is an old Excel file (.xls) or an encrypted one.\n"
            "Save it as .xlsx without a password, or as CSV."
        )
    if head.startswith(b"PK\x03\x04"):
        try:
            with opener() as stream, zipfile.ZipFile(stream) as archive:
                if "xl/workbook.xml" in archive.namelist():
                    return "excel"
        except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError) as error:
            raise InvalidTableError(
                f"{label}: the zip archive is damaged ({error}).\nCopy or download it again."
            ) from error
    return "text"


@contextlib.contextmanager
def _unpacked(opener: Opener, label: str, limits: Limits) -> Iterator[BinaryIO]:
    """Open the bytes of a text file, through the decompression that its first bytes call for."""
    with opener() as stream, contextlib.ExitStack() as opened:
        head = stream.read(6)
        stream.seek(0)
        unpacked: Any = stream
        if head.startswith(b"\x1f\x8b"):
            unpacked = opened.enter_context(gzip.GzipFile(fileobj=stream))
        elif head.startswith(b"BZh"):
            unpacked = opened.enter_context(bz2.BZ2File(stream))
        elif head.startswith(b"\xfd7zXZ\x00"):
            unpacked = _Xz(stream)
        elif head.startswith(b"\x28\xb5\x2f\xfd"):
            import pyarrow as pa

            unpacked = opened.enter_context(pa.CompressedInputStream(stream, "zstd"))
        elif head.startswith(b"PK\x03\x04"):
            archive = opened.enter_context(zipfile.ZipFile(stream))
            files = [entry for entry in archive.infolist() if _is_content(entry)]
            if len(files) != 1:
                raise InvalidTableError(
                    f"{label}: the zip archive holds {len(files)} files, and one is wanted.\n"
                    "Unpack it and name the file."
                )
            if files[0].flag_bits & 1:
                raise InvalidTableError(
                    f"{label}: the zip archive is encrypted.\nUnpack it with its password first."
                )
            unpacked = opened.enter_context(archive.open(files[0]))
        if unpacked is not stream:
            unpacked = opened.enter_context(_Measured(unpacked, stream, label, limits))
        yield unpacked


class _Measured(io.BufferedReader):
    """What is unpacked, up to the limit; ``packed`` is the file it comes from."""

    def __init__(self, source: Any, packed: BinaryIO, label: str, limits: Limits) -> None:
        super().__init__(_Metered(source, packed, label, limits), 1 << 16)
        self.packed = packed


class _Metered(io.RawIOBase):
    def __init__(self, source: Any, packed: BinaryIO, label: str, limits: Limits) -> None:
        self._source, self._packed, self._label, self._limits = source, packed, label, limits
        self._total = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self._source.read(len(buffer))
        buffer[: len(data)] = data
        self._total += len(data)
        if self._total > _HARMLESS:
            found = f"the file unpacks to more than {shown('unpacked_bytes', self._total)}"
            self._limits.require("unpacked_bytes", self._total, self._label, found)
            # What has been unpacked so far comes from what has been read so far.
            ratio = self._total // max(self._packed.tell(), 1)
            found = f"the file unpacks to {ratio:,} times its size or more"
            self._limits.require("unpacked_ratio", ratio, self._label, found)
        return len(data)


class _Xz(io.RawIOBase):
    """An xz file whose dictionary may not take more memory than a file of its kind needs."""

    _MEMORY = 128 * MB

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._decoder = lzma.LZMADecompressor(memlimit=self._MEMORY)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while True:
            if self._decoder.eof:
                rest = self._decoder.unused_data.lstrip(b"\0") or self._stream.read(1 << 14)
                if not rest.lstrip(b"\0"):
                    return 0
                self._decoder = lzma.LZMADecompressor(memlimit=self._MEMORY)
                packed = rest.lstrip(b"\0")
            else:
                packed = self._stream.read(1 << 14) if self._decoder.needs_input else b""
                if self._decoder.needs_input and not packed:
                    raise EOFError("the file ends before its end-of-stream marker")
            data = self._decoder.decompress(packed, max_length=len(buffer))
            if data:
                buffer[: len(data)] = data
                return len(data)


def _is_content(entry: zipfile.ZipInfo) -> bool:
    """Whether an entry of an archive is a file of its own, not a folder or a Mac's notes on one."""
    return not entry.is_dir() and not entry.filename.startswith("__MACOSX/")
