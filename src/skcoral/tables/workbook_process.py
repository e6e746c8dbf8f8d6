"""The script of the process that reads workbooks; run by :mod:`skcoral.tables.excel`, not imported.

The library keeps a sheet as one dense block between its outermost cells and ends the process where
that does not fit: two cells far apart, in a file of two kilobytes, stand for 500 GB. A process of
its own has a limit of memory, can be ended at any time, and takes nothing else with it.

It reads the size of a workbook and the name of a sheet, or None for all, and then the workbook from
standard input. It answers with pickles: first the names of the sheets, then for each sheet blocks
of row numbers and columns, closed by None. An error is answered by its text.
"""

import io
import itertools
import pickle
import sys
from array import array
from collections.abc import Iterable
from typing import Any, BinaryIO

_ROWS = 20_000  # of a block: few enough to be sent while the next are read


def main(folder: str, memory: int) -> None:
    """Serve one workbook; ``folder`` is where the library is, ``memory`` the bytes allowed."""
    sys.path.append(folder)
    import python_calamine as calamine

    try:
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    except (ImportError, ValueError):  # no such limit on Windows
        pass
    requests, answers = sys.stdin.buffer, sys.stdout.buffer
    try:
        size, wanted = pickle.load(requests)
        book = calamine.CalamineWorkbook.from_filelike(io.BytesIO(requests.read(size)))
        tables = (s for s in book.sheets_metadata if s.typ == calamine.SheetTypeEnum.WorkSheet)
        names = [sheet.name for sheet in tables]
        _answer(answers, names)
        for name in names:
            if wanted in (None, name):
                _answer_rows(answers, book.get_sheet_by_name(name))
    except BaseException as error:  # the library panics on some damaged files
        _answer(answers, f"{error or type(error).__name__}")


def _answer_rows(answers: BinaryIO, sheet: Any) -> None:
    """Answer with the rows that hold a value."""
    filled = (
        (place, row)
        for place, row in enumerate(sheet.iter_rows() if sheet.start else (), start=1)
        if row.count("") < len(row)
    )
    while block := list(itertools.islice(filled, _ROWS)):
        places, rows = zip(*block, strict=True)
        _answer(answers, (list(places), _columns(rows)))
    _answer(answers, None)


def _columns(rows: Iterable[list[Any]]) -> list[Any]:
    """The cells by column; numbers alone are packed."""
    return [
        array("d", column)
        if set(map(type, column)) == {float}
        else [None if cell == "" else cell for cell in column]
        for column in zip(*rows, strict=True)
    ]


def _answer(answers: BinaryIO, content: Any) -> None:
    pickle.dump(content, answers, protocol=5)
    answers.flush()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
