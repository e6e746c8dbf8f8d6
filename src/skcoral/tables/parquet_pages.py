"""The pages of a Parquet file hold no more than its footer declares.

What a reader unpacks is said in the header of each page, and limits are judged by the footer. The
headers are read one after the other, without the data between them (Thrift's compact protocol).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO

from skcoral.exceptions import InvalidTableError
from skcoral.limits import Limits

_HEADER = 1 << 20  # bytes of a header that are read at most; statistics may hold texts
_DEEPEST = 16
_DATA, _DICTIONARY, _DATA_V2 = 5, 7, 8  # fields of a page header that hold a number of values


@dataclass(frozen=True)
class _Page:
    unpacked: int
    packed: int
    values: int  # of a dictionary: none, they are counted where they are used


def require_declared_pages(label: str, stream: BinaryIO, metadata: Any, limits: Limits) -> None:
    """Refuse a file whose pages hold more than its footer declares, or too much for memory."""
    for i in range(metadata.num_row_groups):
        group = metadata.row_group(i)
        for j in range(group.num_columns):
            chunk = group.column(j)
            values = unpacked = 0
            name = chunk.path_in_schema.split(".")[0]
            for page in _pages(label, stream, chunk):
                page_label = f"{label}: a page of column {name!r}"
                limits.require("workbook_bytes", page.unpacked, page_label, advice="Leave it out.")
                values, unpacked = values + page.values, unpacked + page.unpacked
                if values > chunk.num_values or unpacked > chunk.total_uncompressed_size:
                    raise InvalidTableError(
                        f"{label}: the pages of column {name!r} hold more than the "
                        f"{chunk.num_values:,} values in {chunk.total_uncompressed_size:,} bytes "
                        "that the file declares.\nIt is damaged: write or copy it again."
                    )


def _pages(label: str, stream: BinaryIO, chunk: Any) -> Iterator[_Page]:
    # A chunk without rows may have no data page, whose place is then given as 0.
    places = [place for place in (chunk.data_page_offset, chunk.dictionary_page_offset) if place]
    place = min(places, default=0)
    end = place + (chunk.total_compressed_size if places else 0)
    while place < end:
        stream.seek(place)
        data = stream.read(min(512, end - place))
        try:
            header, size = _struct(data, 0, 0)
        except IndexError:
            stream.seek(place)
            data = stream.read(min(_HEADER, end - place))
            try:
                header, size = _struct(data, 0, 0)
            except IndexError:
                header, size = {}, 0
        page = _page(header)
        if page is None:
            raise InvalidTableError(
                f"{label}: a page of the Parquet file cannot be read.\n"
                "It is damaged or was cut short: write or copy it again."
            )
        yield page
        place += size + page.packed


def _page(header: dict[int, Any]) -> _Page | None:
    """Sizes and values of a page; None if the header does not say them."""
    unpacked, packed = header.get(2), header.get(3)
    inner = [header[field] for field in (_DATA, _DICTIONARY, _DATA_V2) if field in header]
    if not isinstance(unpacked, int) or not isinstance(packed, int) or min(unpacked, packed) < 0:
        return None
    if not inner:
        return _Page(unpacked, packed, 0)  # an index
    values = inner[0].get(1) if isinstance(inner[0], dict) else None
    if not isinstance(values, int) or values < 0:
        return None
    return _Page(unpacked, packed, 0 if _DICTIONARY in header else values)


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        value, at, shift = value | (byte & 127) << shift, at + 1, shift + 7
        if byte < 128:
            return value, at
        if shift > 63:
            raise IndexError


def _struct(data: bytes, at: int, depth: int) -> tuple[dict[int, Any], int]:
    """Fields of a structure by number, and where it ends."""
    if depth > _DEEPEST:
        raise IndexError
    fields: dict[int, Any] = {}
    number = 0
    while data[at] != 0:
        kind, step = data[at] & 15, data[at] >> 4
        at += 1
        if step:
            number += step
        else:
            code, at = _varint(data, at)
            number = code >> 1 ^ -(code & 1)
        fields[number], at = _value(data, at, kind, depth, in_list=False)
    return fields, at + 1


def _value(data: bytes, at: int, kind: int, depth: int, *, in_list: bool) -> tuple[Any, int]:
    if kind in (1, 2):  # a truth value is in its own type, and in a list a byte
        return kind == 1, at + in_list
    if kind == 3:
        return data[at], at + 1
    if kind in (4, 5, 6):
        code, at = _varint(data, at)
        return code >> 1 ^ -(code & 1), at
    if kind == 7:
        return None, at + 8
    if kind == 8:
        size, at = _varint(data, at)
        return None, at + size
    if kind in (9, 10):
        size, inner = data[at] >> 4, data[at] & 15
        at += 1
        if size == 15:
            size, at = _varint(data, at)
        for _ in range(size):
            _, at = _value(data, at, inner, depth + 1, in_list=True)
            if at > len(data) or depth > _DEEPEST:
                raise IndexError
        return None, at
    if kind == 12:
        return _struct(data, at, depth + 1)
    raise IndexError  # no other kind occurs in the header of a page
