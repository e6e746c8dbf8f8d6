"""``measured_`` agrees with the outputs; weights of any scale are handled."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from judge import figures
from skcoral import CORAL, decorrelate
from skcoral.data.effects import measure_rows
from skcoral.data.moments import Moments
from skcoral.data.wide import RowMoments


def rows(n=250, p=4, seed=3):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, p)) @ rng.normal(size=(p, p)) + 100.0


WEIGHTS = {
    "none": None,
    "shares": np.full(250, 1 / 250),
    "a little more": np.full(250, 1.01 / 250),
    "tiny": np.full(250, 1e-80),
    "huge": np.full(250, 1e80),
    "survey": np.random.default_rng(0).gamma(2.0, size=250) / 250,
    "counts": np.random.default_rng(0).integers(0, 4, size=250),
}


@pytest.mark.parametrize("name", WEIGHTS)
def test_weights_of_any_size_give_sensible_outputs(name):
    X, w = rows(), WEIGHTS[name]
    coral = CORAL(0.9).fit(X, sample_weight=w)
    Y = coral.transform(X)
    assert 0.5 < Y.std(axis=0, ddof=1).min() <= Y.std(axis=0, ddof=1).max() < 2.0
    scale = np.sqrt(np.diag(np.cov(X.T, aweights=w)))
    np.testing.assert_allclose(coral.scale_, scale, rtol=1e-9)
    measured = coral.measured_.to_dict()
    sources = coral.standardised(X)
    for figure, value in figures(sources, Y, w).items():
        assert measured[figure] == pytest.approx(value, rel=1e-7, abs=1e-9), figure
    assert measured["min_fidelity"] >= 0.9 - 1e-9  # the floor holds for what is measured
    assert measured["weighted"] == (name in ("survey", "counts"))
    assert ("weighted correlation" in coral.measured_.headline()) == measured["weighted"]
    if name in ("shares", "a little more", "tiny", "huge"):
        plain = CORAL(0.9).fit(X)
        np.testing.assert_allclose(coral.T_, plain.T_, atol=1e-8)


def test_summary_is_about_rows_or_of_the_matrix():
    X = pd.DataFrame(rows(), columns=list("abcd"))
    fitted = CORAL(0.9).fit(X).result_.summary().splitlines()
    assert fitted[0].endswith("250 of 250 rows used.")
    assert fitted[1].startswith("Certified for these 250 rows: ")
    matrix = decorrelate(X.corr(), 0.9).summary().splitlines()
    assert fitted[0].startswith(matrix[0].rstrip("."))
    assert matrix[1].startswith("Certified for the matrix given: ")
    shrunk = CORAL(0.9, covariance="LedoitWolf").fit(X).result_.summary().splitlines()
    assert shrunk[1].startswith("Certified for the correlation matrix that LedoitWolf")
    assert shrunk[1].endswith("Nothing is certified for the plain rows.")


def test_few_rows_are_measured_without_a_matrix_of_all_pairs(monkeypatch):
    from skcoral.core import linalg

    X = rows(60, 8)
    coral, few = CORAL(0.9).fit(X), X[[3, 17, 20]]
    monkeypatch.setattr(linalg, "_CHUNK", 3)
    kinds = (Moments.from_rows(few), RowMoments(few, coral.result_.names))
    full, apart = (measure_rows(coral.estimate_, coral.result_, kind) for kind in kinds)
    assert full.after is not None
    assert apart.after is None
    for measured in (full, apart):
        for figure, value in figures(few, coral.transform(few)).items():
            assert measured.to_dict()[figure] == pytest.approx(value, abs=1e-9), figure
        assert "largest VIF ∞ → ∞" in measured.headline()
    np.testing.assert_allclose(apart.fidelity, full.fidelity, atol=1e-12)


def test_composites_have_no_figures_of_their_own_before():
    X = rows()
    composites = np.array([[0.5, 0.5, 0.0, 0.0], [0.0, 0.0, 0.5, 0.5]]).T
    frame = CORAL(anchors=composites).fit(X).measured_.to_frame()
    assert list(frame) == ["fidelity", "residual", "vif"]


@pytest.mark.parametrize(
    ("fidelity", "count"),
    [
        ([0.99, 0.8996, 0.95, 0.9], "at least 0.899 (weakest: b)"),  # rounded down
        ([0.9001, 0.95, 0.9004, 0.97], "2 of 4 variables keep 0.900, the rest more"),
        ([0.9] * 4, "all 4 variables keep 0.900"),
    ],
)
def test_the_headline_counts_the_weakest(fidelity, count):
    measured = CORAL(0.9).fit(pd.DataFrame(rows(), columns=list("abcd"))).measured_
    measured = replace(measured, fidelity=np.array(fidelity))
    assert count in measured.headline()
    assert measured.weakest == "abcd"[int(np.argmin(fidelity))]
