"""Rows that come and go: moments against sums from scratch, and their rounding."""

import numpy as np
import pytest

from skcoral import CORAL
from skcoral.exceptions import InvalidArgumentError, InvalidTableError
from skcoral.moments import Moments
from skcoral.panels.window_moments import REFRESH, window_moments


def rows(n=700, p=4, seed=0):
    rng = np.random.default_rng(seed)
    return rng.standard_t(3, size=(n, p)) * 10.0 ** np.arange(-3, p - 3) + 1e4


def from_scratch(X, halflife):
    """Mean and co-moment in extended precision."""
    q = 1.0 if halflife is None else 0.5 ** (1.0 / halflife)
    w = np.longdouble(q) ** np.arange(len(X) - 1, -1, -1)
    mean = (w @ X.astype(np.longdouble)) / w.sum()
    centred = X - mean
    return mean, (centred * w[:, None]).T @ centred, float(w.sum()), float((w * w).sum())


@pytest.mark.parametrize("halflife", [None, 9.0, 0.7])
@pytest.mark.parametrize("disturb", ["nothing", "outlier", "drift", "jump", "regime"])
def test_rounding_stays_below_the_stated_bound(halflife, disturb):
    X = rows()
    if disturb == "outlier":
        X[200] *= 1e5  # its squares are 1e10 times those of the rows that stay
    elif disturb == "drift":
        X += np.linspace(0, 1e6, len(X))[:, None]
    elif disturb == "jump":
        X[350:] += 1e6
    elif disturb == "regime":
        X[350:] = 1e4 + (X[350:] - 1e4) * 1e-4
    starts = np.arange(0, len(X) - 40)
    assert len(starts) > 5 * REFRESH
    found = window_moments(X, starts, starts + 40, halflife)
    worst = 0.0
    for k in range(0, len(starts), 3):
        mean, comoment, weight, squares = from_scratch(X[k : k + 40], halflife)
        size = np.sqrt(np.diag(comoment))
        worst = max(
            worst, float(np.abs((found.comoment[k] - comoment) / np.outer(size, size)).max())
        )
        assert np.allclose(found.mean[k], mean.astype(float), rtol=1e-14)
        assert found.weight[k] == pytest.approx(weight, rel=1e-14)
        assert found.squared_weight[k] == pytest.approx(squares, rel=1e-14)
    assert worst < 2e-14


def test_windows_of_any_length_and_step():
    X = rows(n=120)
    starts, ends = np.array([0, 0, 5, 5, 60, 61]), np.array([10, 30, 31, 50, 90, 120])
    found = window_moments(X, starts, ends, None)
    for k, (start, end) in enumerate(zip(starts, ends, strict=True)):
        assert np.allclose(
            found.comoment[k] / (end - start - 1), np.cov(X[start:end].T), rtol=1e-10
        )
        assert np.allclose(found.scale[k], X[start:end].std(axis=0, ddof=1), rtol=1e-12)
        assert np.allclose(found.correlation()[k], np.corrcoef(X[start:end].T), atol=1e-12)


def test_moments_without_some_rows_and_faded():
    X = rows(n=60)
    part = Moments.from_rows(X).remove(X[:20])
    assert part.n_rows == 40
    assert np.allclose(part.covariance, np.cov(X[20:].T), rtol=1e-9)
    assert np.allclose(part.mean, X[20:].mean(axis=0), rtol=1e-14)
    weights = np.random.default_rng(0).uniform(0.5, 2.0, 60)
    part = Moments.from_rows(X, sample_weight=weights).remove(X[:5], sample_weight=weights[:5])
    whole = Moments.from_rows(X[5:], sample_weight=weights[5:])
    assert np.allclose(part.covariance, whole.covariance, rtol=1e-9)
    with pytest.raises(InvalidTableError, match="at least one has to stay"):
        Moments.from_rows(X).remove(X)
    with pytest.raises(InvalidTableError, match="not among those added"):
        Moments.from_rows(X[:10]).remove(X[:3] + 1e9)
    faded = Moments.from_rows(X[:30]).forget(0.25).update(X[30:])
    weighted = Moments.from_rows(X, sample_weight=np.r_[np.full(30, 0.25), np.ones(30)])
    assert np.allclose(faded.covariance, weighted.covariance, rtol=1e-12)
    assert faded.weight == weighted.weight
    assert not faded.weights_count_rows
    with pytest.raises(InvalidTableError, match="factor"):
        faded.forget(0.0)


def test_halflife_of_batches_is_that_of_all_rows():
    X = rows(n=90)
    weights = 0.5 ** (np.arange(89, -1, -1) / 20.0)
    wanted = CORAL(rho_min=0.95).fit(X, sample_weight=weights)
    whole = CORAL(rho_min=0.95, halflife=20.0).fit(X)
    parts = CORAL(rho_min=0.95, halflife=20.0)
    for start, end in ((0, 1), (1, 50), (50, 90)):
        parts.partial_fit(X[start:end])
    for model in (whole, parts, CORAL(rho_min=0.95, halflife=20.0).fit(iter([X[:40], X[40:]]))):
        assert np.allclose(model.T_, wanted.T_, atol=1e-9)
        assert np.allclose(model.scale_, wanted.scale_, rtol=1e-12)
    plain = CORAL(rho_min=0.95).fit(X)
    assert not np.allclose(plain.T_, wanted.T_, atol=1e-3)
    old = CORAL(rho_min=0.95, halflife=0.5).fit(np.vstack([1e3 * rows(300, seed=1), X]))
    again = CORAL(rho_min=0.95, halflife=0.5).fit(X)
    assert np.allclose(old.T_, again.T_, atol=1e-8)  # what is old enough counts nothing
    with pytest.raises(InvalidArgumentError, match="halflife"):
        CORAL(halflife=-1.0).fit(X)
    with pytest.raises(InvalidArgumentError, match="count none"):
        CORAL(halflife=5.0, weight_kind="frequency").fit(X)
