"""Where the bytes of a table come from: paths, pipes, memory, and files that are compressed."""

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
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO
from xml.parsers.expat import ExpatError

from skcoral.core.display import printable
from skcoral.core.limits import MB, Clock, Limits, current
from skcoral.exceptions import InvalidArgumentError, InvalidTableError

#: How compressed files begin.
PACKED = {
    "gzip": b"\x1f\x8b",
    "bzip2": b"BZh",
    "xz": b"\xfd7zXZ\x00",
    "Zstandard": b"\x28\xb5\x2f\xfd",
}
ZIP, PARQUET, OLD_EXCEL = b"PK\x03\x04", b"PAR1", b"\xd0\xcf\x11\xe0"
STATA = b"<stata_dta>"  # of Stata 13 and later
_CHUNK = 1 << 16


#: What reading a damaged archive, XML part or model can end in, depending on the byte.
DAMAGED = (
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
    ExpatError,
    LookupError,
    ValueError,
    TypeError,
    AttributeError,
    ArithmeticError,
    EOFError,
    RuntimeError,
    OSError,
)


@dataclass(frozen=True)
class Source:
    """Bytes that can be read from the start as often as needed."""

    label: str  # the file's name, for messages
    open: Callable[[], BinaryIO]
    size: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "label", printable(self.label))


def find_source(
    source: str | Path | bytes | BinaryIO,
    name: str | None = None,
    refuse: Callable[[str, bytes], None] | None = None,
) -> Source:
    """A path, ``"-"`` for standard input, bytes or an open binary file as a :class:`Source`.

    ``refuse`` judges the first bytes of what has no end in sight, before it is copied.
    """
    if isinstance(source, bytes | bytearray | memoryview):
        data = bytes(source)
        return Source(name or "table", lambda: io.BytesIO(data), len(data))
    if not isinstance(source, str | os.PathLike):
        other: Any = source
        if not callable(getattr(other, "read", None)) or isinstance(other, io.TextIOBase):
            raise InvalidArgumentError(
                "A table is a path, bytes or a file opened for reading bytes, not "
                f"{type(source).__name__}."
            )
        return _spooled(source, name or "table", refuse)
    if str(source) == "-":
        if sys.stdin is None or sys.stdin.isatty():
            raise InvalidTableError(
                "standard input: nothing is piped in.\n"
                "Pipe a table in, or name a file instead of '-'."
            )
        return _spooled(sys.stdin.buffer, name or "standard input", refuse)
    if not str(source):
        raise InvalidTableError("The name of the table's file is empty.\nName a file with a table.")
    path = Path(source)
    label = printable(name or str(path))
    with readable(label):
        if path.is_dir():
            raise InvalidTableError(
                f"{label}: this is a folder, not a file.\nName a file inside it."
            )
        if not path.exists():
            raise InvalidTableError(
                f"{label}: there is no such file.\nCheck the name and the folder."
            )
        if not path.is_file():
            # A pipe can be read once only, and a long table is read more than once.
            with path.open("rb") as stream:
                return _spooled(stream, label, refuse)
        return Source(label, lambda: path.open("rb"), path.stat().st_size)


@contextlib.contextmanager
def readable(label: str) -> Iterator[None]:
    """Turn errors of the system into errors about the table."""
    try:
        yield
    except (PermissionError, FileNotFoundError, InvalidTableError):
        raise
    except (OSError, ValueError) as error:
        raise InvalidTableError(
            f"{label}: it cannot be read ({getattr(error, 'strerror', None) or error}).\n"
            "Name a file with a table."
        ) from error


def _spooled(stream: BinaryIO, label: str, refuse: Callable[[str, bytes], None] | None) -> Source:
    """Keep what comes from a pipe or a device, within bounds, after a look at its start."""
    limits = current()
    piece = stream.read(_CHUNK)
    if refuse is not None:
        refuse(label, piece)
    spool, size, clock = _Spool(), 0, Clock(limits, label)
    while piece:
        size += len(piece)
        clock.check()
        limits.require("piped_bytes", size, label)
        try:
            spool.append(piece)
        except OSError as error:
            raise InvalidTableError(
                f"{label}: after {size:,} bytes the temporary folder {tempfile.gettempdir()} "
                f"cannot take more ({error.strerror or error}).\n"
                "Save it to a file and name that, or set TMPDIR to a folder with room."
            ) from error
        piece = stream.read(1 << 20)
    return Source(label, spool.open, size)


class _Spool:
    """A temporary file without a name, which is removed with the table."""

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


@contextlib.contextmanager
def unpacked(stream: BinaryIO, label: str, limits: Limits) -> Iterator[BinaryIO]:
    """Read a text file through the decompression that its first bytes call for."""
    with contextlib.ExitStack() as opened:
        head = stream.read(6)
        stream.seek(0)
        content: Any = stream
        if head.startswith(PACKED["gzip"]):
            content = opened.enter_context(gzip.GzipFile(fileobj=stream))
        elif head.startswith(PACKED["bzip2"]):
            content = opened.enter_context(bz2.BZ2File(stream))
        elif head.startswith(PACKED["xz"]):
            content = _Xz(stream)
        elif head.startswith(PACKED["Zstandard"]):
            import pyarrow as pa

            content = opened.enter_context(pa.CompressedInputStream(stream, "zstd"))
        elif head.startswith(ZIP):
            archive = opened.enter_context(zipfile.ZipFile(stream))
            # Macs add notes on each file.
            files = [
                entry
                for entry in archive.infolist()
                if not entry.is_dir() and not entry.filename.startswith("__MACOSX/")
            ]
            if len(files) != 1:
                raise InvalidTableError(
                    f"{label}: the zip archive holds {len(files)} files, and one is wanted.\n"
                    "Unpack it and name the file."
                )
            if files[0].flag_bits & 1:
                raise InvalidTableError(
                    f"{label}: the zip archive is encrypted.\nUnpack it with its password first."
                )
            content = opened.enter_context(archive.open(files[0]))
        if content is not stream:
            metered = _Metered(content, stream, label, limits)
            content = opened.enter_context(io.BufferedReader(metered, _CHUNK))
        yield content


class _Metered(io.RawIOBase):
    """What is unpacked, up to the limit; ``packed`` is the file it comes from."""

    def __init__(self, source: Any, packed: BinaryIO, label: str, limits: Limits) -> None:
        self._source, self.packed, self._label, self._limits = source, packed, label, limits
        self._total = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self._source.read(len(buffer))
        buffer[: len(data)] = data
        self._total += len(data)
        self._limits.require("unpacked_bytes", self._total, self._label)
        # What has been unpacked so far comes from what has been read so far.
        self._limits.check_ratio(self._total, self.packed.tell(), self._label)
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
