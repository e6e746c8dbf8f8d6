"""Whatever text a cell holds, it reads back the same from every file that was written."""

import codecs
import gzip
import io
import re
import string

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from made_tables import like
from skcoral.exceptions import InvalidTableError
from skcoral.tables.cells import plain_cells
from skcoral.tables.reading import open_table
from skcoral.tables.writing import table_writer

#: Everything that ends a line somewhere, separates cells, quotes, escapes or steers a terminal.
SPECIAL = [chr(k) for k in range(1, 0xA0) if not chr(k).isalnum()]
SPECIAL += list("\u2028\u2029\ufeff\ufffe\uffff\u00a0\u200b\u202e😀é")
SPECIAL += ["_x000D_", "_x005F_", "_x0041_", "\r\n", '""', "&amp;", "<![CDATA[", "]]>", "'=1"]
texts = st.lists(st.sampled_from([*SPECIAL, *string.ascii_letters]), max_size=8).map("".join)
tables = st.lists(st.tuples(texts, texts), min_size=1, max_size=6)
FORMATS = ["csv", "tsv", "csv.gz", "xlsx", "parquet"]
NUMBERS = np.array([0.1 + 0.2, -1e-300, 5e-324, 1.7976931348623157e308, 3.0, 0.5])
SHEET_NUMBERS = np.array([0.25, -1e-300, 123456.789, 1e300, 3.0, 0.5])  # sheets keep 16 digits


def written(rows, ending, **options):
    stream = io.BytesIO()
    writer = table_writer(
        stream, ["number", "one", "two"], path=f"t.{ending}", like=like(**options)
    )
    numbers = (SHEET_NUMBERS if ending == "xlsx" else NUMBERS)[: len(rows)]
    for part in (slice(0, 2), slice(2, None)):
        ones, twos = ([row[k] for row in rows[part]] for k in (0, 1))
        writer.write([numbers[part], ones, twos])
    writer.close()
    return stream.getvalue()


def read_back(data, ending, **options):
    table = open_table(data, name=f"t.{ending}", **options)
    columns = [[], [], []]
    for batch in table.batches():
        for column, cells in zip(columns, batch.columns, strict=True):
            column.extend("" if cell is None else cell for cell in plain_cells(cells))
    return table.names, columns


@pytest.mark.parametrize("ending", FORMATS)
@settings(max_examples=60, deadline=None)
@given(tables)
@example([("a\rb", "c"), ("d", "e")])
@example([("\r", "\n"), ("\x85", "\u2028"), ("\x1c", "\x0b\x0c")])
@example([('"', '""'), (",", ";"), ("\t", " x ")])
@example([(" \xa0", "\u3000 "), ("\xa0", " ")])
@example([("_x000D_", "_x005F_x000D_"), ("\x00"[:0], "\x01\x1f\x7f")])
def test_every_text_comes_back(ending, rows):
    if ending == "xlsx":  # no characters: readers of workbooks leave the escapes of these two
        rows = [tuple(re.sub("[\ufffe\uffff]", "", text) for text in row) for row in rows]
    names, columns = read_back(written(rows, ending), ending)
    assert names == ("number", "one", "two")
    numbers = SHEET_NUMBERS if ending == "xlsx" else NUMBERS
    assert [float(cell) for cell in columns[0]] == numbers[: len(rows)].tolist()
    assert columns[1] == [row[0] for row in rows]
    assert columns[2] == [row[1] for row in rows]


@pytest.mark.parametrize("ending", FORMATS)
def test_a_zero_character_is_refused_by_text_files_and_kept_by_others(ending):
    if ending in ("xlsx", "parquet"):
        assert read_back(written([("a\0b", "c")], ending), ending)[1][1] == ["a\0b"]
        return
    with pytest.raises(InvalidTableError, match=r"zero character(.|\n)*parquet"):
        written([("a\0b", "c")], ending)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "cp1252", "latin-1", "utf-16"])
@pytest.mark.parametrize("ending", ["csv", "csv.gz"])
def test_text_comes_back_in_the_encoding_it_had(encoding, ending):
    rows = [("größe", "€" if encoding != "latin-1" else "¥"), ("ß", "é")]
    data = "number;one;two\n" + "".join(f"{k + 0.5};{a};{b}\n" for k, (a, b) in enumerate(rows))
    table = open_table(data.encode(encoding), name="t.csv", encoding=None)
    stream = io.BytesIO()
    writer = table_writer(stream, table.names, path=f"t.{ending}", like=table)
    for batch in table.batches(1):
        writer.write([np.array(batch.columns[0].to_pylist(), dtype=float), *batch.columns[1:]])
    writer.close()
    content = gzip.decompress(stream.getvalue()) if ending.endswith("gz") else stream.getvalue()
    assert content.decode(encoding) == data
    assert (content[:3] == codecs.BOM_UTF8) == (encoding == "utf-8-sig")
    with pytest.raises(InvalidTableError, match="cannot be written in ascii"):
        table_writer(io.BytesIO(), ["größe"], like=like(encoding="ascii"))


def test_a_mark_before_what_is_not_utf_8_can_be_written_back():
    data = codecs.BOM_UTF8 + b"a,b\n1.5,\x93\n"
    table = open_table(data, name="t.csv")
    assert table.encoding == "cp1252"
    stream = io.BytesIO()
    writer = table_writer(stream, table.names, like=table)
    for batch in table.batches():
        writer.write(batch.columns)
    writer.close()
    assert stream.getvalue() == data
