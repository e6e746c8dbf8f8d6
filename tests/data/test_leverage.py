"""Rows that make a correlation, against removing each of them."""

import numpy as np
import pytest

from skcoral.data.leverage import dominant_rows


def naive(values):
    """Rows without which some correlation above 0.9 is below 0.7."""
    R = np.corrcoef(values.T)
    rest = [np.corrcoef(np.delete(values, i, axis=0).T) for i in range(len(values))]
    return [i for i, r in enumerate(rest) if ((np.abs(R) > 0.9) & (np.abs(r) < 0.7)).any()]


@pytest.mark.parametrize("seed", range(20))
def test_rows_are_those_that_removal_finds(seed):
    rng = np.random.default_rng(seed)
    values = rng.normal(size=(25, 5)) * [1, 1e6, 1e-6, 1, 1] + [0, 1e8, 0, 5, -3]
    values[:, 4] = values[:, 3] + 0.1 * rng.normal(size=25)  # strong without any row
    for i in rng.choice(25, size=seed % 3, replace=False):
        values[i, :3] += rng.choice([0, 8, 30]) * np.array([1, -1e6, 1e-6])
    rows = dominant_rows(values, range(100, 125), list("abcde"))
    assert [row.place - 100 for row in rows] == naive(values)
    for row in rows:
        j, k = ("abcde".index(name) for name in row.names)
        rest = np.delete(values, row.place - 100, axis=0)
        assert row.correlation == pytest.approx(np.corrcoef(values.T)[j, k], abs=1e-9)
        assert row.without == pytest.approx(np.corrcoef(rest.T)[j, k], abs=1e-6)


def test_the_sentence_names_row_and_columns():
    values = np.random.default_rng(0).normal(size=(30, 3))
    values[7, :2] = [50, 60]
    (row,) = dominant_rows(values, range(2, 32), ["x", "y", "z"])
    assert row.sentence("line") == (
        "One row makes a correlation: x and y have +0.99, and "
        f"{row.without:+.2f} without line 9. Check it."
    )


def test_few_rows_and_constants():
    assert dominant_rows(np.eye(3), range(3), list("abc")) == ()
    values = np.random.default_rng(0).normal(size=(30, 3))
    values[:, 1] = 2.0
    values[7, [0, 2]] = 50.0
    (row,) = dominant_rows(values, range(30), list("abc"))
    assert row.names == ("a", "c")
