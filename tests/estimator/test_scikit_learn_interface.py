"""CORAL in pipelines, searches, data frames and pickles."""

import inspect
import pickle
import re

import joblib
import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.datasets import load_wine
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.pipeline import make_pipeline

from skcoral import CORAL, decorrelate
from skcoral.estimator.fitting import Fitting
from skcoral.exceptions import InvalidTableError


def test_score_on_new_rows_is_the_residual_there(wine):
    coral = CORAL(0.7).fit(wine[::2])
    G = np.corrcoef(coral.transform(wine[1::2]), rowvar=False)
    expected = -0.5 * ((G - np.eye(13)) ** 2).sum()
    assert coral.score(wine[1::2]) == pytest.approx(expected, rel=1e-9)
    with pytest.raises(InvalidTableError, match="at least two rows"):
        coral.score(wine[:1])


def test_data_frames_in_and_out(wine):
    coral = CORAL(0.7).fit(wine)
    values = coral.transform(wine)
    assert list(coral.get_feature_names_out()) == list(wine.columns)
    as_pandas = coral.set_output(transform="pandas").transform(wine)
    assert isinstance(as_pandas, pd.DataFrame)
    assert list(as_pandas.columns) == list(wine.columns)
    np.testing.assert_array_equal(as_pandas.index, wine.index)
    np.testing.assert_array_equal(as_pandas, values)
    back = coral.inverse_transform(as_pandas)
    assert isinstance(back, pd.DataFrame)
    pd.testing.assert_frame_equal(back, wine, rtol=1e-9)
    table = pl.from_pandas(wine)
    as_polars = CORAL(0.7).set_output(transform="polars").fit(table).transform(table)
    assert isinstance(as_polars, pl.DataFrame)
    assert as_polars.columns == list(wine.columns)
    np.testing.assert_allclose(as_polars.to_numpy(), values, atol=1e-12)


def test_pipeline_column_transformer_and_grid_search(wine):
    y = load_wine().target
    columns = ["alcohol", "flavanoids", "hue", "proline"]
    chosen = ColumnTransformer([("coral", CORAL(), columns)], remainder="passthrough")
    out = chosen.set_output(transform="pandas").fit_transform(wine)
    assert list(out.columns[:4]) == [f"coral__{name}" for name in columns]
    np.testing.assert_allclose(np.corrcoef(out.iloc[:, :4], rowvar=False), np.eye(4), atol=1e-8)

    pipeline = make_pipeline(CORAL(), LogisticRegression(max_iter=500))
    assert cross_val_score(pipeline, wine, y, cv=3).mean() > 0.9
    folds = KFold(3, shuffle=True, random_state=0)  # the table is sorted by cultivar
    search = GridSearchCV(CORAL(), {"rho_min": [0.5, 0.8, 0.99]}, cv=folds).fit(wine)
    by_hand = [CORAL(0.8).fit(wine.iloc[a]).score(wine.iloc[b]) for a, b in folds.split(wine)]
    scores = search.cv_results_["mean_test_score"]
    assert scores[1] == pytest.approx(np.mean(by_hand), rel=1e-9)
    assert search.best_params_["rho_min"] != 0.99


def test_clone_pickle_and_joblib(wine, tmp_path):
    coral = CORAL(0.7, output_scale="original").fit(wine)
    expected = coral.transform(wine)
    assert clone(coral).get_params() == coral.get_params()
    assert not hasattr(clone(coral), "T_")
    again = pickle.loads(pickle.dumps(coral))
    np.testing.assert_array_equal(again.transform(wine), expected)
    assert again.threshold_.value == coral.threshold_.value
    joblib.dump(coral, tmp_path / "coral.joblib")
    loaded = joblib.load(tmp_path / "coral.joblib")
    np.testing.assert_array_equal(loaded.transform(wine), expected)
    np.testing.assert_allclose(loaded.partial_fit(wine).mean_, coral.mean_, rtol=1e-14)
    assert loaded.n_samples_seen_ == 356


def test_unknown_attributes_are_unknown():
    with pytest.raises(AttributeError, match="no attribute 'nothing_'"):
        _ = CORAL().nothing_


def test_loadings_are_the_transformation_with_names(wine):
    coral, names = CORAL(0.9).fit(wine), list(wine.columns)
    frame = coral.loadings()
    assert list(frame.index) == list(frame.columns) == list(coral.to_frame().index) == names
    Z = (wine - wine.mean()) / wine.std()
    np.testing.assert_allclose((Z @ frame).to_numpy(), coral.transform(wine))
    np.testing.assert_array_equal(decorrelate(wine.corr(), 0.9).loadings().columns, names)
    anchors = pd.DataFrame({"mean": 1 / 13, "first": np.eye(13)[0]}, index=names)
    composites = CORAL(0.8, anchors=anchors).fit(wine).loadings()
    assert (list(composites.index), list(composites.columns)) == (names, ["mean", "first"])


def test_documented_attributes_are_declared():
    section = inspect.getdoc(CORAL).split("Attributes\n")[1].split("Examples\n")[0]
    documented = {
        n for line in re.findall(r"^([\w, ]+) :", section, re.M) for n in line.split(", ")
    }
    assert documented
    assert documented <= {*Fitting.__annotations__, *dir(CORAL)}
