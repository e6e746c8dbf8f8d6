"""The analytic bounds of the paper, against naive versions and its printed figures."""

from itertools import combinations

import numpy as np
import pytest
from scipy.linalg import sqrtm

from skcoral.datasets import load_wine, make_system, wdi_correlation
from skcoral.exceptions import InvalidArgumentError, InvalidCorrelationError
from skcoral.solvers.exact.bounds import subset_bound, trace_bound, zca_bound
from systems import with_spectrum


def graded(p, least, *, seed):
    """Correlation matrix whose eigenvalues fall geometrically to ``least`` times the largest."""
    eigenvalues = np.geomspace(1, least, p)
    return with_spectrum(eigenvalues, seed=seed)


def naive_subset_bound(R):
    """Nuclear norm of the columns S of R^{1/2}, as the paper states it."""
    root = sqrtm(R).real
    p = len(R)
    return min(
        (np.linalg.norm(root[:, S], "nuc") / size, S)
        for size in range(1, p + 1)
        for S in map(list, combinations(range(p), size))
    )


@pytest.mark.parametrize("p", [2, 3, 10, 60])
@pytest.mark.parametrize("r", [0.1, 0.9, 0.999])
def test_equicorrelation(p, r):
    R = np.full((p, p), r) + (1 - r) * np.eye(p)
    wanted = (np.sqrt(1 + (p - 1) * r) + (p - 1) * np.sqrt(1 - r)) / p
    assert zca_bound(R) == pytest.approx(wanted, abs=1e-12)
    assert trace_bound(R) == pytest.approx(wanted, abs=1e-12)
    # Fewer variables of an equicorrelated set are easier to keep, so all of them bound best.
    assert subset_bound(R, max_exhaustive=10).value == pytest.approx(wanted, abs=1e-12)
    assert len(subset_bound(R, max_exhaustive=10).subset) == p


@pytest.mark.parametrize("seed", range(4))
def test_against_the_definition(seed):
    R = graded(7, 1e-4, seed=seed)
    root = sqrtm(R).real
    assert zca_bound(R) == pytest.approx(np.diag(root).min(), abs=1e-10)
    assert trace_bound(R) == pytest.approx(np.trace(root) / 7, abs=1e-10)
    value, subset = naive_subset_bound(R)
    bound = subset_bound(R)
    assert bound.value == pytest.approx(value, abs=1e-10)
    assert list(bound.subset) == subset
    assert (bound.method, bound.n_subsets) == ("exhaustive", 127)


@pytest.mark.parametrize(
    ("data", "subset", "value", "zca"),
    [
        (
            load_wine(),
            {"total_phenols", "flavanoids", "od280/od315_of_diluted_wines"},
            "0.835487",
            "0.7107",
        ),
        (
            wdi_correlation(),
            {"fertility", "internet_use", "life_expectancy", "under5_mortality"},
            "0.757853",
            "0.6706",
        ),
    ],
    ids=["wine", "wdi"],
)
def test_real_tables_in_the_paper(data, subset, value, zca):
    bound = subset_bound(data.correlation)
    assert f"{bound.value:.6f}" == value
    assert {data.names[j] for j in bound.subset} == subset
    assert bound.method == "exhaustive"
    assert f"{zca_bound(data.correlation):.4f}" == zca


@pytest.mark.parametrize(
    ("p", "zca", "trace"),
    [(6, "0.9565", "0.975660"), (18, "0.9365", "0.961614"), (50, "0.9215", "0.950352")],
)
def test_simulated_systems_in_the_paper(p, zca, trace):
    assert f"{zca_bound(make_system(p)):.4f}" == zca
    assert f"{trace_bound(make_system(p)):.6f}" == trace


def test_the_heuristic_is_a_valid_bound_and_usually_the_best():
    found = 0
    for seed in range(30):
        R = graded(9, 1e-3, seed=seed)
        best, quick = subset_bound(R), subset_bound(R, max_exhaustive=0)
        S = np.ix_(quick.subset, quick.subset)
        assert quick.value == pytest.approx(np.trace(sqrtm(R[S]).real) / len(quick.subset))
        assert best.value - 1e-12 <= quick.value <= trace_bound(R) + 1e-12
        assert quick.n_subsets < best.n_subsets
        found += quick.value < best.value + 1e-12
    assert found >= 24


def test_wide_systems_stay_affordable():
    R = make_system(300)
    bound = subset_bound(R)
    assert bound.method == "heuristic"
    assert bound.n_subsets == 300
    assert zca_bound(R) < bound.value <= trace_bound(R)


def test_bad_input():
    with pytest.raises(InvalidCorrelationError):
        subset_bound(np.cov(np.random.default_rng(0).normal(size=(3, 20))))
    with pytest.raises(InvalidArgumentError, match="max_exhaustive"):
        subset_bound(np.eye(2), max_exhaustive=-1)
