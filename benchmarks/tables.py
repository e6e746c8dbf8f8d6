"""Reading tables against the libraries that cut them into cells; writes its table to README.md."""

from __future__ import annotations

import resource
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import openpyxl
import pyarrow as pa
import pyarrow.csv
import python_calamine
from families import rewrite

from skcoral.tables import open_table

ROWS = 1_000_000
SHEET = (100_000, 13)


def quoted_csv(folder: Path) -> Path:
    """Eighteen columns of numbers and two of text, every cell quoted."""
    values = np.random.default_rng(0).normal(size=(ROWS, 18))
    columns = {f"c{j}": values[:, j] for j in range(18)}
    columns |= {"a": [f"name {i % 977}" for i in range(ROWS)]}
    columns |= {"b": [f"x, {i % 31}" for i in range(ROWS)]}
    path = folder / "quoted.csv"
    quoting = pyarrow.csv.WriteOptions(quoting_style="all_valid")
    pyarrow.csv.write_csv(pa.table(columns), path, quoting)
    return path


def sheet(folder: Path) -> Path:
    book = openpyxl.Workbook(write_only=True)
    page = book.create_sheet("s")
    page.append([f"c{j}" for j in range(SHEET[1])])
    for row in np.random.default_rng(0).normal(size=SHEET).tolist():
        page.append(row)
    path = folder / "numbers.xlsx"
    book.save(path)
    return path


def processor_time() -> float:
    """Of this process and of those that it has waited for."""
    spent = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in spent)


def seconds(work: Callable[[], object]) -> float:
    best = np.inf
    for _ in range(3):
        start = processor_time()
        work()
        best = min(best, processor_time() - start)
    return best


def all_cells(path: Path) -> int:
    table = open_table(path)
    return sum(len(cells) for batch in table.batches() for cells in batch.columns)


def all_numbers(path: Path, columns: int) -> int:
    table = open_table(path)
    parts = (cells for batch in table.batches() for cells in batch.columns[:columns])
    return sum(len(table.numbers(cells)[0]) for cells in parts)


def by_calamine(path: Path) -> int:
    return len(python_calamine.CalamineWorkbook.from_path(path).get_sheet_by_index(0).to_python())


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        text, book = quoted_csv(Path(name)), sheet(Path(name))
        one_thread = pyarrow.csv.ReadOptions(use_threads=False)
        arrow = seconds(lambda: pyarrow.csv.read_csv(text, one_thread))
        calamine = seconds(lambda: by_calamine(book))
        found = [
            ("quoted CSV, 1,000,000 × 20", "cells", seconds(lambda: all_cells(text)), arrow),
            ("", "numbers", seconds(lambda: all_numbers(text, 18)), arrow),
            ("xlsx, 100,000 × 13", "cells", seconds(lambda: all_cells(book)), calamine),
            ("", "numbers", seconds(lambda: all_numbers(book, SHEET[1])), calamine),
        ]
    lines = ["| file | read to | skcoral | the library | ratio |", "|---|---|---|---|---|"]
    for what, to, ours, own in found:
        lines.append(f"| {what} | {to} | {ours:.2f} s | {own:.2f} s | {ours / own:.2f} |")
    print(*lines, sep="\n")
    rewrite("tables", lines)


if __name__ == "__main__":
    main()
