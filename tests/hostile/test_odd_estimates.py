"""Matrices and portfolios that invite wrong numbers or bare tracebacks."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest

from skcoral import CORAL, decorrelate
from skcoral.choosing import compare_floors
from skcoral.exceptions import (
    InvalidArgumentError,
    InvalidCorrelationError,
    RoundingWarning,
)
from skcoral.panels import effective_bets
from skcoral.stability import confident_floors


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    rng = np.random.default_rng(3)
    rows = rng.normal(size=(60, 3)) @ [[1, 0.8, 0.3], [0, 1, 0.5], [0, 0, 1]]
    return pd.DataFrame(rows, columns=list("abc"))


def test_a_matrix_with_two_different_halves_is_refused(table):
    with pytest.raises(InvalidCorrelationError, match="symmetric"):
        CORAL(covariance=lambda Z: np.triu(np.full((3, 3), 0.5)) + 0.5 * np.eye(3)).fit(table)


@pytest.mark.parametrize("setting", [{"max_vif": 1.5}, {"max_correlation": 0.1}, {"budget": 0.1}])
def test_confidence_refuses_what_chooses_floors_itself(table, setting):
    with pytest.raises(InvalidArgumentError, match=next(iter(setting))):
        confident_floors(CORAL(0.5, **setting), table)


@pytest.mark.parametrize("floors", [[-0.1], [np.nan], ["high"], None, [[0.9]]])
def test_floors_to_compare_are_checked_alike(table, floors):
    with pytest.raises((InvalidArgumentError, InvalidArgumentError)):
        compare_floors(table.corr(), floors)


def test_rounding_is_reported_without_other_warnings(table):
    near = table.assign(d=table["a"] + 1e-5 * table["b"] ** 2)
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        CORAL().fit(near)
    assert {w.category for w in seen} == {RoundingWarning}


def test_bets_take_arrays_and_frames_as_they_are(table):
    T, covariance = np.triu(np.ones((3, 3))), table.cov()
    b = np.array([1.0, 2.0, 3.0])
    wanted = np.linalg.solve(T, np.sqrt(np.diag(covariance)) * b)
    for given in (T, pd.DataFrame(T), T.tolist()):
        bets = effective_bets(covariance, b, given)
        np.testing.assert_allclose(bets.exposures, wanted, rtol=1e-12)
        np.testing.assert_allclose(bets.contributions.sum(), b @ covariance @ b, rtol=1e-12)


def test_bets_refuse_a_transformation_of_other_factors(table):
    covariance, swapped = table.cov(), table[["c", "b", "a"]]
    model = CORAL(rho_min=0.8).fit(swapped)
    for T in (model, model.result_, decorrelate(swapped.corr(), 0.8)):
        with pytest.raises(InvalidArgumentError, match="same order"):
            effective_bets(covariance, [1, 2, 3], T)
    assert effective_bets(covariance, [1, 2, 3], CORAL(rho_min=0.8).fit(table)).effective > 1
    with pytest.raises(InvalidArgumentError, match="finite"):
        effective_bets(covariance, [1, 2, 3], np.full((3, 3), np.nan))
    with pytest.raises(InvalidArgumentError, match="overflows"):
        effective_bets(covariance, [1e200] * 3)
