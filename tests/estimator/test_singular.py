"""Tables of deficient rank: totals, duplicates, one-hot blocks, fewer rows than columns."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pandas as pd
import pytest

from skcoral import CORAL
from skcoral.certificates import certificate_text, parse_certificate
from skcoral.core.lowrank import FactoredCorrelation, LowRankTransform
from skcoral.data.moments import Moments
from skcoral.data.wide import RowMoments
from skcoral.exceptions import InvalidTableError, LeastNormWarning, SingularCorrelationWarning

pytestmark = [
    pytest.mark.filterwarnings("ignore::skcoral.exceptions.SingularCorrelationWarning"),
    pytest.mark.filterwarnings("ignore::skcoral.exceptions.NotCertifiedWarning"),
]


def factor_rows(n, p, seed=0):
    rng = np.random.default_rng(seed)
    loadings = 0.5 * np.random.default_rng(99).normal(size=(5, p))
    return rng.normal(size=(n, 5)) @ loadings + rng.normal(size=(n, p))


def one_hot(n=60):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(n, 3)), columns=["x", "y", "z"])
    return pd.concat([frame, pd.get_dummies(pd.Series(np.arange(n) % 4), prefix="c")], axis=1)


def duplicated(n=40):
    frame = pd.DataFrame(factor_rows(n, 5), columns=list("abcde"))
    return frame.assign(again=-1000.0 * frame.a + 3.0)


TABLES = {
    "one-hot": one_hot(),
    "duplicated": duplicated(),
    "n = p": factor_rows(6, 6),
    "n = p + 1 with a total": np.column_stack(
        [factor_rows(7, 5), factor_rows(7, 5)[:, :2].sum(axis=1)]
    ),
    "wide": factor_rows(15, 60),
    "wide, badly scaled": 1e7 + factor_rows(15, 60) * np.logspace(-6, 6, 60),
    "two rows": factor_rows(2, 5),
    "three rows": factor_rows(3, 4),
    "integers": np.random.default_rng(0).poisson(5, size=(20, 50)),
    "float32": factor_rows(12, 30).astype(np.float32),
}


FLOORS = ((None, 0.9), (0.5, 1.0))


@pytest.mark.parametrize(
    ("kind", "rho_min"),
    [(kind, rho_min) for k, kind in enumerate(TABLES) for rho_min in FLOORS[k % 2]],
)
def test_the_guarantee_holds_on_the_rows_fitted(kind, rho_min):
    X = TABLES[kind]
    coral = CORAL(rho_min).fit(X)
    rows = np.asarray(X, dtype=np.float64)
    outputs = np.asarray(coral.transform(X), dtype=np.float64)
    p, loose = rows.shape[1], 1e-3 if kind in ("float32", "wide, badly scaled") else 1e-8
    np.testing.assert_allclose(outputs.std(axis=0, ddof=1), 1.0, rtol=loose)
    fidelity = [np.corrcoef(rows[:, j], outputs[:, j])[0, 1] for j in range(p)]
    assert min(fidelity) >= coral.result_.rho_min.min() - loose
    G = np.corrcoef(outputs.T)
    assert 0.5 * (np.sum(G**2) - p) == pytest.approx(coral.result_.objective, rel=loose, abs=loose)
    assert coral.score(X) == pytest.approx(-coral.result_.objective, rel=loose, abs=loose)
    Z = (rows - rows.mean(axis=0)) / rows.std(axis=0)
    rank = np.linalg.matrix_rank(Z - Z.mean(axis=0), tol=1e-6 * np.linalg.norm(Z, 2))
    assert coral.result_.rank == rank
    least = coral.result_.least_residual
    assert least == pytest.approx(p * (p - rank) / rank / 2)
    assert coral.result_.objective >= least * (1 - 1e-9)
    if rho_min is None:
        assert coral.result_.objective == pytest.approx(least, rel=1e-8)


@pytest.mark.parametrize("kind", ["one-hot", "n = p", "wide", "integers"])
@pytest.mark.parametrize("output_scale", ["unit", "original"])
def test_rows_come_back(kind, output_scale):
    X = np.asarray(TABLES[kind], dtype=np.float64)
    coral = CORAL(0.9, output_scale=output_scale).fit(X)
    back = coral.inverse_transform(coral.transform(X))
    np.testing.assert_allclose(back, X, atol=1e-7 * np.abs(X).max())
    new = np.asarray(factor_rows(7, X.shape[1], seed=5))
    np.testing.assert_allclose(coral.inverse_transform(coral.transform(new)), new, atol=1e-6)


def test_least_norm_where_outputs_do_not_determine_rows():
    coral = CORAL(0.5).fit(TABLES["wide"])
    left, p = coral.T_.left, 60
    flat = LowRankTransform(left, -np.linalg.pinv(left))  # takes the span of the rows to zero
    coral.T_ = flat
    units = np.random.default_rng(0).normal(size=(3, p))
    with pytest.warns(LeastNormWarning, match="least norm"):
        back = coral.inverse_transform(units)
    expected = units @ np.linalg.pinv(flat.toarray(), rcond=1e-10)
    np.testing.assert_allclose((back - coral.mean_) / coral.scale_, expected, atol=1e-8)


def test_wide_tables_have_no_square_matrix():
    n, p = 20, 1500
    X = factor_rows(n, p)
    tracemalloc.start()
    coral = CORAL(0.9).fit(X)
    coral.transform(X)
    file = parse_certificate(certificate_text(coral.result_, coral.correlation_))
    assert file.verify(coral.correlation_).passed
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8 * p * p  # less than one p × p array in all
    assert isinstance(coral.T_, LowRankTransform)
    assert isinstance(coral.correlation_, FactoredCorrelation)
    assert isinstance(coral.moments_, RowMoments)
    assert coral.result_.status == "optimal"
    sizes = [a.size for a in coral.certificate_.arrays.values()]
    assert max(sizes) <= n * p


def test_the_wide_and_the_square_route_agree():
    """With 2n ≥ p the matrix is formed; the same rows twice have the same correlations."""
    X = factor_rows(25, 60)
    wide, square = CORAL(0.95).fit(X), CORAL(0.95).fit(np.vstack([X, X]))
    assert isinstance(wide.T_, LowRankTransform)
    assert isinstance(square.T_, np.ndarray)
    assert wide.result_.objective == pytest.approx(square.result_.objective, rel=1e-7)
    np.testing.assert_allclose(wide.T_.toarray(), square.T_, atol=1e-4)
    np.testing.assert_allclose(
        wide.components_, wide.T_.toarray().T / wide.scale_[None, :], rtol=1e-12
    )


@pytest.mark.parametrize("weights", [None, "whole"])
def test_weights_of_few_rows(weights):
    X = factor_rows(12, 30)
    w = None if weights is None else np.random.default_rng(0).integers(0, 3, 12)
    coral = CORAL(0.9).fit(X, sample_weight=w)
    Z = coral.standardised(X) if w is None else np.repeat(coral.standardised(X), w, axis=0)
    outputs = Z @ coral.T_
    G = np.corrcoef(outputs.T)
    assert 0.5 * (np.sum(G**2) - 30) == pytest.approx(coral.result_.objective, rel=1e-8)
    if weights:
        repeated = CORAL(0.9).fit(np.repeat(X, w, axis=0))
        freedom = (w.sum() - w @ w / w.sum()) / (w.sum() - 1)  # weights do not count rows
        np.testing.assert_allclose(
            np.sqrt(freedom) * repeated.transform(X), coral.transform(X), atol=1e-4
        )


def test_the_warning_says_why_and_what_to_do():
    total = pd.DataFrame(factor_rows(50, 4), columns=list("abcd")).assign(total=lambda X: X.a + X.b)
    wide = pd.DataFrame(factor_rows(10, 30)).rename(columns=str)
    for X, words in (
        (TABLES["wide"], ["15 rows cannot determine 60 columns", "at least 61 rows"]),
        (total, ["`total` = `a` + `b`", "dropping `total`"]),
        (wide.assign(twin=2.0 * wide["3"]), ["`twin` = ", "`3`"]),
    ):
        with pytest.warns(SingularCorrelationWarning) as caught:
            CORAL(0.5).fit(X)
        assert all(word in str(caught[0].message) for word in words)
        assert caught[0].filename == __file__


def test_bad_tables_of_few_rows_are_refused():
    X = factor_rows(10, 40)
    flat = X.copy()
    flat[:, 3] = 7.0
    with pytest.raises(InvalidTableError, match=r"constant.*`x3`"):
        CORAL().fit(flat)
    with pytest.raises(InvalidTableError, match="NaN"):
        CORAL().fit(np.where(np.arange(40) == 3, np.nan, X))


def test_a_batch_after_a_wide_fit_goes_on_learning():
    X = factor_rows(80, 30)
    coral = CORAL(0.9).fit(X[:10])
    assert isinstance(coral.moments_, RowMoments)
    coral.partial_fit(X[10:])
    assert type(coral.moments_) is Moments
    np.testing.assert_allclose(coral.T_, CORAL(0.9).fit(X).T_, atol=1e-7)


def test_new_rows_keep_what_is_guaranteed_where_columns_are_many():
    """n = 100, p = 500, floor 0.9: what the choice of T is for."""
    X, new = factor_rows(100, 500), factor_rows(2000, 500, seed=7)
    coral = CORAL(0.9).fit(X)
    outputs, sources = coral.transform(new), new
    fidelity = [np.corrcoef(sources[:, j], outputs[:, j])[0, 1] for j in range(500)]
    assert min(fidelity) > 0.86
    off = ~np.eye(500, dtype=bool)
    before, after = (np.sqrt(np.mean(np.corrcoef(Y.T)[off] ** 2)) for Y in (sources, outputs))
    assert after < 0.7 * before
