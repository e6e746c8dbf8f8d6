"""Every command opens its table once and parses it once, whatever it is asked to write."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from skcoral.app.sources import read_file
from skcoral.tables import delimited


@pytest.fixture
def counted(monkeypatch):
    """How often files are opened for reading, and passes over the rows of text files."""
    counts: Counter[str] = Counter()
    opened, parsed = Path.open, delimited._Reader.batches

    def counting_open(self, mode="r", *args, **kwargs):
        if "r" in mode:
            counts[self.name] += 1
        return opened(self, mode, *args, **kwargs)

    def counting_batches(self, size):
        counts["passes"] += 1
        yield from parsed(self, size)

    monkeypatch.setattr(Path, "open", counting_open)
    monkeypatch.setattr(delimited._Reader, "batches", counting_batches)
    return counts


COMMANDS = {
    "inspect": ["inspect", "{table}"],
    "threshold": ["threshold", "{table}"],
    "fit": ["fit", "{table}", "--rho-min", "0.9", "-o", "{out}/o.csv"],
    "everything": [
        "fit", "{table}", "--support", "0.15", "--rho-min", "0.99", "-o", "{out}/o.xlsx",
        "--report", "{out}/r.html", "--certificate", "{out}/c.json", "--model", "{out}/m.json",
    ],
    "in parts": ["fit", "{table}", "--rho-min", "0.9", "-o", "{out}/o.parquet"],
    "frontier": ["frontier", "{table}", "--points", "3"],
    "roll": ["roll", "{table}", "--window", "60", "--rho-min", "0.9", "-o", "{out}/o.csv"],
}  # fmt: skip


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_reads_its_table_once(main, counted, iris_csv, tmp_path, monkeypatch, command):
    if command == "in parts":
        monkeypatch.setattr("skcoral.workflow.dataset.IN_MEMORY", 0)
    arguments = [word.format(table=iris_csv, out=tmp_path) for word in COMMANDS[command]]
    status, _, errors = main(*arguments)
    assert status in (0, 4), errors
    assert counted["iris.csv"] == 1
    assert counted["passes"] == 1


def test_the_app_parses_an_upload_once(counted, iris_csv):
    source = read_file(iris_csv.read_bytes(), "iris.csv", key="k")
    assert list(source.opened.table.cells("species"))[:1] == ["setosa"]
    assert counted["passes"] == 1


def test_a_long_table_is_parsed_in_every_pass(main, counted, iris_csv, tmp_path, monkeypatch):
    """Otherwise its cells would fill the memory beside its numbers."""
    monkeypatch.setattr("skcoral.tables.table.KEPT_BYTES", 1000)
    assert main("fit", iris_csv, "-o", tmp_path / "o.csv")[0] == 0
    assert counted["passes"] == 3  # its columns, their numbers, and the cells to write
    assert counted["iris.csv"] == 1
