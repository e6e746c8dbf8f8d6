"""Choosing a floor: figures of usual floors, and a recommendation that is true."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn import datasets

from skcoral import CORAL, decorrelate
from skcoral.choosing import compare_floors, floors_within
from skcoral.data.correlation import estimate
from skcoral.data.moments import Moments
from skcoral.exceptions import InvalidArgumentError


def vif_of(G):
    return np.diag(np.linalg.inv(G))


def largest(G):
    return np.abs(G - np.diag(np.diag(G))).max()


def test_comparison_is_what_each_floor_gives(wine):
    R = wine.to_frame().corr()
    compared = compare_floors(R, (0.5, 0.9, 0.97))
    assert [c.rho_min for c in compared.choices] == [None, 0.9, 0.94, 0.97]  # 0.5 is below ρ★
    assert largest(R.to_numpy()) == pytest.approx(compared.largest_correlation_before)
    assert vif_of(R).max() == pytest.approx(compared.largest_vif_before)
    for choice in compared.choices:
        G = decorrelate(R, choice.rho_min).correlation
        assert choice.largest_correlation == pytest.approx(largest(G), abs=1e-5)
        assert choice.largest_vif == pytest.approx(vif_of(G).max(), abs=1e-5)
        assert choice.min_fidelity >= choice.floor - 1e-9
    assert compared.to_frame()["floor"].tolist() == [c.floor for c in compared.choices]
    assert "certified" not in compared.sentence()
    doubtful = replace(compared, recommended=replace(compared.recommended, status="best_found"))
    assert "this floor is not certified" in doubtful.sentence()


@pytest.mark.parametrize("floors", [[-0.1], [np.nan], ["high"], None, [[0.9]]])
def test_floors_to_compare_are_checked(floors):
    with pytest.raises(InvalidArgumentError):
        compare_floors(np.eye(3), floors)


def macro_series(seed, n=80, p=7):
    """Trends of different steepness with random walks around them, as levels of an economy have."""
    rng = np.random.default_rng(seed)
    t = np.arange(n)[:, None]
    walks = np.cumsum(rng.normal(size=(n, p)), axis=0)
    return np.exp(0.02 * t * rng.uniform(0.2, 1.0, size=p)) + 0.02 * walks


def random_rows(seed):
    """Factors and noise of random strength."""
    rng = np.random.default_rng(seed)
    n, p, k = int(rng.integers(30, 200)), int(rng.integers(2, 12)), int(rng.integers(1, 4))
    strength = rng.uniform(0.0, 3.0)
    return rng.normal(size=(n, p)) + strength * rng.normal(size=(n, k)) @ rng.normal(size=(k, p))


def check_sentence(compared, R):
    """Every figure of the sentence against an answer that is solved for here."""
    best, text = compared.recommended, compared.sentence()
    p = len(R)
    singular = np.linalg.matrix_rank(R, tol=1e-9) < p
    assert ("infinite" in text) == singular

    def figures(rho_min):
        G = decorrelate(R, rho_min).correlation
        return largest(G), np.inf if singular else vif_of(G).max()

    if best is None:
        assert text.startswith("No floor is recommended")
        assert figures(None)[0] > 0.5
        return
    r, vif = figures(best.rho_min)
    assert r == pytest.approx(best.largest_correlation, abs=1e-6)
    assert r <= 0.5
    assert best.rho_min == round(best.rho_min, 3)
    if not singular:
        assert vif == pytest.approx(best.largest_vif, rel=1e-6)
        assert vif <= 2
    if compared.above is None:
        assert best.rho_min == 1.0
        assert text.startswith("No two variables correlate by more than 0.5")
        return
    assert f"floor {best.rho_min:g}. The largest correlation left is {r:.2f}" in text
    r, vif = figures(best.rho_min + 0.001)
    assert (r > 0.5 - 1e-6) == (f"At {best.rho_min + 0.001:g} a correlation exceeds 0.5" in text)
    assert (2 - 1e-5 < vif < np.inf) == ("a VIF exceeds 2" in text)
    assert ("become other variables" in text) == (best.min_fidelity < 0.7)
    if compared.floor_without is not None:
        left = [name not in compared.leave_out for name in map(str, R.columns)]
        rest = compare_floors(R.loc[left, left])
        assert rest.recommended.rho_min == compared.floor_without >= 0.7
        assert all(name in text for name in compared.leave_out[:5])


def named_correlations(X):
    X = pd.DataFrame(X, columns=[f"v{j}" for j in range(np.shape(X)[1])])
    return X.corr()


KNOWN = ["iris", "breast_cancer"]


@pytest.mark.parametrize("table", [*range(12), *KNOWN])
def test_the_recommendation_is_true(table):
    if table in KNOWN:
        R = getattr(datasets, f"load_{table}")(as_frame=True).data.corr()
    else:
        R = named_correlations(random_rows(table))
    compared = compare_floors(R)
    check_sentence(compared, R)
    assert compared.recommended is not None


@pytest.mark.parametrize("seed", range(4))
def test_the_recommendation_of_macroeconomic_series_is_true(seed):
    R = named_correlations(macro_series(seed))
    compared = compare_floors(R)
    check_sentence(compared, R)
    # by another route: each limit alone, solved for, keeps at least as much
    limits = floors_within(R)
    assert min(limits.values()) >= compared.recommended.rho_min
    for (name, floor), limit in zip(limits.items(), (0.5, 2.0), strict=True):
        assert CORAL(**{name: limit}).fit(macro_series(seed)).floors_[0] == pytest.approx(floor)


@pytest.mark.filterwarnings("ignore::skcoral.exceptions.NotCertifiedWarning")
@pytest.mark.filterwarnings("ignore::skcoral.exceptions.SingularCorrelationWarning")
def test_columns_that_others_determine_are_named_where_outputs_become_other_variables():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(60, 3))
    # nine directions in three dimensions cannot all be far from each other
    X = np.hstack([X, X @ rng.normal(size=(3, 6))])
    R = named_correlations(X)
    compared = compare_floors(R)
    check_sentence(compared, R)
    assert compared.recommended is None or compared.recommended.rho_min < 0.7
    assert len(compared.leave_out) == 6
    assert compared.floor_without >= 0.7


@pytest.mark.filterwarnings("ignore::skcoral.exceptions.NotCertifiedWarning")
@pytest.mark.filterwarnings("ignore::skcoral.exceptions.SingularCorrelationWarning")
@pytest.mark.parametrize("kind", ["total", "copies", "few rows"])
def test_dependent_columns_are_judged_by_their_correlations(kind):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(50, 3)) + 0.5 * rng.normal(size=(50, 1))
    more = {
        "total": X.sum(axis=1, keepdims=True),
        "copies": X[:, [0, 0, 0]],
        "few rows": rng.normal(size=(50, 1)),
    }
    X = np.hstack([X, more[kind]])
    X = X[:4] if kind == "few rows" else X
    R = named_correlations(X)
    compared = compare_floors(estimate(Moments.from_rows(X), on_singular="solve"))
    assert all(c.largest_vif == np.inf for c in compared.choices)
    assert compared.largest_vif_before == np.inf
    check_sentence(compared, R)
    text = compared.sentence()
    few = kind == "few rows"
    assert ("there are no more rows than columns" in text) == few
    assert ("some columns are determined by others" in text) != few


def test_a_floor_that_leaves_correlation_is_not_called_the_threshold():
    rows = np.random.default_rng(0).normal(size=(40, 3))
    free = compare_floors(np.corrcoef(rows.T)).choices[0]
    assert (free.label, free.rho_min) == ("ρ★", None)
    assert free.largest_correlation < 1e-8
    bound = compare_floors(np.corrcoef(np.column_stack([rows, rows.sum(axis=1)]).T))
    assert bound.choices[0].label == "lowest"
    assert bound.choices[0].largest_correlation > 0.1
    assert "(ρ★)" not in bound._repr_html_()
