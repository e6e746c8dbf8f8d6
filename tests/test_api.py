"""The public functions: names kept, input validated, the same answer for every container."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest

import problems
from skcoral import decorrelate, frontier, maximize_fidelity, threshold
from skcoral.certificates import check
from skcoral.datasets import load_wine, make_system
from skcoral.exceptions import InvalidArgumentError, InvalidCorrelationError

WINE = load_wine()
R = np.asarray(WINE.correlation)
NAMED = pd.DataFrame(R, index=list(WINE.names), columns=list(WINE.names))

QUESTIONS = {
    "threshold": threshold,
    "decorrelate": lambda M: decorrelate(M, 0.5),
    "maximize_fidelity": lambda M: maximize_fidelity(M, 0.1),
    "frontier": lambda M: frontier(M, rho_min=[0.5]),
}


@pytest.mark.parametrize("ask", QUESTIONS.values(), ids=QUESTIONS)
@pytest.mark.parametrize(
    ("matrix", "message"),
    [
        (np.ones((2, 3)), "square"),
        ([[4, 1], [1, 9]], r"covariance.*numpy\.outer"),
        ([[1, 0.9, -0.9], [0.9, 1, 0.9], [-0.9, 0.9, 1]], "not positive definite"),
    ],
    ids=str,
)
def test_bad_matrices_are_refused(ask, matrix: object, message: str) -> None:
    with pytest.raises(InvalidCorrelationError, match=message) as caught:
        ask(matrix)
    assert isinstance(caught.value, ValueError)


def test_messages_use_the_names() -> None:
    bad = NAMED.copy()
    bad.loc["hue", "ash"] = 0.9
    with pytest.raises(InvalidCorrelationError, match="hue"):
        threshold(bad)
    floors = dict.fromkeys(WINE.names, 0.5) | {"hue": 1.2}
    with pytest.raises(InvalidArgumentError, match="hue"):
        decorrelate(NAMED, floors)


ONES = np.ones((13, 13))


@pytest.mark.parametrize(
    "arguments",
    [
        {"rho_min": 1.1},
        {"rho_min": {"nothing": 0.5}},
        {"rho_min": pd.Series([0.5, 0.9], ["hue", "hue"])},
        {"anchors": np.ones((13, 2))},
        {"anchors": "x"},
        {"criterion": "cubed"},
        {"tol": 0},
        {"max_iter": 1.5},
        {"n_starts": 0},  # also where no starts are needed
        {"random_state": "a"},
        {"pair_weights": -ONES},
        {"pair_weights": NAMED.iloc[:, :5]},
        {"support": np.eye(13, dtype=bool), "pair_weights": ONES},
        {"bounds": 3},
        {"bounds": (np.zeros((2, 2)), np.ones((2, 2)))},
        {"bounds": (np.nan * ONES, ONES)},
        {"bounds": ("a", "b")},
    ],
    ids=str,
)
def test_odd_arguments_are_refused(arguments: dict[str, object]) -> None:
    with pytest.raises(InvalidArgumentError):
        decorrelate(NAMED, **{"rho_min": 0.9, **arguments})


def test_with_a_support_the_answer_is_no_worse_than_the_one_to_begin_with() -> None:
    R = make_system(18)
    support = np.abs(R) > 0.15
    best = decorrelate(R, 0.5, support=support, n_starts=200)
    cold, warm = (decorrelate(R, 0.3, support=support, n_starts=1, warm=w) for w in (None, best))
    assert warm.objective <= best.objective * (1 + 1e-9) < cold.objective
    with pytest.raises(InvalidArgumentError, match=r"18 outputs of 18 .*\(4, 4\)"):
        decorrelate(R, 0.3, support=support, warm=decorrelate(R[:4, :4], 0.9))


def test_budgets_and_numbers_of_points_are_checked_before_the_work() -> None:
    with pytest.raises(InvalidArgumentError):
        maximize_fidelity(R, -1)
    for n_points in (1, 2.0, True, 10_001, 10**400):
        with pytest.raises(InvalidArgumentError, match="n_points"):
            frontier(R, n_points=n_points)


def test_frames_arrays_and_lists_agree() -> None:
    plain = decorrelate(R, 0.9)
    for other in (
        R.tolist(),
        NAMED,
        pl.DataFrame(R, schema=list(WINE.names)),
        np.asfortranarray(R),
    ):
        assert np.array_equal(decorrelate(other, 0.9).T, plain.T)
    assert decorrelate(NAMED, 0.9).names == tuple(WINE.names)
    assert threshold(NAMED).to_frame().index.tolist() == list(WINE.names)


def test_floors_by_name_series_and_sequence_agree() -> None:
    floors = np.zeros(13)
    floors[WINE.names.index("hue")] = 0.97
    floors[WINE.names.index("flavanoids")] = 0.99
    by_name = {"flavanoids": 0.99, "hue": 0.97}
    expected = decorrelate(NAMED, floors).T
    for same in (by_name, pd.Series(by_name), pd.Series(floors)):  # the last goes by position
        assert np.array_equal(decorrelate(NAMED, same).T, expected)


def test_the_input_is_not_changed() -> None:
    matrix, floors = R.copy(), np.full(13, 0.9)
    decorrelate(matrix, floors)
    threshold(matrix)
    assert np.array_equal(matrix, R)
    assert np.all(floors == 0.9)


def test_results_are_frozen_and_travel() -> None:
    for result in (threshold(NAMED), decorrelate(NAMED, 0.9)):
        with pytest.raises((AttributeError, TypeError)):
            result.T = np.eye(13)
        with pytest.raises(ValueError, match="read-only"):
            result.T[0, 0] = 1
        for again in (copy.copy, copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))):
            twin = again(result)
            assert np.array_equal(twin.T, result.T)
            assert not twin.T.flags.writeable
            assert check(twin, R).passed
            with pytest.raises(TypeError):
                twin.certificate.arrays["new"] = 1
        assert len(repr(result).splitlines()) < 25


@pytest.mark.parametrize("family", problems.REGULAR)
def test_answers_are_exact_up_to_the_threshold_and_no_further(family) -> None:
    rng = np.random.default_rng(1)
    for p in (3, 7):
        matrix = family(rng, p)
        th = threshold(matrix)
        assert th.status == "optimal"
        for floor in (0.0, *rng.uniform(size=3), th.lower - 1e-9, th.upper + 1e-9, 1.0):
            if 0 <= floor <= 1:
                expected = "exact" if floor <= th.lower else "optimal"
                assert decorrelate(matrix, floor).status == expected


def test_results_can_be_compared_and_kept_in_sets() -> None:
    one, two = decorrelate(R, 0.9), decorrelate(R, 0.9)
    assert one == one
    assert one != two
    assert len({one, two, threshold(R), frontier(R, [0.9])}) == 4


def test_composites_are_matched_by_the_names_of_their_rows() -> None:
    B = pd.DataFrame(0.0, index=NAMED.index, columns=["first", "second"])
    B.loc["alcohol", "first"] = B.loc["hue", "second"] = 1.0
    expected = decorrelate(NAMED, 0.99, anchors=B)
    shuffled = decorrelate(NAMED, 0.99, anchors=B.iloc[::-1])
    assert np.allclose(shuffled.T, expected.T, rtol=0, atol=1e-12)
    by_number = pd.DataFrame(R)
    numbered = B.set_axis(range(13)).iloc[::-1]
    assert np.allclose(decorrelate(by_number, 0.99, anchors=numbered).T, expected.T, atol=1e-12)
    with pytest.raises(InvalidArgumentError, match=r"rows of anchors.*unknown: `z0`"):
        decorrelate(NAMED, 0.99, anchors=B.set_axis([f"z{k}" for k in range(13)]))


@pytest.mark.parametrize("size", [1e-200, 1.0, 1e200])
def test_variables_on_any_scale_as_composites_change_nothing(size: float) -> None:
    plain, anchored = decorrelate(R, 0.9), decorrelate(R, 0.9, anchors=size * np.eye(13))
    assert anchored.objective == pytest.approx(plain.objective, rel=1e-9)
    assert np.abs(anchored.T - plain.T).max() < 1e-7


@pytest.mark.parametrize("floor", [0.3, 0.95, 0.99, 0.999999])
def test_floors_and_variances_are_met_to_rounding(floor: float) -> None:
    R = make_system(6)
    for result in (decorrelate(R, floor), decorrelate(R, floor, criterion="worst")):
        assert np.all(np.diag(R @ result.T) >= floor - 2e-15)
        assert np.abs(np.einsum("ij,ij->j", result.T, R @ result.T) - 1).max() <= 1e-14
