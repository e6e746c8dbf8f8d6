"""Workbooks as spreadsheet programs write them, read as openpyxl reads them."""

import io
import sys
import warnings
import zipfile
from datetime import date, datetime
from pathlib import Path

import openpyxl
import pytest

from skcoral.exceptions import InvalidTableError
from skcoral.tables.reading import open_table

sys.path.insert(0, str(Path(__file__).parents[1] / "hostile"))
from bombs import workbook

MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
TYPES = "http://schemas.openxmlformats.org/package/2006/content-types"
SHEET = "application/vnd.openxmlformats-officedocument.spreadsheetml"
#: Plain, rich in two runs, with its pronunciation, with an escaped line break, and empty.
TEXTS = (
    "<si><t>a</t></si><si><r><t>two </t></r><r><rPr><b/></rPr><t>runs</t></r></si>"
    "<si><t>東京</t><rPh sb='0' eb='2'><t>トウキョウ</t></rPh></si>"
    "<si><t>one_x000D_two</t></si><si><t/></si>"
)
HEADER = "".join(f'<c t="inlineStr"><is><t>{name}</t></is></c>' for name in "xyzuv")


def row(number, *cells):
    return f'<row r="{number}">{"".join(cells)}</row>'


def text(place):
    return f'<c t="s"><v>{place}</v></c>'


def made(body, *, mac=False):
    """A file with shared texts, and styles of which the second shows numbers as dates."""
    start = f'<workbook xmlns="{MAIN}" xmlns:r="{OFFICE}">'
    book = f'{start}<workbookPr date1904="{int(mac)}"/><sheets>'
    book += '<sheet name="s" sheetId="1" r:id="rId1"/></sheets></workbook>'
    package = "http://schemas.openxmlformats.org/package/2006/relationships"
    targets = {
        "worksheet": "worksheets/sheet1",
        "sharedStrings": "sharedStrings",
        "styles": "styles",
    }
    links = "".join(
        f'<Relationship Id="rId{k}" Type="{OFFICE}/{kind}" Target="{target}.xml"/>'
        for k, (kind, target) in enumerate(targets.items(), start=1)
    )
    styles = f'<styleSheet xmlns="{MAIN}"><cellXfs><xf numFmtId="0"/><xf numFmtId="14"/></cellXfs>'
    kinds = {"workbook": f"{SHEET}.sheet.main+xml"} | {
        target: f"{SHEET}.{kind}+xml" for kind, target in targets.items()
    }
    listed = "".join(
        f'<Override PartName="/xl/{name}.xml" ContentType="{kind}"/>'
        for name, kind in kinds.items()
    )
    rels = "application/vnd.openxmlformats-package.relationships+xml"
    default = f'<Default Extension="rels" ContentType="{rels}"/>'
    entrance = f'<Relationship Id="r" Type="{OFFICE}/officeDocument" Target="xl/workbook.xml"/>'
    extra = {
        "xl/workbook.xml": book,
        "xl/_rels/workbook.xml.rels": f'<Relationships xmlns="{package}">{links}</Relationships>',
        "xl/styles.xml": f"{styles}</styleSheet>",
        "[Content_Types].xml": f'<Types xmlns="{TYPES}">{default}{listed}</Types>',
        "_rels/.rels": f'<Relationships xmlns="{package}">{entrance}</Relationships>',
    }
    sheet = row(1, HEADER) + body
    parts = {name: content.encode() for name, content in extra.items()}
    return workbook(sheet.encode(), TEXTS.encode(), extra=parts)


def columns_of(data):
    frame = open_table(data, name="t.xlsx").to_frame()
    return {name: frame[name].tolist() for name in frame}


def by_openpyxl(data):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        sheet = openpyxl.load_workbook(io.BytesIO(data), data_only=True).active
    header, *rows = sheet.iter_rows(values_only=True)
    return {name: [r[k] for r in rows] for k, name in enumerate(header)}


def test_texts_that_cells_refer_to():
    body = row(2, text(0), text(1), text(2), text(3), text(4))
    body += row(3, text(1), text(0), text(0), "<c t='b'><v>1</v></c>", "<c t='e'><v>#N/A</v></c>")
    data = made(body)
    found, other = columns_of(data), by_openpyxl(data)
    assert found["x"] == other["x"] == ["a", "two runs"]
    assert found["y"] == other["y"] == ["two runs", "a"]
    assert found["z"] == other["z"] == ["東京", "a"]  # not how it is pronounced
    assert found["u"][0] == "one\rtwo"


@pytest.mark.parametrize("mac", [False, True])
def test_dates_of_both_calendars(mac):
    cells = [
        "<c s='1'><v>45000</v></c>",
        "<c t='d'><v>2024-02-29</v></c>",
        *["<c><v>2</v></c>"] * 3,
    ]
    data = made(row(2, *cells) + row(3, *cells), mac=mac)
    found, other = columns_of(data), by_openpyxl(data)
    years = 4 if mac else 0
    start = datetime(2023, 3, 15)  # day 45,000 of the calendar that begins with 1900
    assert other["x"][0] == (datetime(2027, 3, 16) if years else start)
    assert str(found["x"][0])[:10] == str(other["x"][0])[:10]
    assert str(found["y"][0])[:10] == str(date(2024, 2, 29))


@pytest.mark.parametrize("place", ["5", "-1", "1.5"])
def test_a_text_that_is_not_there(place):
    body = row(2, text(place), *["<c><v>2</v></c>"] * 4)
    with pytest.raises(InvalidTableError, match=r"t\.xlsx: the workbook cannot be read"):
        columns_of(made(body))


def zipped(**files):
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for name, content in files.items():
            archive.writestr(f"{name}.csv", content)
    return stream.getvalue()


def test_archives_of_several_files_and_encrypted_ones():
    with pytest.raises(InvalidTableError, match="holds 2 files, and one is wanted"):
        open_table(zipped(a="x,y\n1,2\n", b="x,y\n1,2\n"), name="t.zip")
    data = bytearray(zipped(a="x,y\n1,2\n"))
    data[6] |= 1  # the flag of the file's own header, and that of the directory
    data[data.index(b"PK\x01\x02") + 8] |= 1
    with pytest.raises(InvalidTableError, match="encrypted"):
        open_table(bytes(data), name="t.zip")
