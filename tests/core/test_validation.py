"""Validation of names, floors, numbers and choices, and its messages."""

from functools import partial

import numpy as np
import pytest

from skcoral import decorrelate
from skcoral.core import validation as v
from skcoral.exceptions import InvalidArgumentError

NAMES = ("height", "weight", "age", "income")


class TestNames:
    def test_default_and_conversion(self):
        assert v.check_names(None, 2) == ("x0", "x1")
        assert v.check_names([3, "b"], 2) == ("3", "b")

    def test_refused(self):
        with pytest.raises(InvalidArgumentError, match="3 variables need 3 names, got 2"):
            v.check_names("ab", 3)
        with pytest.raises(InvalidArgumentError, match="more than once: `a`, `c`"):
            v.check_names("acbac", 5)


class TestFloors:
    @pytest.mark.parametrize(
        ("value", "wanted"),
        [
            (0.9, [0.9] * 4),
            (1, [1.0] * 4),
            (np.float32(0.5), [0.5] * 4),
            ([0.1, 0, 1, 0.3], [0.1, 0, 1, 0.3]),
            ({"age": 0.8, "height": 0.2}, [0.2, 0, 0.8, 0]),
            ({}, [0, 0, 0, 0]),
        ],
    )
    def test_accepted(self, value, wanted):
        floors = v.check_floors(value, NAMES)
        assert floors.dtype == np.float64
        assert np.array_equal(floors, wanted)

    def test_the_callers_array_is_unchanged(self):
        given = np.full(4, 0.5)
        assert not np.shares_memory(v.check_floors(given, NAMES), given)

    @pytest.mark.parametrize(
        ("value", "message"),
        [
            (1.5, r"got 1\.5 for every variable"),
            (np.nan, "got nan for every variable"),
            ([0.5, -0.1, 0.2, np.nan], r"`weight`: -0\.1, `income`: nan"),
            ([0.5, 0.5], r"4 of them.*`income`.*\(2,\)"),
            (np.full((4, 1), 0.5), r"\(4, 1\)"),
            ("high", "numbers; got the text 'high'"),
            ("0.9", "numbers; got the text '0.9'"),
            ([0.5, "x", 0.5, 0.5], "entry 1 is the text 'x'"),
            ({"shoe": 0.3}, "`age`.*unknown: `shoe`"),
            ({"age": "old"}, "floor of `age`.*old"),
            ({"age": np.inf}, "`age`: inf"),
            (1 + 1e-12, "between 0 and 1"),
            (True, "must be numbers, not truth values; got True"),
            ([True, 0.5, 0.5, 0.5], "not truth values"),
        ],
    )
    def test_refused(self, value, message):
        with pytest.raises(InvalidArgumentError, match=message):
            v.check_floors(value, NAMES)


class TestArguments:
    @pytest.mark.parametrize(
        ("check", "fine", "bad", "message"),
        [
            (
                v.check_budget,
                [0, 0.25, np.float64(3)],
                [-1e-12, np.nan, np.inf, 1e101, "much", None, [0.1], True],
                "budget must be .*number",
            ),
            (
                partial(v.check_positive, "tol"),
                [1e-9],
                [0, -1, np.nan, np.inf, "tiny", True],
                "tol must be",
            ),
            (
                partial(v.check_count, "max_iter"),
                [1, np.int64(3)],
                [0, -1, 2.0, "many", True],
                "max_iter must be",
            ),
            (
                partial(v.check_choice, "criterion", choices=("squared", "worst")),
                ["worst", np.str_("worst")],
                ["best", None, 3],
                "criterion must be one of 'squared'",
            ),
        ],
    )
    def test_arguments(self, check, fine, bad, message):
        for value in fine:
            assert check(value) == value
            assert type(check(value)) in (float, int, str)  # all that certificates and files know
        for value in bad:
            with pytest.raises(InvalidArgumentError, match=message):
                check(value)


def test_callbacks_and_seeds():
    with pytest.raises(InvalidArgumentError, match="callback must be a function"):
        decorrelate(np.eye(2), callback=3)
    for seed in (None, 0, np.int64(3), np.random.default_rng(0), np.random.RandomState(0)):
        v.check_random_state(seed)
    for bad in (-1, "x", 1.5, True):
        with pytest.raises(InvalidArgumentError, match="random_state must be"):
            v.check_random_state(bad)
