"""Choosing a floor: limits that people think in, the table of usual floors, the grid of a curve."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn import datasets

import conic
from skcoral import CORAL, decorrelate, maximize_fidelity
from skcoral.bounds.vif import proved_floor
from skcoral.choosing import compare_floors, floors_within
from skcoral.data.correlation import estimate
from skcoral.data.moments import Moments


def vif_of(G):
    return np.diag(np.linalg.inv(G))


def largest(G):
    return np.abs(G - np.diag(np.diag(G))).max()


@pytest.mark.parametrize("seed", range(4))
def test_the_bound_on_the_floor_holds_whatever_the_multipliers(seed):
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(6, 3))
    S = A @ A.T + np.diag(rng.uniform(0.2, 1.0, 6))
    R = S / np.sqrt(np.outer(np.diag(S), np.diag(S)))
    best = conic.highest_floor(R, 1.7)
    answer = maximize_fidelity(R, 1.7, criterion="vif")
    found = answer.certificate.arrays
    assert best - 1e-6 <= proved_floor(R, answer.T, found, 1.7) <= best + 2e-6
    for size in np.geomspace(1e-6, 1, 20):
        roots = found["vif_roots"] * (1 + size * rng.normal(size=6))
        Y = found["vif_vectors"] + size * rng.normal(size=(6, 6))
        H = np.diag(np.diag(found["vif_H"]) + size * rng.uniform(size=6)) - Y @ Y.T
        H = H + size * np.eye(6) * max(0.0, -np.linalg.eigvalsh(H)[0] / size + 1)
        weights = rng.uniform(size=6)
        parts = {"vif_weights": weights, "vif_H": 0.5 * (H + H.T)}
        parts |= {"vif_roots": roots, "vif_vectors": Y}
        assert best - 1e-6 <= proved_floor(R, answer.T, parts, 1.7) < np.inf


def test_comparison_is_what_each_floor_gives(wine):
    R = wine.to_frame().corr()
    found = compare_floors(R, (0.5, 0.9, 0.97))
    assert [c.rho_min for c in found.choices] == [None, 0.9, 0.94, 0.97]  # 0.5 is below ρ★
    assert largest(R.to_numpy()) == pytest.approx(found.largest_correlation_before)
    assert vif_of(R).max() == pytest.approx(found.largest_vif_before)
    for choice in found.choices:
        G = decorrelate(R, choice.rho_min).correlation
        assert choice.largest_correlation == pytest.approx(largest(G), abs=1e-5)
        assert choice.largest_vif == pytest.approx(vif_of(G).max(), abs=1e-5)
        assert choice.min_fidelity >= choice.floor - 1e-9
    assert found.to_frame()["floor"].tolist() == [c.floor for c in found.choices]


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


def check_sentence(found, R):
    """Every figure of the sentence against an answer that is solved for here."""
    best, said = found.recommended, found.sentence()
    p = len(R)
    singular = np.linalg.matrix_rank(R, tol=1e-9) < p
    assert ("infinite" in said) == singular

    def figures(rho_min):
        G = decorrelate(R, rho_min).correlation
        return largest(G), np.inf if singular else vif_of(G).max()

    if best is None:
        assert said.startswith("No floor is recommended")
        assert figures(None)[0] > 0.5
        return
    r, vif = figures(best.rho_min)
    assert r == pytest.approx(best.largest_correlation, abs=1e-6)
    assert r <= 0.5
    assert best.rho_min == round(best.rho_min, 3)
    if not singular:
        assert vif == pytest.approx(best.largest_vif, rel=1e-6)
        assert vif <= 2
    if found.above is None:
        assert best.rho_min == 1.0
        assert said.startswith("No two variables correlate by more than 0.5")
        return
    assert f"floor {best.rho_min:g}. The largest correlation left is {r:.2f}" in said
    r, vif = figures(best.rho_min + 0.001)
    assert (r > 0.5 - 1e-6) == (f"At {best.rho_min + 0.001:g} a correlation exceeds 0.5" in said)
    assert (2 - 1e-5 < vif < np.inf) == ("a VIF exceeds 2" in said)
    assert ("become other variables" in said) == (best.min_fidelity < 0.7)
    if found.floor_without is not None:
        kept = [name not in found.leave_out for name in map(str, R.columns)]
        rest = compare_floors(R.loc[kept, kept])
        assert rest.recommended.rho_min == found.floor_without >= 0.7
        assert all(name in said for name in found.leave_out[:5])


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
    found = compare_floors(R)
    check_sentence(found, R)
    assert found.recommended is not None


@pytest.mark.parametrize("seed", range(4))
def test_the_recommendation_of_macroeconomic_series_is_true(seed):
    R = named_correlations(macro_series(seed))
    found = compare_floors(R)
    check_sentence(found, R)
    # by another route: each limit alone, solved for, keeps at least as much
    limits = floors_within(R)
    assert min(limits.values()) >= found.recommended.rho_min
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
    found = compare_floors(R)
    check_sentence(found, R)
    assert found.recommended is None or found.recommended.rho_min < 0.7
    assert len(found.leave_out) == 6
    assert found.floor_without >= 0.7


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
    found = compare_floors(estimate(Moments.from_rows(X), on_singular="solve"))
    assert all(c.largest_vif == np.inf for c in found.choices)
    assert found.largest_vif_before == np.inf
    check_sentence(found, R)
    told = found.sentence()
    few = kind == "few rows"
    assert ("there are no more rows than columns" in told) == few
    assert ("some columns are determined by others" in told) != few


def test_a_floor_that_leaves_correlation_is_not_called_the_threshold():
    rows = np.random.default_rng(0).normal(size=(40, 3))
    free = compare_floors(np.corrcoef(rows.T)).choices[0]
    assert (free.label, free.rho_min) == ("ρ★", None)
    assert free.largest_correlation < 1e-8
    bound = compare_floors(np.corrcoef(np.column_stack([rows, rows.sum(axis=1)]).T))
    assert bound.choices[0].label == "lowest"
    assert bound.choices[0].largest_correlation > 0.1
    assert "(ρ★)" not in bound._repr_html_()
