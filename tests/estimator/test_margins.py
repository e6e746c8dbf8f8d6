"""Ranks and normal scores: floors hold exactly on the rows fitted, and new rows are mapped."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import norm, rankdata

from skcoral import CORAL
from skcoral.exceptions import InvalidArgumentError
from skcoral.margins import fit_margins
from skcoral.models import load_model, save_model
from skcoral.stability import holdout


def skewed(n=300, p=5, seed=0):
    rng = np.random.default_rng(seed)
    return np.exp(rng.normal(size=(n, p)) @ rng.normal(size=(p, p)))


def scores(X, kind):
    shares = (rankdata(X, axis=0) - 0.5) / len(X)
    return shares if kind == "ranks" else norm.ppf(shares)


TABLES = {
    "skewed": skewed(),
    "ties": np.round(skewed(seed=1)).clip(0, 4),
    "outliers": skewed(seed=2) ** 5,
    "large offset": 1e9 + np.round(skewed(seed=3), 3),
}


@pytest.mark.parametrize("kind", ["ranks", "normal"])
@pytest.mark.parametrize("name", TABLES)
def test_the_guarantee_holds_for_the_scores_of_the_rows_fitted(name, kind):
    X = TABLES[name]
    Z = scores(X, kind)
    for floor in (None, 0.8, 0.97):
        coral = CORAL(floor, margins=kind).fit(X)
        np.testing.assert_allclose(coral.correlation_, np.corrcoef(Z.T), atol=1e-12)
        Y = coral.transform(X)
        fidelity = np.diag(np.corrcoef(Z.T, Y.T)[:5, 5:])
        assert fidelity.min() >= (coral.threshold_.value if floor is None else floor) - 1e-9
        G = np.corrcoef(Y.T)
        residual = 0.5 * ((G - np.eye(5)) ** 2).sum()
        assert residual == pytest.approx(coral.result_.objective, abs=1e-9)
        assert coral.measured_.largest_correlation == pytest.approx(
            np.abs(G - np.eye(5)).max(), abs=1e-9
        )
        np.testing.assert_allclose(coral.inverse_transform(Y), X, rtol=1e-7, atol=1e-7)


@pytest.mark.parametrize("kind", ["ranks", "normal"])
def test_new_rows_follow_a_monotone_map(kind):
    X = skewed(50, 2)
    maps = fit_margins(kind, X)
    new = np.sort(np.r_[X[:, 0], X[:, 0] * 1.001, X[:, 0].max() * 9, -1.0])
    mapped = maps.transform(np.column_stack([new, np.full(len(new), X[0, 1])]))[:, 0]
    assert (np.diff(mapped) >= 0).all()
    lowest, highest = scores(X, kind)[:, 0].min(), scores(X, kind)[:, 0].max()
    assert mapped[0] == pytest.approx(lowest)
    assert mapped[-1] == pytest.approx(highest)
    # half-way between two values lies half-way between their scores
    a, b = np.sort(X[:, 0])[10:12]
    middle = maps.transform([[0.5 * (a + b), X[0, 1]]])[0, 0]
    ends = maps.transform([[a, X[0, 1]], [b, X[0, 1]]])[:, 0]
    assert middle == pytest.approx(ends.mean())
    assert maps.outside(np.array([[new[-1], X[0, 1]], [a, X[0, 1]]])) == 1


def test_monotone_changes_of_the_columns_change_nothing():
    X = skewed()
    plain = CORAL(0.9, margins="ranks").fit(X)
    other = CORAL(0.9, margins="ranks").fit(np.log(X) * [1, 2, 3, 4, 5])
    np.testing.assert_allclose(plain.T_, other.T_, atol=1e-12)
    np.testing.assert_allclose(
        plain.transform(X), other.transform(np.log(X) * [1, 2, 3, 4, 5]), atol=1e-12
    )


@pytest.mark.parametrize("kind", ["ranks", "normal"])
def test_original_units_and_single_precision(kind):
    X = skewed()
    coral = CORAL(0.9, margins=kind, output_scale="original").fit(X)
    Y = coral.transform(X)
    np.testing.assert_allclose(Y.mean(axis=0), X.mean(axis=0))
    np.testing.assert_allclose(Y.std(axis=0, ddof=1), X.std(axis=0, ddof=1))
    np.testing.assert_allclose(coral.inverse_transform(Y), X, rtol=1e-8)
    small = X.astype(np.float32)
    narrow = CORAL(0.9, margins=kind).fit(small)
    assert narrow.transform(small).dtype == np.float32
    fidelity = np.diag(np.corrcoef(scores(small, kind).T, narrow.transform(small).T)[:5, 5:])
    assert fidelity.min() >= 0.9 - 1e-6


def test_models_keep_the_maps_and_onnx_is_refused_with_a_message(tmp_path):
    pytest.importorskip("skl2onnx")
    from skcoral.models import to_onnx

    X, new = skewed(), skewed(40, seed=9)
    coral = CORAL(0.9, margins="normal").fit(X)
    save_model(coral, tmp_path / "m.json")
    again = load_model(tmp_path / "m.json")
    np.testing.assert_array_equal(again.transform(new), coral.transform(new))
    assert again.measured_.headline() == coral.measured_.headline()
    assert again.result_.summary() == coral.result_.summary()
    with pytest.raises(InvalidArgumentError, match=r"normal scores .*no ONNX form.*save_model"):
        to_onnx(coral)


def test_held_out_rows_are_measured_on_their_scores():
    X = skewed(400)
    report = holdout(CORAL(0.9, margins="ranks"), X)
    assert report.fidelity_fitted.min() >= 0.9 - 1e-9
    assert report.fidelity_new.mean() == pytest.approx(0.9, abs=0.05)
    assert np.all(report.criterion_raw > report.criterion_new)
