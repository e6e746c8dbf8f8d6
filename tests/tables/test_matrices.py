"""Files that are said to hold a matrix, complete and triangular."""

import numpy as np
import pytest

from skcoral.exceptions import InvalidCorrelationError, InvalidTableError
from skcoral.tables.matrices import named_matrix
from skcoral.workflow.opening import open_file

R = np.array([[1.0, 0.25, -0.5], [0.25, 1.0, 0.125], [-0.5, 0.125, 1.0]])
BODY = [["1", "0.25", "-0.5"], [".25", "1", "1.25e-1"], ["-0.5", "0.125", "1"]]
TRIANGLE = [["1", "", ""], ["0.25", "1", ""], ["-0.5", "0.125", "1"]]


def read(text):
    return open_file(text.encode(), name="m.txt", matrix=True).matrix


def matrix(rows, mark):
    return read("\n".join(mark.join(row) for row in rows))


@pytest.mark.parametrize("mark", ["\t", ";", ",", " "])
def test_separators_names_and_triangles(mark):
    names = ["a", "b", "c"]
    bodies = [BODY] if mark == " " else [BODY, TRIANGLE]
    for body in bodies:
        side = [[name, *row] for name, row in zip(names, body, strict=True)]
        for rows in ([names, *body], [["v", *names], *side]):
            named = matrix(rows, mark)
            assert np.array_equal(named.R, R)
            assert named.names == ("a", "b", "c")


@pytest.mark.parametrize(
    "text", ["a.1;b.2\n1,0;0,6\n0,6;1,0", "\ta.1\tb.2\na.1\t1\t,6\nb.2\t,6\t1"]
)
def test_decimal_commas(text):
    named = read(text)
    np.testing.assert_array_equal(named.R, [[1.0, 0.6], [0.6, 1.0]])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a b\n1 0\n0 1\n0 0", "3 rows and 2 columns"),
        ("v,a,b\nc,1,0\na,0,1", "same names on both sides"),
        ("a,b\n1,NA\nNA,1", "between `a` and `b`"),
        ("a,b\n1,2\n3", "line 3 has 1 cell"),
    ],
)
def test_what_is_wrong_is_reported(text, message):
    with pytest.raises((InvalidCorrelationError, InvalidTableError), match=message):
        read(text)


@pytest.mark.parametrize(("off", "one"), [(3e-6, False), (0.3e-6, True)])
def test_a_printed_diagonal_of_one(off, one):
    """A little further off it is a covariance matrix, and has a scale."""
    matrix = np.array([[1 + off, 0.3, 0.2], [0.3, 1.0, 0.1], [0.2, 0.1, 1.0]])
    matrix = named_matrix(matrix, ("a", "b", "c"), "it")
    assert (matrix.scale is None) == one


@pytest.mark.parametrize(("least", "refused"), [(-3e-5, True), (-1e-6, False)])
def test_a_printed_covariance_matrix_is_semidefinite(least, refused):
    r = (least - 1) / 2  # the smallest eigenvalue of three equal correlations is 1 + 2r
    matrix = 4 * np.where(np.eye(3) > 0, 1.0, r)
    if refused:
        with pytest.raises(InvalidCorrelationError, match="semidefinite"):
            named_matrix(matrix, ("a", "b", "c"), "it")
    else:
        assert named_matrix(matrix, ("a", "b", "c"), "it")
