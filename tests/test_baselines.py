"""Classical decorrelators against their definitions, and their assignment to variables."""

from itertools import permutations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import sqrtm

from skcoral import baselines
from skcoral.datasets import load_wine, make_system, wdi_correlation
from skcoral.exceptions import InvalidArgumentError, SingularCorrelationError
from systems import with_spectrum

SYSTEMS = ("p=6", "p=18", "p=50", "WDI", "Wine")


def system(name):
    if name == "WDI":
        return np.array(wdi_correlation().correlation)
    if name == "Wine":
        return np.corrcoef(load_wine().data.T)
    return make_system(int(name[2:]), seed=1)


def graded(p, least, *, seed):
    """Correlation matrix whose eigenvalues fall geometrically to ``least`` times the largest."""
    eigenvalues = np.geomspace(1, least, p)
    return with_spectrum(eigenvalues, seed=seed)


def all_of(R):
    scale = np.geomspace(1e-3, 1e4, len(R))
    return [
        baselines.pca(R),
        baselines.zca_cor(R),
        baselines.zca(R, scale=scale),
        baselines.cholesky(R),
    ]


@pytest.mark.parametrize("name", SYSTEMS)
def test_every_baseline_decorrelates_and_knows_its_fidelities(name):
    R = system(name)
    for baseline in all_of(R):
        T = baseline.T
        assert np.abs(T.T @ R @ T - np.eye(len(R))).max() < 1e-12
        assert np.diag(R @ T) == pytest.approx(baseline.fidelity, abs=1e-12)


@pytest.mark.parametrize("condition", [1e4, 1e8, 1e11])
def test_nearly_singular_systems(condition):
    R = graded(12, 1 / condition, seed=0)
    for baseline in all_of(R):
        high = baseline.T.astype(np.longdouble)
        defect = high.T @ R.astype(np.longdouble) @ high - np.eye(12)
        assert np.abs(defect).max() < 1e-8


def test_diagonal_matrix_gives_the_identity():
    for baseline in all_of(np.eye(4)):
        assert pytest.approx(np.eye(4), abs=1e-14) == baseline.T
        assert baseline.fidelity == pytest.approx(np.ones(4), abs=1e-14)


def test_pca_columns_are_the_eigenvectors():
    R = system("Wine")
    baseline = baselines.pca(R)
    eigenvalues = (R @ baseline.T)[0] / baseline.T[0]
    np.testing.assert_allclose(R @ baseline.T, baseline.T * eigenvalues, atol=1e-10)
    assert np.sort(eigenvalues) == pytest.approx(np.linalg.eigvalsh(R))


def test_zca_against_the_matrix_square_root():
    R = system("Wine")
    sd = load_wine().data.std(axis=0, ddof=1)
    C = R * np.outer(sd, sd)
    root = sqrtm(C).real
    zca = baselines.zca(R, scale=sd)
    assert zca.fidelity == pytest.approx(np.diag(root) / sd, abs=1e-8)
    assert pytest.approx(sd[:, None] * np.linalg.inv(root), rel=1e-6, abs=1e-8) == zca.T
    assert pytest.approx(np.linalg.inv(sqrtm(R).real), abs=1e-10) == baselines.zca_cor(R).T


@pytest.mark.parametrize("ratio", [1e3, 1e8, 1e14])
def test_zca_in_units_far_apart(ratio):
    r = 0.6
    det = ratio * np.sqrt(1 - r**2)
    common = np.sqrt(1 + ratio**2 + 2 * det)
    wanted = np.array([(1 + det) / common, (ratio**2 + det) / (ratio * common)])
    R = [[1, r], [r, 1]]
    assert baselines.zca(R, scale=[1, ratio]).fidelity == pytest.approx(wanted, abs=1e-14)
    assert baselines.zca(R, scale=[ratio, 1]).fidelity == pytest.approx(wanted[::-1], abs=1e-14)


def test_zca_does_not_depend_on_a_common_unit():
    R = system("WDI")
    sd = np.geomspace(1, 50, 8)
    one, other = baselines.zca(R, scale=sd), baselines.zca(R, scale=1e200 * sd)
    assert pytest.approx(other.T, rel=1e-12) == one.T
    assert (
        pytest.approx(baselines.zca_cor(R).T, abs=1e-13)
        == baselines.zca(R, scale=np.full(8, 7.0)).T
    )


def test_zca_cor_has_the_largest_mean_of_all():
    R = system("WDI")
    best = baselines.zca_cor(R).mean_fidelity
    assert all(other.mean_fidelity <= best + 1e-12 for other in all_of(R))
    rng = np.random.default_rng(0)
    L = np.linalg.cholesky(R)
    for _ in range(200):
        Q = np.linalg.qr(rng.normal(size=R.shape))[0]
        assert np.trace(L @ Q) / len(R) < best


def test_cholesky_is_successive_regression():
    Z = np.random.default_rng(2).normal(size=(50, 4)) @ np.random.default_rng(3).normal(size=(4, 4))
    Z = (Z - Z.mean(axis=0)) / Z.std(axis=0, ddof=1)
    outputs = Z @ baselines.cholesky(np.corrcoef(Z.T)).T
    for j in range(4):
        left = Z[:, j]
        if j:
            left = left - Z[:, :j] @ np.linalg.lstsq(Z[:, :j], left, rcond=None)[0]
        assert outputs[:, j] == pytest.approx(left / left.std(ddof=1), abs=1e-10)


@settings(deadline=None, max_examples=60)
@given(p=st.integers(1, 6), levels=st.integers(1, 40), seed=st.integers(0, 10**6))
def test_assignments_against_all_permutations(p, levels, seed):
    # Few levels: ties, also between the bottleneck assignments themselves.
    M = np.random.default_rng(seed).integers(0, levels + 1, size=(p, p)) / levels
    rows = np.arange(p)
    matched = [M[rows, list(columns)] for columns in permutations(range(p))]
    least = max(values.min() for values in matched)
    bottleneck = M[rows, baselines.bottleneck_assignment(M)]
    assert bottleneck.min() == least
    wanted = max(values.sum() for values in matched if values.min() == least)
    assert bottleneck.sum() == pytest.approx(wanted)


def test_assignments_with_many_ties_come_to_an_end():
    large = np.random.default_rng(0).integers(0, 4, size=(120, 120)) / 3
    assert large[np.arange(120), baselines.bottleneck_assignment(large)].min() == 1.0


def test_signs_and_order_of_outputs_do_not_matter():
    R = system("WDI")
    rng = np.random.default_rng(4)
    T = baselines.pca(R).T
    shuffled = T[:, rng.permutation(8)] * rng.choice([-1.0, 1.0], 8)
    again = baselines.match_to_sources(R, shuffled)
    assert pytest.approx(T, abs=1e-14) == again.T
    assert (again.fidelity > 0).all()


@pytest.mark.parametrize("scale", [[1, 2], [1, 2, 0], [1, 2, -1], [1, 2, np.nan]], ids=str)
def test_scales_must_be_standard_deviations(scale):
    with pytest.raises(InvalidArgumentError, match="3 standard deviations"):
        baselines.zca(np.eye(3), scale=scale)


@pytest.mark.parametrize("baseline", [baselines.pca, baselines.zca_cor, baselines.cholesky])
def test_the_names_of_a_frame_are_used_in_messages(baseline):
    R = pd.DataFrame(np.ones((2, 2)), ["hue", "ash"], ["hue", "ash"])
    with pytest.raises(SingularCorrelationError, match="`ash` = `hue`"):
        baseline(R)


def test_sparse_components_have_unit_variance_and_belong_to_their_variable():
    R = make_system(6)
    sparse = baselines.sparse_pca(R, alpha=5.0)
    np.testing.assert_allclose(np.diag(sparse.T.T @ R @ sparse.T), 1, atol=1e-12)
    np.testing.assert_allclose(sparse.fidelity, np.diag(R @ sparse.T), atol=1e-12)
    assert (sparse.fidelity >= 0).all()
    assert (sparse.T == 0).any()
    # a huge penalty gives back the variables
    np.testing.assert_array_equal(baselines.sparse_pca(R, alpha=30.0).T, np.eye(6))
