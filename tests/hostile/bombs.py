"""Small files that stand for very much: each is refused, or read in little memory.

``m`` stands for a million; a tenth of it goes with limits of a tenth.
"""

from __future__ import annotations

import gzip
import io
import struct
import zipfile
from collections.abc import Callable

import numpy as np
import pyarrow as pa

from made_tables import parquet
from made_tables import workbook as plain_workbook

Make = Callable[[int], bytes]
MAIN = b"http://schemas.openxmlformats.org/spreadsheetml/2006/main"


def workbook(sheet: bytes, others: dict[str, bytes] | None = None) -> bytes:
    """A workbook with one sheet given as XML (inside ``sheetData``), and other parts of it."""
    with zipfile.ZipFile(io.BytesIO(plain_workbook([["text"]]))) as plain:
        parts = {name: plain.read(name) for name in plain.namelist()}
    body = b"<sheetData>" + sheet + b"</sheetData>"
    parts["xl/worksheets/sheet1.xml"] = b'<worksheet xmlns="%s">%s</worksheet>' % (MAIN, body)
    parts |= {"xl/sharedStrings.xml": strings(b""), **(others or {})}
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for name, data in parts.items():
            archive.writestr(name, data)
    return stream.getvalue()


def strings(items: bytes) -> bytes:
    """The texts that the cells of a workbook share."""
    return b'<sst xmlns="%s">%s</sst>' % (MAIN, items)


def cells(row: int, *values: object) -> bytes:
    inner = "".join(
        f'<c t="inlineStr"><is><t>{v}</t></is></c>' if isinstance(v, str) else f"<c><v>{v}</v></c>"
        for v in values
    )
    return f'<row r="{row}">{inner}</row>'.encode()


def table(n: int = 6) -> bytes:
    return cells(1, "a", "b") + b"".join(cells(i + 2, i % 3, i * i % 7) for i in range(n))


def zeros(n: int) -> pa.Array:
    return pa.array(np.zeros(n, dtype=np.uint8))


def varint(number: int, size: int = 0) -> bytes:
    """A number of Thrift's compact protocol, with blanks up to ``size`` bytes."""
    number *= 2
    size = max(size, -(-number.bit_length() // 7), 1)
    groups = [number >> 7 * k & 127 for k in range(size)]
    return bytes([*(g | 128 for g in groups[:-1]), groups[-1]])


def understated(values: int, declared: int) -> bytes:
    """A Parquet file with one long list, whose footer declares a shorter one."""
    one = pa.ListArray.from_arrays([0, values], zeros(values))
    data = parquet({"a": [1.0], "b": one}, compression="zstd", data_page_size=2**30)
    start = len(data) - 8 - struct.unpack("<I", data[-8:-4])[0]
    true = varint(values)
    assert true in data[start:]
    return data[:start] + data[start:].replace(true, varint(declared, len(true)))


def overstated_page(unpacked: int) -> bytes:
    """A Parquet file with one page that is said to unpack to much more than it does."""
    data = parquet({"a": [1.5] * 50, "b": list(range(50))}, compression="gzip")
    at = data.index(b"\x15", 4) + 2  # the page header: type, then the unpacked size
    assert data[at] == 0x15
    end = at + 1
    while data[end] >= 128:
        end += 1
    return data[: at + 1] + varint(unpacked) + data[end + 1 :]


def zipped(data: bytes, name: str = "t.csv") -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(name, data)
    return stream.getvalue()


def zeros_gzip(megabytes: int, piece: bytes = bytes(2**20)) -> bytes:
    """Many members of a megabyte each: gzip files may be concatenated."""
    return gzip.compress(piece) * megabytes


def laughs() -> bytes:
    """Entities that double thirty times."""
    entities = "".join(
        f'<!ENTITY l{k} "&l{k - 1};&l{k - 1};&l{k - 1};&l{k - 1};">' for k in range(1, 30)
    )
    return f'<!DOCTYPE sst [<!ENTITY l0 "ha">{entities}]><sst><si><t>&l29;</t></si></sst>'.encode()


def far_xls(data: bytes) -> bytes:
    """An .xls file whose only whole number stands in the last row, beyond the last column."""
    at = data.index(struct.pack("<HHHH", 0x27E, 10, 2, 1))
    return data[: at + 4] + struct.pack("<HH", 65535, 65535) + data[at + 8 :]


def far_row(number: bytes) -> bytes:
    return b'<row r="%s"><c><v>1</v></c></row>' % number


def far_cells(value: bytes, n: int) -> bytes:
    """Rows of which each has only its last cell."""
    return b"".join(b'<row r="%d"><c r="XFD%d">%s</c></row>' % (k, k, value) for k in range(10, n))


#: What stands in the rows below a good table.
ROWS: dict[str, Make] = {
    "corners": lambda _: b'<row r="1048576"><c r="XFD1048576"><v>2</v></c></row>',
    "row-number-1e12": lambda _: far_row(b"1000000000000"),
    "row-number-1e300": lambda _: far_row(b"1e300"),
    "row-number-negative": lambda _: far_row(b"-5"),
    "far-column": lambda _: b'<row r="9"><c r="ZZZZZZZ9"><v>1</v></c></row>',
    "empty-far-cells": lambda m: far_cells(b"", m // 50),
    "far-cells-with-values": lambda m: far_cells(b"<v>1</v>", m // 100),
    "cells-of-one-row": lambda m: b'<row r="9">' + b"<c/>" * (3 * m),
    "rows-without-end": lambda m: b"<row/>" * (11 * m // 10),
    "rows-beyond-the-last": lambda m: b'<row r="1040000"/>' + b"<row/>" * (m // 10),
    "unknown-elements": lambda m: b"<x/>" * (m // 4),
    "deep-elements": lambda m: b"<x>" * m + b"</x>" * m,
    "one-long-text": lambda m: b'<row r="9"><c t="inlineStr"><is><t>' + b"x" * 150 * m,
    "sheet-of-gigabytes": lambda m: b" " * 250 * m,
    "numbers-of-a-million-digits": lambda m: b'<row r="9"><c><v>' + b"9" * m + b"</v></c></row>",
    "long-attributes": lambda m: b'<row r="9" x="' + b"y" * 30 * m + b'"></row>',
}
#: Other parts of the workbook: where, and what.
PARTS: dict[str, tuple[str, Make]] = {
    "texts-without-end": ("sharedStrings.xml", lambda m: strings(b"<si/>" * (m // 4))),
    "pieces-of-one-text": (
        "sharedStrings.xml",
        lambda m: strings(b"<si>" + b"<r/>" * (m // 4) + b"</si>"),
    ),
    "entities": ("sharedStrings.xml", lambda _: laughs()),
    "relations-without-end": (
        "_rels/workbook.xml.rels",
        lambda m: b"<R>" + b"<Relationship/>" * (5 * m) + b"</R>",
    ),
}
EXCEL: dict[str, Make] = {
    **{name: lambda m, rows=rows: workbook(table() + rows(m)) for name, rows in ROWS.items()},
    **{
        name: lambda m, at=at, part=part: workbook(table(), {f"xl/{at}": part(m)})
        for name, (at, part) in PARTS.items()
    },
}

TEXT: dict[str, Make] = {
    "zeros-gzip": lambda m: zeros_gzip(m // 2000),
    "line-without-end-gzip": lambda m: zeros_gzip(m // 2000, b"1," * 2**19),
    "lines-without-end-gzip": lambda m: (
        gzip.compress(b"a,b\n") + zeros_gzip(m // 2000, b"\n" * 2**20)
    ),
    "letters-zip": lambda m: zipped(b"a,b\n" + b"x" * 80 * m),
    "open-quote": lambda m: b'a,b\n1,"' + (b"2" * 69 + b"\n") * m,
    "million-columns": lambda m: b",".join(b"c%d" % k for k in range(m)) + b"\n1\n",
    "million-names-alike": lambda m: b"a," * m + b"b\n",
    "long-name": lambda m: b"a" * (100 * m) + b",b\n1,2\n",
    "quotes": lambda m: b'a,b\n"' + b'""' * (35 * m) + b'",1\n',
    "zip-in-zip": lambda m: zipped(zipped(b"a,b\n1,2\n"), "t.zip"),
}


def repeated(value: object, n: int) -> bytes:
    """A Parquet file with one text ``n`` times, which takes hardly more room than once."""
    once = pa.DictionaryArray.from_arrays(pa.array([0] * n, pa.int32()), pa.array([value]))
    return parquet({"t": once, "a": list(range(n))})


PARQUET: dict[str, Make] = {
    # lists of every kind are refused by the schema: tests/tables/test_parquet.py
    "one-list-of-zeros": lambda m: parquet(
        {"a": [1.0], "b": pa.ListArray.from_arrays([0, 20 * m], zeros(20 * m))}
    ),
    "understated-list": lambda m: understated(10 * m, 100),
    "long-texts": lambda m: repeated("x" * m, m // 5),
    "long-bytes": lambda m: repeated(b"x" * 3 * m, m // 20),
    "one-long-text": lambda m: parquet({"t": ["x" * 75 * m], "a": [1.0]}),
    "many-columns": lambda m: parquet({f"c{k}": [1.0] for k in range(m * 6 // 1000)}),
    "overstated-page": lambda _: overstated_page(2**31 - 1),
    "rows-without-end": lambda m: parquet(
        {"a": zeros(500 * m), "b": zeros(500 * m)}, compression="zstd", row_group_size=500 * m
    ),
    "half-a-footer": lambda _: parquet({"a": [1.0, 2.0], "b": [2.0, 1.0]})[:-20] + b"PAR1",
    "footer-length": lambda _: b"PAR1" + bytes(100) + struct.pack("<I", 2**31 - 1) + b"PAR1",
    "magic-only": lambda _: b"PAR1PAR1",
}
