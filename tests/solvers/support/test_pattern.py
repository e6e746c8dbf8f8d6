"""Support patterns: masks from matrices, dictionaries and graphs, and what is refused."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse

from skcoral.exceptions import InvalidArgumentError
from skcoral.solvers.support import pattern

NAMES = ("a", "b", "c", "d")
WANTED = np.array([[1, 1, 0, 0], [0, 1, 0, 0], [1, 0, 1, 0], [0, 0, 0, 1]], dtype=bool)


def shuffled_frame():
    rows, columns = ["c", "a", "d", "b"], ["d", "b", "a", "c"]
    return pd.DataFrame(WANTED, index=NAMES, columns=NAMES).loc[rows, columns]


@pytest.mark.parametrize(
    "support",
    [
        WANTED,
        WANTED.astype(int),
        WANTED & ~np.eye(4, dtype=bool),
        WANTED.tolist(),
        [tuple(row) for row in WANTED.tolist()],
        list(WANTED),
        shuffled_frame(),
        {"b": ["a"], "a": ["c"]},
        {"b": "a", 0: 2},
    ],
    ids=[
        "mask",
        "zeros and ones",
        "no diagonal",
        "nested lists",
        "tuples",
        "rows",
        "frame",
        "dict",
        "positions",
    ],
)
def test_every_way_of_saying_it_gives_the_same_mask(support):
    mask = pattern(support, NAMES)
    assert mask.dtype == np.bool_
    np.testing.assert_array_equal(mask, WANTED)


def test_edges_go_both_ways_and_the_input_is_unchanged():
    class Graph:
        edges = (("a", "c"), (3, "b"))

    expected = np.eye(4, dtype=bool)
    expected[0, 2] = expected[2, 0] = expected[1, 3] = expected[3, 1] = True
    np.testing.assert_array_equal(pattern([("a", "c"), ("b", "d")], NAMES), expected)
    np.testing.assert_array_equal(pattern(Graph(), NAMES), expected)
    given = np.zeros((4, 4), dtype=bool)
    pattern(given, NAMES)
    assert not given.any()


@pytest.mark.parametrize(
    ("support", "message"),
    [
        (np.ones((3, 4), dtype=bool), "4 by 4"),
        (np.full((4, 4), 0.3), "True and False"),
        ({"b": ["z"]}, "'z'"),
        ({"z": ["a"]}, "'z'"),
        ([("a", "b", "c")], "pair"),
        ([("a", 9)], "position 9"),
        (pd.DataFrame(WANTED, index=NAMES, columns=["a", "b", "c", "e"]), "columns.*e"),
        (7, "pair"),
        ("ab", "pair"),
    ],
)
def test_errors_name_what_is_wrong(support, message):
    with pytest.raises(InvalidArgumentError, match=message):
        pattern(support, NAMES)


def test_lists_of_zeros_and_ones_are_masks_and_tuples_are_edges():
    rows = [[1, 0, 0], [1, 1, 0], [0, 0, 1]]
    names = ["a", "b", "c"]
    wanted = np.array(rows, dtype=bool)
    assert np.array_equal(pattern(rows, names), wanted)
    assert np.array_equal(pattern(scipy.sparse.csr_matrix(rows), names), wanted)
    assert np.array_equal(pattern([[1, 0], [1, 1]], names[:2]), [[True, False], [True, True]])
    assert np.array_equal(pattern([(1, 0), (1, 1)], names[:2]), [[True, True], [True, True]])
