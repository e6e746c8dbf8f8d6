"""Recognise a file by its content, and open its bytes again for every pass."""

from __future__ import annotations

import bz2
import contextlib
import gzip
import io
import lzma
import os
import shutil
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path, PurePath
from typing import Any, BinaryIO

from skcoral.exceptions import InvalidTableError
from skcoral.io import _text
from skcoral.io.tables import Format, Table

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


def open_table(
    source: str | Path | bytes | BinaryIO,
    *,
    name: str | None,
    format: Format | None,
    separator: str | None,
    decimal: str,
    encoding: str,
    sheet: str | None,
) -> Table:
    """See :func:`skcoral.io.tables.open_table`."""
    label, opener, size = _opener(source, name)
    with opener() as stream:
        head = stream.read(8)
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
        return _text.open_text(
            label,
            lambda: _unpacked(opener, label),
            size,
            tab=(format or named) == "tsv",
            separator=separator,
            decimal=decimal,
            encoding=encoding,
        )
    from skcoral.io import _typed

    if kind == "parquet":
        return _typed.open_parquet(label, opener)
    return _typed.open_excel(label, opener, sheet)


def sheet_names(source: str | Path | bytes | BinaryIO, name: str | None) -> tuple[str, ...]:
    """See :func:`skcoral.io.tables.sheet_names`."""
    label, opener, _ = _opener(source, name)
    with opener() as stream:
        head = stream.read(8)
    if _kind(head, opener, label) != "excel":
        return ()
    from skcoral.io import _typed

    return _typed.sheet_names(label, opener)


def format_of_name(name: str) -> Format | None:
    """The format that a file's ending promises (``.csv.gz`` counts as CSV)."""
    path = PurePath(name.lower())
    ending = PurePath(path.stem).suffix if path.suffix in _PACKED else path.suffix
    return _ENDINGS.get(ending)


def _opener(
    source: str | Path | bytes | BinaryIO, name: str | None
) -> tuple[str, Opener, int | None]:
    if isinstance(source, bytes):
        data = source
        return name or "table", lambda: io.BytesIO(data), len(data)
    if not isinstance(source, str | Path):
        data = source.read()
        return name or "table", lambda: io.BytesIO(data), len(data)
    if str(source) == "-":
        return _standard_input(name)
    path = Path(source)
    if path.is_dir():
        raise InvalidTableError(f"{path}: this is a folder, not a file.\nName a file inside it.")
    if not path.exists():
        raise InvalidTableError(f"{path}: there is no such file.\nCheck the name and the folder.")
    if not path.is_file():
        # A pipe can be read once only, and every command reads its table more than once.
        with path.open("rb") as stream:
            return _spooled(stream, name or str(path))
    return name or str(path), lambda: path.open("rb"), path.stat().st_size


def _standard_input(name: str | None) -> tuple[str, Opener, int | None]:
    if sys.stdin is None or sys.stdin.isatty():
        raise InvalidTableError(
            "standard input: nothing is piped in.\nPipe a table in, or name a file instead of '-'."
        )
    return _spooled(sys.stdin.buffer, name or "standard input")


def _spooled(stream: BinaryIO, label: str) -> tuple[str, Opener, int | None]:
    spool = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as the table
    shutil.copyfileobj(stream, spool)
    size = spool.tell()

    def rewound() -> BinaryIO:
        spool.seek(0)
        return os.fdopen(os.dup(spool.fileno()), "rb")

    return label, rewound, size


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
        except zipfile.BadZipFile as error:
            raise InvalidTableError(
                f"{label}: the zip archive is damaged ({error}).\nCopy or download it again."
            ) from error
    return "text"


@contextlib.contextmanager
def _unpacked(opener: Opener, label: str) -> Iterator[BinaryIO]:
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
            unpacked = opened.enter_context(lzma.LZMAFile(stream))
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
            unpacked = opened.enter_context(archive.open(files[0]))
        yield unpacked


def _is_content(entry: zipfile.ZipInfo) -> bool:
    """Whether an entry of an archive is a file of its own, not a folder or a Mac's notes on one."""
    return not entry.is_dir() and not entry.filename.startswith("__MACOSX/")
