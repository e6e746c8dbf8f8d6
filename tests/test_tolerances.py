"""Tolerances outside the certificates, tested at their size: input, files, caches."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from skcoral import CORAL, decorrelate, maximize_fidelity
from skcoral._validation import check_anchors, check_correlation, check_pair_weights
from skcoral.datasets import load_wine, make_system
from skcoral.exceptions import (
    InvalidAnchorError,
    InvalidArgumentError,
    InvalidCorrelationError,
    SingularCorrelationError,
)
from skcoral.models import load_model, save_model
from skcoral.moments import Moments
from skcoral.support import exactness
from skcoral.words import is_certified, status

R = make_system(6)
NAMES = [f"x{j}" for j in range(6)]


def nudged(i: int, j: int, step: float) -> np.ndarray:
    out = R.copy()
    out[i, j] += step
    return out


@pytest.mark.parametrize("place", [(0, 1), (2, 2)])
def test_symmetry_and_unit_diagonal(place: tuple[int, int]) -> None:
    check_correlation(nudged(*place, 0.5e-8))
    with pytest.raises(InvalidCorrelationError):
        check_correlation(nudged(*place, 5e-8))


def test_correlations_beyond_one() -> None:
    for step, refused in ((5e-8, True), (0.2e-8, False)):
        two = np.array([[1.0, 1 + step], [1 + step, 1.0]])
        with pytest.raises(InvalidCorrelationError) as found:
            check_correlation(two)
        assert ("lie in" in str(found.value)) == refused


def test_a_matrix_that_counts_as_singular() -> None:
    for least, singular in ((5e-13, True), (5e-12, False)):
        two = np.array([[1.0, 1 - least], [1 - least, 1.0]])  # eigenvalues 2 - ε and ε
        two[0, 1] = two[1, 0] = 1 - 2 * least
        if singular:
            with pytest.raises(SingularCorrelationError):
                check_correlation(two)
        else:
            check_correlation(two)


def test_anchors_that_count_as_dependent() -> None:
    def pair(step: float) -> np.ndarray:
        B = np.ones((6, 2))
        B[0, 1] += step
        return B

    _, size, _ = np.linalg.svd(pair(1e-4) / np.linalg.norm(pair(1e-4), axis=0))
    unit = 1e-4 * size[0] / size[1]  # the step that makes the ratio of singular values one
    check_anchors(pair(5e-10 * unit), 6, NAMES)
    with pytest.raises(InvalidAnchorError):
        check_anchors(pair(0.5e-10 * unit), 6, NAMES)


def test_pair_weights_are_symmetric() -> None:
    W = np.ones((6, 6))
    W[0, 1] += 0.5e-8
    check_pair_weights(W, 6, NAMES)
    W[0, 1] += 5e-8
    with pytest.raises(InvalidArgumentError):
        check_pair_weights(W, 6, NAMES)


@pytest.mark.parametrize("criterion", ["squared", "worst", "absolute"])
@pytest.mark.parametrize("budget", [1e-3, 0.05, 0.2])
def test_a_budget_is_kept_by_what_T_leaves(criterion: str, budget: float) -> None:
    answer = maximize_fidelity(R, budget, criterion=criterion)
    off = np.abs((answer.T.T @ R @ answer.T)[np.triu_indices(6, 1)])
    left = {"squared": (off**2).sum(), "worst": off.max(), "absolute": off.sum()}[criterion]
    assert left <= budget + 1e-9
    # and is used: a floor a little higher does not fit any more
    more = decorrelate(R, np.minimum(answer.rho_min + 1e-5, 1.0), criterion=criterion)
    assert more.lower_bound > budget


@pytest.mark.parametrize("floor", [0.3, 0.95, 0.99, 0.999999])
def test_floors_and_variances_are_met_to_rounding(floor: float) -> None:
    for result in (decorrelate(R, floor), decorrelate(R, floor, criterion="worst")):
        assert np.all(np.diag(R @ result.T) >= floor - 2e-15)
        assert np.abs(np.einsum("ij,ij->j", result.T, R @ result.T) - 1).max() <= 1e-14


def test_supports_that_carry_an_exact_transformation_are_never_called_impossible() -> None:
    """R is made from T, so T itself is the proof; only its digits are rounded away."""
    rng = np.random.default_rng(0)
    for _ in range(40):
        p = int(rng.integers(4, 8))
        mask = (rng.random((p, p)) < 0.45) | np.eye(p, dtype=bool)
        T = np.where(mask, rng.normal(size=(p, p)), 0.0) + 2 * np.eye(p)
        S = np.linalg.inv(T @ T.T)
        scale = np.sqrt(np.diag(S))
        C = S / np.outer(scale, scale)
        C = 0.5 * (C + C.T)
        np.fill_diagonal(C, 1.0)
        assert exactness(C, mask).verdict != "impossible"


def test_a_model_is_replaced_and_not_written_over(tmp_path: Path) -> None:
    """Whoever has the old file open goes on reading the old file."""
    X = load_wine().data
    path, other = tmp_path / "model.json", tmp_path / "the same file"
    save_model(CORAL(rho_min=0.5).fit(X), path)
    os.link(path, other)
    save_model(CORAL(rho_min=0.9).fit(X), path)
    assert load_model(other).rho_min == 0.5
    assert load_model(path).rho_min == 0.9


def test_the_moments_of_the_caller_are_unchanged() -> None:
    X = load_wine().data
    moments = Moments.from_rows(X[:100])
    before = {name: np.array(value) for name, value in moments.state().items()}
    model = CORAL(rho_min=0.5).fit_moments(moments)
    model.partial_fit(X[100:])
    assert model.n_samples_seen_ == len(X)
    for name, value in moments.state().items():
        np.testing.assert_array_equal(np.array(value), before[name])


def test_every_setting_of_the_matrix_is_in_the_key_of_the_app() -> None:
    """Two questions with different answers are never remembered under one key."""
    pytest.importorskip("streamlit")
    from skcoral.app.problem import pose
    from skcoral.app.settings import Settings
    from skcoral.app.sources import example

    source, plain = example("wine"), Settings()
    others = [
        replace(plain, shrinkage="0.25"),
        replace(plain, shrinkage="auto"),
        replace(plain, margins="ranks"),
        replace(plain, margins="normal"),
        replace(plain, without=(source.names[0],)),
        replace(plain, weights=source.names[0]),
    ]
    problems = [pose(source, settings) for settings in (plain, *others)]
    assert len({problem.key for problem in problems}) == len(problems)


def test_the_highest_floor_within_a_limit_on_the_vif() -> None:
    """Called optimal if its bound is no more than 1e-6 above it."""
    answer = maximize_fidelity(R, 1.1, criterion="vif")
    for above, certified in ((5e-6, False), (0.5e-6, True)):
        details = {**answer.details, "rho_upper": float(answer.rho_min[0]) + above}
        moved = replace(answer, details=details)
        assert is_certified(moved) == certified
        assert status(moved) == ("optimal within the limit" if certified else "best found")
