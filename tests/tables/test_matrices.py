"""Pasted matrices, with and without names, whole and triangular."""

import numpy as np
import pytest

from skcoral.exceptions import InvalidCorrelationError
from skcoral.tables.matrices import parse_matrix

R = np.array([[1.0, 0.25, -0.5], [0.25, 1.0, 0.125], [-0.5, 0.125, 1.0]])
BODY = [["1", "0.25", "-0.5"], [".25", "1", "1.25e-1"], ["-0.5", "0.125", "1"]]


def joined(rows, mark):
    return "\n".join(mark.join(row) for row in rows)


@pytest.mark.parametrize("mark", ["\t", ";", ",", " ", "   "])
def test_separators_and_names(mark):
    head = [["a", "b", "c"]]
    side = [[name, *row] for name, row in zip("abc", BODY, strict=True)]
    matrix, names = parse_matrix(joined(BODY, mark))
    assert np.array_equal(matrix, R)
    assert names == ("x1", "x2", "x3")
    for rows in (head + BODY, side, [["", "a", "b", "c"], *side], [["v", "a", "b", "c"], *side]):
        matrix, names = parse_matrix(joined(rows, mark))
        assert np.array_equal(matrix, R)
        assert names == ("a", "b", "c")


def test_lower_triangle_blank_lines_and_quotes():
    matrix, names = parse_matrix('"a";1\n\n"b";0.25;1;\r\n"c";-0.5;0.125;1\n')
    assert np.array_equal(matrix, R)
    assert names == ("a", "b", "c")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "no matrix yet"),
        ("1 2\n3", "Line 2 has 1 cells"),
        ("1 x\nx 1", "not a number"),
        ("a b\n1 0\n0 1\n0 0", "2 names and 3 rows"),
        ("a b\nb 1 0\na 0 1", "names of rows and columns differ"),
        ("1 NA\nNA 1", "'NA' is not a number"),
    ],
)
def test_what_is_wrong_is_reported(text, told):
    with pytest.raises(InvalidCorrelationError, match=told):
        parse_matrix(text)


def test_decimal_commas_between_tabs_and_semicolons():
    for mark in ("\t", ";"):
        text = f"a{mark}b\n1{mark}0,25\n0,25{mark}1\n"
        R, names = parse_matrix(text)
        assert names == ("a", "b")
        assert R.tolist() == [[1.0, 0.25], [0.25, 1.0]]


@pytest.mark.parametrize(
    "text",
    [
        "1 0,6\n0,6 1",
        "a.1 b.2\n1,0 0,6\n0,6 1,0",
        "a.1;b.2\n1,0;0,6\n0,6;1,0",
        "\ta.1\tb.2\na.1\t1\t,6\nb.2\t,6\t1",
        "1\n0,6 1",
    ],
)
def test_decimal_commas_wherever_they_cannot_divide_cells(text):
    matrix, _ = parse_matrix(text)
    np.testing.assert_array_equal(matrix, [[1.0, 0.6], [0.6, 1.0]])


@pytest.mark.parametrize("text", ["1,0\n0,1", "1, 0\n0, 1", "a,b\n1,0\n0,1", "1.0,0.0\n0.0,1.0"])
def test_commas_divide_cells_where_they_may(text):
    np.testing.assert_array_equal(parse_matrix(text)[0], np.eye(2))
