"""Wine against an independent computation; the shipped matrix against published figures."""

import dataclasses

import numpy as np
import pytest
from sklearn.datasets import load_wine as sklearn_wine

from skcoral.datasets import load_wine, wdi_correlation


def test_wine_table_and_correlation():
    wine = load_wine()
    bundled = sklearn_wine()
    assert np.array_equal(wine.data, bundled.data)
    assert wine.names == tuple(bundled.feature_names)
    assert np.allclose(wine.correlation, np.corrcoef(bundled.data, rowvar=False), atol=1e-14)
    assert np.array_equal(np.diag(wine.correlation), np.ones(13))
    assert np.array_equal(wine.correlation, wine.correlation.T)


def test_records_are_frozen():
    for record in (load_wine(), wdi_correlation()):
        with pytest.raises(ValueError, match="read-only"):
            record.correlation[0, 1] = 0.0
        with pytest.raises(dataclasses.FrozenInstanceError):
            record.names = ()


def test_frames_carry_the_names():
    pytest.importorskip("pandas")
    wine, wdi = load_wine(), wdi_correlation()
    assert list(wine.to_frame().columns) == list(wine.names)
    frame = wdi.to_frame()
    assert frame.loc["life_expectancy", "under5_mortality"] == wdi.correlation[5, 6]


def test_wdi_matrix_has_the_published_figures():
    wdi = wdi_correlation()
    R = np.asarray(wdi)
    assert R.shape == (8, 8)
    assert np.array_equal(R, R.T)
    off = np.abs(R[np.triu_indices(8, 1)])
    assert off.max() == pytest.approx(0.905617, abs=5e-7)
    assert off.mean() == pytest.approx(0.433850, abs=5e-7)
    values, vectors = np.linalg.eigh(R)
    root = (vectors * np.sqrt(values)) @ vectors.T
    assert np.diag(root).min() == pytest.approx(0.670579, abs=5e-7)
    assert wdi.n_rows == 137
    assert "World Bank" in wdi.source
    assert "CC BY 4.0" in wdi.licence


def test_np_asarray_copies_only_when_asked():
    wdi = wdi_correlation()
    copy = np.array(wdi)
    copy[0, 1] = 0.0
    assert wdi.correlation[0, 1] != 0.0
    assert np.asarray(wdi, dtype=np.float32).dtype == np.float32
