"""Rows in batches and rows with weights give what the whole table gives."""

import numpy as np
import pytest
import sklearn
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

from skcoral import CORAL
from skcoral.data.moments import Moments
from skcoral.exceptions import InvalidArgumentError, InvalidTableError


@pytest.mark.parametrize("batch", [1, 17, 178])
def test_partial_fit_is_fit(wine, batch):
    coral = CORAL(0.7)
    for start in range(0, len(wine), batch):
        coral.partial_fit(wine.iloc[start : start + batch])
    full = CORAL(0.7).fit(wine)
    np.testing.assert_allclose(coral.T_, full.T_, atol=1e-10)
    np.testing.assert_allclose(coral.transform(wine), full.transform(wine), atol=1e-9)
    assert coral.n_samples_seen_ == 178


class Source:
    """What gives batches need not be an iterator itself."""

    def __init__(self, *tables):
        self.tables = tables

    def __iter__(self):
        return iter(self.tables)


def test_iterators_of_batches(wine):
    counts = np.random.default_rng(0).integers(0, 3, size=178)
    expected, weighted = CORAL().fit(wine), CORAL().fit(wine, sample_weight=counts)
    empty = wine[:0]
    for batches, wanted in (
        ((wine.iloc[i : i + 50] for i in range(0, 178, 50)), expected),
        (iter([empty, wine[:100], empty, wine[100:]]), expected),
        (Source(wine[:60], wine[60:]), expected),
        (((wine[i : i + 50], counts[i : i + 50]) for i in range(0, 178, 50)), weighted),
    ):
        coral = CORAL().fit(batches)
        np.testing.assert_allclose(coral.T_, wanted.T_, atol=1e-10)
        assert coral.n_samples_seen_ == wanted.n_samples_seen_
    for nothing in ([], [empty]):
        with pytest.raises(InvalidTableError, match="no batch"):
            CORAL().fit(iter(nothing))
    with pytest.raises(InvalidArgumentError, match="pairs"):
        CORAL().fit(iter([wine]), sample_weight=counts)


def test_too_few_rows_so_far(wine):
    coral = CORAL(on_singular="raise").partial_fit(wine[:5])
    with pytest.raises(InvalidTableError, match="5 rows"):
        coral.transform(wine)
    coral.partial_fit(wine[5:])
    assert coral.transform(wine).shape == wine.shape


def test_batches_at_fault_are_located(wine):
    spoiled = wine.copy()
    spoiled.loc[130, "hue"] = np.nan
    batches = (spoiled[i : i + 50] for i in range(0, 178, 50))
    with pytest.raises(InvalidTableError, match=r"Batch 3.* row 100 .*`hue`, first in row 30"):
        CORAL().fit(batches)
    with pytest.raises(InvalidTableError, match=r"Batch 1.*tuple of 3"):
        CORAL().fit(iter([(wine, None, None)]))


def test_settings_changed_before_the_solution_is_asked_for(wine):
    coral = CORAL().partial_fit(wine).set_params(covariance="OAS")
    with pytest.raises(InvalidArgumentError, match="all rows are needed at once"):
        coral.transform(wine)
    coral.set_params(covariance=None, output_scale="big")
    with pytest.raises(InvalidArgumentError, match="output_scale"):
        coral.transform(wine)
    coral.set_params(output_scale="original")
    np.testing.assert_allclose(coral.transform(wine).mean(axis=0), wine.mean(), rtol=1e-12)


def test_fit_moments_of_two_sites(wine):
    names = list(wine.columns)
    sites = [Moments.from_rows(part, names=names) for part in (wine[:60], wine[60:])]
    coral = CORAL(0.7).fit_moments(sites[0].merge(sites[1]))
    np.testing.assert_allclose(coral.T_, CORAL(0.7).fit(wine).T_, atol=1e-10)
    assert list(coral.feature_names_in_) == names
    full = Moments.from_rows(wine)
    coral = CORAL(0.7).fit_moments(full)
    before = {name: np.array(value) for name, value in full.state().items()}
    coral.partial_fit(wine[:5])
    assert coral.n_samples_seen_ == len(wine) + 5
    for name, value in full.state().items():  # those of the caller are unchanged
        np.testing.assert_array_equal(np.array(value), before[name])
    full.update(wine[:7])
    assert coral.moments_.n_rows == len(wine) + 5


@pytest.mark.parametrize("settings", [{"covariance": "OAS"}, {"rho_min": 0.5, "confidence": 0.9}])
def test_settings_that_need_all_rows_at_once(wine, settings):
    coral = CORAL(**settings)
    assert not hasattr(coral, "partial_fit")
    with pytest.raises(InvalidArgumentError, match="all rows are needed at once"):
        coral.fit(iter([wine]))
    with pytest.raises(InvalidArgumentError, match="all rows are needed at once"):
        coral.fit_moments(Moments.from_rows(wine))


def test_correlations_with_weights_are_those_of_repeated_rows(wine):
    counts = np.random.default_rng(0).integers(0, 4, size=178)
    weighted = CORAL(0.6).fit(wine, sample_weight=counts)
    repeated = CORAL(0.6).fit(wine.loc[np.repeat(wine.index, counts)])
    np.testing.assert_allclose(weighted.T_, repeated.T_, atol=1e-8)
    freedom = (counts.sum() - counts @ counts / counts.sum()) / (counts.sum() - 1)
    outputs = np.sqrt(freedom) * repeated.transform(wine)
    np.testing.assert_allclose(weighted.transform(wine), outputs, atol=1e-7)
    assert weighted.score(wine, sample_weight=counts) == pytest.approx(
        repeated.score(wine.loc[np.repeat(wine.index, counts)]), abs=1e-9
    )


def test_metadata_routing(wine):
    weights = np.random.default_rng(0).integers(0, 4, size=178)
    with sklearn.config_context(enable_metadata_routing=True):
        coral = CORAL(0.6).set_fit_request(sample_weight=True)
        scaler = StandardScaler().set_fit_request(sample_weight=False)
        pipeline = Pipeline([("coral", coral), ("scale", scaler)])
        pipeline.fit(wine, sample_weight=weights)
    expected = CORAL(0.6).fit(wine, sample_weight=weights)
    np.testing.assert_allclose(pipeline["coral"].T_, expected.T_, atol=1e-12)
