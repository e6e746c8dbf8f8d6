"""The paper's cells: complete, unique, and compared by their printed digits."""

from collections import Counter

import pytest

from skcoral.paper.numbers import TABLES, Cell, paper_numbers
from skcoral.paper.quantities import QUANTITIES


def test_every_table_has_all_its_cells():
    # Rows × columns of numbers in the paper's tables, less the cells it leaves empty.
    expected = {
        "rho-star": 5 * 6,
        "dense-frontiers": 6 * 6 - 2,
        "real-primal": 5 * 4,
        "dual-real": 5 * 2,
        "support-frontier": 7 * 3,
        "support-floors": 2 * 3,
        # The last row covers α = 1 to 16: both ends are checked.
        "sparse-pca-ablation": 4 * 3,
        "final-diagnostics": 5 * 4 - 3,
        "sparse-pca-app": 5,
        "timings": 2,
    }
    counted = Counter(cell.table for cell in paper_numbers())
    assert {table: counted[table] for table in expected} == expected
    assert set(counted) == set(TABLES)


def test_the_text_has_what_the_tables_do_not():
    def figure(cell):
        return cell.quantity, cell.printed, *sorted(cell.args.items())

    tables = {figure(cell) for cell in paper_numbers() if cell.table not in ("text", "timings")}
    text = Counter(figure(cell) for cell in paper_numbers() if cell.table == "text")
    assert tables.isdisjoint(text)
    assert max(text.values()) == 1


def test_no_cell_stands_twice_and_every_recipe_is_known():
    places = Counter((cell.table, cell.row, cell.column) for cell in paper_numbers())
    assert max(places.values()) == 1
    assert {cell.quantity for cell in paper_numbers()} == set(QUANTITIES)


@pytest.mark.parametrize(
    ("printed", "ours", "same"),
    [
        ("0.9718", 0.97184999, True),
        ("0.9718", 0.97175, True),
        ("0.9718", 0.971851, False),
        ("0.0000", 4e-16, True),
        ("0.0000", 6e-5, False),
        ("9.51e-5", 9.514e-5, True),
        ("9.51e-5", 0.0, False),
        ("85", 85.0, True),
        ("85", 84.0, False),
        ("a, b", "a, b", True),
        ("a, b", "a", False),
        ("0.5", "0.5 or so", False),
        ("0.9718", float("nan"), False),
    ],
)
def test_digits(printed, ours, same):
    assert Cell("t", "r", "c", printed, "q").has_digits_of(ours) is same
