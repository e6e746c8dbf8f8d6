"""Messages stay in their lines whatever files are called, and name what is missing."""

import sys

import pytest


@pytest.mark.parametrize(
    "arguments",
    [
        ["inspect", "missing"],
        ["inspect", "."],
        ["inspect", "junk"],
        ["frontier", "wine", "--plot", "x.bmp"],
        ["fit", "wine", "-o", "x.dat"],
        ["fit", "wine", "-o", "missing/x.csv"],
        ["fit", "wine", "-o", "same.csv", "--certificate", "same.csv"],
        ["fit", "wine", "--support", "junk"],
        ["transform", "wine", "--model", "missing"],
        ["transform", "wine", "--model", "junk"],
        ["verify", "wine", "missing"],
        ["verify", "wine", "junk"],
        ["fit", "wine", "--unknown"],
    ],
    ids=" ".join,
)
def test_line_breaks_in_names_of_files_do_not_break_messages(main, wine_csv, tmp_path, arguments):
    folder = tmp_path / "a\nb\r\x1b[31m\u2028c"
    folder.mkdir()
    (folder / "junk").write_text("junk")
    command, *others = arguments
    given = {"wine": wine_csv, "--unknown": "--unknown\n"}
    made = [given.get(a, a if a.startswith("-") else folder / a) for a in others]
    status, out, err = main(command, *made)
    assert status in (2, 3, 4)
    assert out == ""
    first, second, rest = err.split("\n")
    assert first.startswith("coral: ")
    assert rest == ""
    assert all(line.isprintable() and line for line in (first, second))


def test_line_breaks_in_names_of_files_do_not_break_the_answer(main, wine_csv, tmp_path):
    table, model, out = (tmp_path / f"a\nb{name}" for name in (".csv", ".json", "_out.csv"))
    table.write_bytes(wine_csv.read_bytes())
    for arguments in (
        ["fit", table, "--model", model, "-o", out, "--certificate", tmp_path / "c\nd"],
        ["transform", table, "--model", model, "-o", out, "--force"],
        ["verify", table, tmp_path / "c\nd"],
        ["inspect", table],
    ):
        status, text, _ = main(*arguments)
        assert status == 0
        assert "a\nb" not in text
        assert "a\N{REPLACEMENT CHARACTER}b" in " ".join(text.split("\n"))


def test_packages_that_are_not_installed_are_named(main, wine_csv, tmp_path, monkeypatch):
    with monkeypatch.context() as without:
        without.setitem(sys.modules, "openpyxl", None)
        status, _, err = main("fit", wine_csv, "-o", tmp_path / "out.xlsx")
    assert status == 2
    assert "'openpyxl'" in err.splitlines()[0]
    assert list(tmp_path.iterdir()) == []


def test_too_little_memory_is_reported(main, wine_csv, monkeypatch):
    def full(*_):
        raise MemoryError

    monkeypatch.setattr("skcoral.cli.threshold.load", full)
    status, out, err = main("threshold", wine_csv)
    assert (status, out) == (3, "")
    assert err.startswith("coral: the table does not fit in memory.\n")
