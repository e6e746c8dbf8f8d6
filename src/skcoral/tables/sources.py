"""Where the bytes of a table come from: paths, pipes, memory, and files that are compressed."""

from __future__ import annotations

import contextlib
import gzip
import io
import os
import sys
import zipfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from skcoral.core.display import printable
from skcoral.core.limits import Clock, current
from skcoral.exceptions import InvalidArgumentError, InvalidTableError
from skcoral.tables.dialect import check_text

#: How files begin; those of Stata since its version 13.
GZIP, ZIP, PARQUET, OLD_EXCEL = b"\x1f\x8b", b"PK\x03\x04", b"PAR1", b"\xd0\xcf\x11\xe0"
STATA = b"<stata_dta>"
_DAMAGED = (zlib.error, zipfile.BadZipFile)
_PIECE = 1 << 20  # bytes of a pipe that are read at a time


@dataclass(frozen=True)
class Source:
    """Bytes that can be read from the start as often as needed."""

    label: str  # the file's name, for messages
    open: Callable[[], BinaryIO]
    size: int


def find_source(
    source: str | Path | bytes | BinaryIO, name: str | None = None, encoding: str | None = None
) -> Source:
    """A path, ``"-"`` for standard input, bytes or an open binary file as a :class:`Source`.

    What has no end in sight has to begin as text in the ``encoding`` or as a known format does.
    """
    name = printable(name) if name else None
    if isinstance(source, bytes | bytearray | memoryview):
        return in_memory(bytes(source), name or "table")
    if not isinstance(source, str | os.PathLike):
        stream: Any = source
        if not hasattr(stream, "read") or isinstance(stream, io.TextIOBase):
            raise InvalidArgumentError(
                "A table is a path, bytes or a file opened for reading bytes, not "
                f"{type(source).__name__}."
            )
        return _read_pipe(stream, name or "table", encoding)
    if str(source) == "-":
        if sys.stdin is None or sys.stdin.isatty():
            raise InvalidTableError(
                "standard input: nothing is piped in.\n"
                "Pipe a table in, or name a file instead of '-'."
            )
        return _read_pipe(sys.stdin.buffer, name or "standard input", encoding)
    path = Path(source)
    label = name or printable(str(path))
    with readable(label):
        if path.is_file():
            return Source(label, lambda: path.open("rb"), path.stat().st_size)
        # A pipe can be read once only, and a long table is read more than once.
        with path.open("rb") as pipe:
            return _read_pipe(pipe, label, encoding)


@contextlib.contextmanager
def readable(label: str, what: str = "it", damage: type[Exception] = zlib.error) -> Iterator[None]:
    """Turn errors of the system and of damaged files into errors about the table."""
    try:
        yield
    except (PermissionError, InvalidTableError):
        raise
    except (OSError, ValueError, EOFError, NotImplementedError, *_DAMAGED, damage) as error:
        why = getattr(error, "strerror", None) or str(error) or type(error).__name__
        raise InvalidTableError(
            f"{label}: {what} cannot be read ({why.splitlines()[0][:120]}).\n"
            "Check the name and the folder; what is damaged or cut short, copy or download again."
        ) from error


def _read_pipe(stream: BinaryIO, label: str, encoding: str | None) -> Source:
    """Hold what comes from a pipe or a device, within bounds, after a look at its start."""
    limits, clock, data = current(), Clock(current(), label), io.BytesIO()
    while piece := stream.read(_PIECE):
        if not data.tell() and not piece.startswith((GZIP, ZIP, PARQUET, OLD_EXCEL, STATA)):
            check_text(label, piece, encoding)
        data.write(piece)
        clock.check()
        limits.check("whole_bytes", data.tell(), label)
    return in_memory(data.getvalue(), label)


def in_memory(data: bytes, label: str) -> Source:
    """Bytes at hand."""
    return Source(label, lambda: io.BytesIO(data), len(data))


@contextlib.contextmanager
def unpacked(stream: BinaryIO, label: str) -> Iterator[Any]:
    """Read a text file through the decompression that its first bytes call for."""
    with readable(label), contextlib.ExitStack() as opened:
        content: Any = stream
        head = stream.read(4)
        stream.seek(0)
        if head.startswith(GZIP):
            content = opened.enter_context(gzip.GzipFile(fileobj=stream))
        elif head.startswith(ZIP):
            archive = opened.enter_context(zipfile.ZipFile(stream))
            content = opened.enter_context(archive.open(_one_file(archive, label)))
        yield content


def _one_file(archive: zipfile.ZipFile, label: str) -> zipfile.ZipInfo:
    entries = [entry for entry in archive.infolist() if not entry.is_dir()]
    files = [e for e in entries if not e.filename.startswith("__MACOSX/")]  # notes on each file
    if len(files) != 1:
        raise InvalidTableError(
            f"{label}: the zip archive holds {len(files)} files, and one is wanted.\n"
            "Unpack it and name the file."
        )
    if files[0].flag_bits & 1:
        raise InvalidTableError(
            f"{label}: the zip archive is encrypted.\nUnpack it with its password first."
        )
    return files[0]
