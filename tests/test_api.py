"""The public functions: names kept, input validated, the same answer for every container."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import skcoral
from skcoral import decorrelate, frontier, maximize_fidelity, threshold
from skcoral.certificates import check
from skcoral.datasets import load_wine, make_system
from skcoral.exceptions import (
    CoralError,
    InvalidAnchorError,
    InvalidArgumentError,
    InvalidBudgetError,
    InvalidCorrelationError,
    InvalidFloorError,
    SingularCorrelationError,
)

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
    ("matrix", "words"),
    [
        (np.ones((2, 3)), "square"),
        (np.ones(3), "square"),
        ([[1, 0.5], [0.4, 1]], "symmetric"),
        ([[1, np.nan], [np.nan, 1]], "finite"),
        ([[1, np.inf], [np.inf, 1]], "finite"),
        ([[4, 1], [1, 9]], r"covariance.*numpy\.outer"),
        ([[1, 1.5], [1.5, 1]], r"\[-1, 1\]"),
        ([[1, 0.9, -0.9], [0.9, 1, 0.9], [-0.9, 0.9, 1]], "not positive definite"),
        ([["a", "b"], ["b", "a"]], "numbers"),
        ([[1, 0.5], [0.5]], "ragged|regular"),
        ([[1, 1j], [-1j, 1]], "real"),
        (np.ones((0, 0)), "square"),
    ],
    ids=str,
)
def test_bad_matrices_are_refused(ask, matrix: object, words: str) -> None:
    with pytest.raises(InvalidCorrelationError, match=words) as caught:
        ask(matrix)
    assert isinstance(caught.value, ValueError)


def test_dependent_columns_are_named() -> None:
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(50, 2)), columns=["a", "b"])
    table["total"] = table["a"] + table["b"]
    table["other"] = rng.normal(size=50)
    with pytest.raises(SingularCorrelationError) as caught:
        threshold(table.corr(), on_singular="raise")
    assert set(caught.value.variables) == {"a", "b", "total"}
    assert "other" not in " ".join(caught.value.relations)


def test_messages_use_the_names() -> None:
    bad = NAMED.copy()
    bad.loc["hue", "ash"] = 0.9
    with pytest.raises(InvalidCorrelationError, match="hue"):
        threshold(bad)
    floors = dict.fromkeys(WINE.names, 0.5) | {"hue": 1.2}
    with pytest.raises(InvalidFloorError, match="hue"):
        decorrelate(NAMED, floors)


@pytest.mark.parametrize(
    "floors",
    [-0.1, 1.1, np.nan, [0.5, 0.5], np.full((13, 13), 0.5), "high", {"nothing": 0.5}, [None] * 13],
    ids=str,
)
def test_bad_floors_are_refused(floors: object) -> None:
    with pytest.raises(InvalidFloorError):
        decorrelate(NAMED, floors)


@pytest.mark.parametrize("budget", [-1, np.nan, np.inf, "much", None])
def test_bad_budgets_are_refused(budget: object) -> None:
    with pytest.raises(InvalidBudgetError):
        maximize_fidelity(R, budget)


@pytest.mark.parametrize(
    "arguments",
    [
        {"criterion": "cubed"},
        {"criterion": None},
        {"tol": 0},
        {"tol": "small"},
        {"max_iter": 0},
        {"max_iter": 1.5},
        {"pair_weights": -np.ones((13, 13))},
        {"pair_weights": np.ones((2, 2))},
        {"pair_weights": NAMED.iloc[:, :5]},
        {"support": np.eye(13, dtype=bool), "pair_weights": np.ones((13, 13))},
        {"bounds": 3},
        {"bounds": (np.zeros((2, 2)), np.ones((2, 2)))},
        {"bounds": (np.full((13, 13), np.nan), np.ones((13, 13)))},
    ],
    ids=lambda a: ",".join(a),
)
def test_odd_arguments_are_refused(arguments: dict[str, object]) -> None:
    with pytest.raises(InvalidArgumentError):
        decorrelate(R, 0.9, **arguments)


@pytest.mark.parametrize("n_points", [1, 2.0, True, 10_001, 10**400])
def test_numbers_of_points_are_limited_before_the_work(n_points: object) -> None:
    with pytest.raises(InvalidArgumentError, match="n_points must be a whole number of at"):
        frontier(R, n_points=n_points)


@pytest.mark.parametrize(
    "anchors", [np.ones((13, 14)), np.ones((13, 2)), np.zeros((13, 1)), np.eye(3), "x"], ids=str
)
def test_bad_anchors_are_refused(anchors: object) -> None:
    with pytest.raises(InvalidAnchorError):
        decorrelate(R, 0.9, anchors=anchors)


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


def test_float32_input_is_taken_for_what_it_is() -> None:
    assert threshold(R.astype(np.float32)).value == pytest.approx(threshold(R).value, abs=1e-5)


def test_reordered_rows_are_not_guessed() -> None:
    with pytest.raises(InvalidCorrelationError, match="same names"):
        threshold(NAMED.iloc[::-1])


def test_floors_by_name_series_and_sequence_agree() -> None:
    floors = np.zeros(13)
    floors[WINE.names.index("hue")] = 0.97
    floors[WINE.names.index("flavanoids")] = 0.99
    by_name = {"flavanoids": 0.99, "hue": 0.97}
    answers = [decorrelate(NAMED, f) for f in (floors, by_name, pd.Series(by_name))]
    assert all(np.array_equal(a.T, answers[0].T) for a in answers)


def test_a_series_with_the_default_index_goes_by_position() -> None:
    R = load_wine().to_frame().corr()
    floors = np.linspace(0.3, 0.8, 13)
    by_position = decorrelate(R, pd.Series(floors))
    assert np.array_equal(by_position.T, decorrelate(R, floors).T)


def test_a_series_that_names_a_variable_twice() -> None:
    R = load_wine().to_frame().corr()
    with pytest.raises(InvalidFloorError, match="repeated: `hue`"):
        decorrelate(R, pd.Series([0.5, 0.9], ["hue", "hue"]))


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
        for twin in (pickle.loads(pickle.dumps(result)), copy.deepcopy(result)):
            assert np.array_equal(twin.T, result.T)
            assert check(twin, R).passed
        assert len(repr(result).splitlines()) < 25


def test_anchoring_to_the_variables_themselves_changes_nothing() -> None:
    plain = decorrelate(NAMED, 0.9)
    anchored = decorrelate(NAMED, 0.9, anchors=np.eye(13))
    assert anchored.objective == pytest.approx(plain.objective, rel=1e-9)
    assert np.abs(anchored.T - plain.T).max() < 1e-7


def test_composites_are_decorrelated_and_kept() -> None:
    B = pd.DataFrame(0.0, index=list(WINE.names), columns=["phenolic", "colour", "size"])
    B.loc[["total_phenols", "flavanoids", "proanthocyanins"], "phenolic"] = 1.0
    B.loc[["color_intensity", "hue"], "colour"] = [1.0, -1.0]
    B.loc[["alcohol", "proline"], "size"] = 1.0
    answer = decorrelate(NAMED, 0.97, anchors=B.iloc[::-1])
    assert answer.names == ("phenolic", "colour", "size")
    unit = B.to_numpy() / np.sqrt(np.diag(B.to_numpy().T @ R @ B.to_numpy()))
    assert np.all(np.diag(unit.T @ R @ answer.T) >= 0.97 - 1e-9)
    assert np.abs(answer.T.T @ R @ answer.T - answer.correlation).max() < 1e-10
    verdict = check(answer, R)
    assert verdict.passed, verdict.problems


def test_public_names() -> None:
    for name in skcoral.__all__:
        assert getattr(skcoral, name) is not None
    assert set(skcoral.__all__) <= set(dir(skcoral))
    with pytest.raises(AttributeError):
        _ = skcoral.nothing


@st.composite
def correlation_matrices(draw: st.DrawFn) -> np.ndarray:
    p = draw(st.integers(2, 8))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    decades = draw(st.floats(0, 7))
    Q, _ = np.linalg.qr(rng.normal(size=(p, p)))
    C = (Q * 10 ** rng.uniform(-decades, 0, p)) @ Q.T
    scale = 1 / np.sqrt(np.diag(C))
    C = C * np.outer(scale, scale)
    C = (C + C.T) / 2
    np.fill_diagonal(C, 1)
    return C


@settings(max_examples=60, deadline=None, derandomize=True)
@given(correlation_matrices(), st.floats(0, 1), st.sampled_from(["squared", "worst", "absolute"]))
def test_every_answer_passes_its_own_check(
    matrix: np.ndarray, floor: float, criterion: str
) -> None:
    if np.linalg.cond(matrix) > 1e8:
        return
    th = threshold(matrix)
    assert th.status == "optimal"
    assert th.lower <= th.upper + 1e-14
    answer = decorrelate(matrix, floor, criterion=criterion)
    # a floor that is missed by no more than 1e-10 counts as met
    assert answer.status == ("exact" if floor <= th.upper + 1e-10 else "optimal")
    assert answer.min_fidelity >= floor - 1e-9
    verdict = check(answer, matrix)
    assert verdict.passed, verdict.problems


def test_every_error_is_one_of_ours() -> None:
    assert issubclass(InvalidFloorError, CoralError)
    assert issubclass(SingularCorrelationError, InvalidCorrelationError)
    with pytest.raises(CoralError):
        decorrelate(make_system(4), 2)


@pytest.mark.parametrize(
    "again", [copy.copy, copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))]
)
@pytest.mark.parametrize("result", [threshold(R), decorrelate(R, 0.9)], ids=["threshold", "answer"])
def test_copies_are_as_frozen_as_the_original(result, again) -> None:
    twin = again(result)
    assert not twin.T.flags.writeable
    mapping = twin.bounds if hasattr(twin, "bounds") else twin.certificate.arrays
    with pytest.raises(TypeError):
        mapping["new"] = 1


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
    with pytest.raises(InvalidAnchorError, match=r"rows of anchors.*unknown: `z0`"):
        decorrelate(NAMED, 0.99, anchors=B.set_axis([f"z{k}" for k in range(13)]))


@pytest.mark.parametrize("size", [1e-200, 1e200])
def test_the_scale_of_a_composite_does_not_matter(size) -> None:
    B = np.eye(13)[:, :3] + 0.1
    plain, scaled = decorrelate(R, 0.97, anchors=B), decorrelate(R, 0.97, anchors=size * B)
    assert np.allclose(plain.T, scaled.T, rtol=0, atol=1e-9)


def test_bounds_that_are_no_numbers() -> None:
    with pytest.raises(InvalidArgumentError, match="lower bounds must contain only numbers"):
        decorrelate(R, 0.9, bounds=("a", "b"))
