"""Tables that cannot be fitted are refused, with the columns and the remedy."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import sklearn
from sklearn.covariance import ShrunkCovariance, ledoit_wolf

from skcoral import CORAL
from skcoral.exceptions import (
    InvalidArgumentError,
    InvalidTableError,
    SingularCorrelationError,
)


def test_fewer_rows_than_columns_need_explicit_shrinkage():
    rng = np.random.default_rng(0)
    X = (rng.normal(size=(6, 12)) + 2 * rng.normal(size=(6, 1))) * np.logspace(-6, 6, 12)
    with pytest.raises(InvalidTableError, match=r"6 rows.*12 columns.*covariance='LedoitWolf'"):
        CORAL(on_singular="raise").fit(X)
    coral = CORAL(covariance="LedoitWolf").fit(X)
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    _, intensity = ledoit_wolf(Z, assume_centered=True)
    assert 0 < intensity < 1
    expected = (1 - intensity) * np.corrcoef(X, rowvar=False) + intensity * np.eye(12)
    np.testing.assert_allclose(coral.correlation_, expected, atol=1e-9)
    assert "LedoitWolf" in coral.result_.notes.guarantee
    np.testing.assert_allclose(coral.T_.T @ expected @ coral.T_, np.eye(12), atol=1e-8)


def test_constant_duplicated_and_dependent_columns(wine):
    flat = wine.assign(flat=3.0, still=0.1)
    with pytest.raises(InvalidTableError, match=r"constant.*`flat`, `still`"):
        CORAL().fit(flat)
    with pytest.raises(SingularCorrelationError, match="`again` = `ash`"):
        CORAL(on_singular="raise").fit(wine.assign(again=wine["ash"]))
    total = wine.assign(total=wine["ash"] + wine["hue"])
    with pytest.raises(SingularCorrelationError, match=r"`total`.*dropping") as caught:
        CORAL(on_singular="raise").fit(total)
    assert set(caught.value.variables) == {"total", "ash", "hue"}
    CORAL(covariance=ShrunkCovariance(shrinkage=0.01)).fit(total)


def test_missing_and_infinite_values_are_located(wine):
    spoiled = wine.copy()
    spoiled.loc[7, "hue"] = np.nan
    spoiled.loc[3, "ash"] = np.inf
    with pytest.raises(InvalidTableError, match=r"NaN.*`hue`, first in row 7; .*`ash`.*row 3"):
        CORAL().fit(spoiled)
    coral = CORAL().fit(wine)
    with pytest.raises(InvalidTableError, match="`hue`"):
        coral.transform(spoiled)


@pytest.mark.parametrize("container", ["pandas", "polars", "array"])
def test_text_is_located(wine, container):
    table = wine.iloc[:, :3].assign(grape="pinot")
    if container == "polars":
        table = pl.from_pandas(table)
    elif container == "array":
        table = table.to_numpy(object)
    name = "x3" if container == "array" else "grape"
    with pytest.raises(InvalidTableError, match=f"`{name}` hold text"):
        CORAL().fit(table)


def test_text_that_reads_like_numbers_is_text(wine):
    table = wine.iloc[:, :3].assign(count=[str(i * i % 17) for i in range(178)])
    for X in (table, pl.from_pandas(table), table.to_numpy(object), table.astype(str).to_numpy()):
        with pytest.raises(InvalidTableError, match=r"hold text.*numbers first"):
            CORAL().fit(X)
    with pytest.raises(InvalidTableError, match="`count` hold text"):
        CORAL().fit(table)
    assert CORAL().fit(table.astype({"count": int})).n_features_in_ == 4
    with pytest.raises(InvalidTableError, match="`x0`, `x1` hold text"):
        CORAL().fit([["1", "2"], ["3", "5"], ["4", "1"]])


def test_numbers_in_any_container(wine):
    few = wine.iloc[:, :4]
    expected = CORAL().fit(few).T_
    columns = {"alcohol": "Float64", "ash": "float64[pyarrow]", "malic_acid": object}
    for X in (few.astype(columns), pa.table(few), few.to_numpy(object), few.to_numpy().tolist()):
        np.testing.assert_allclose(CORAL().fit(X).T_, expected, atol=1e-12)
    twins = pa.table({"a": [1.0, 2.0, 3.0], "b": [1.0, 2.0, 3.0]})
    with pytest.raises(SingularCorrelationError, match="`b` = `a`"):
        CORAL(on_singular="raise").fit(twins)
    flags = few.assign(high=few["ash"] > 2.3, level=pd.Categorical(np.arange(178) % 3))
    assert CORAL().fit(flags).transform(flags).dtype == np.float64


def test_one_row_and_no_rows(wine):
    with pytest.raises(InvalidTableError, match=r"at least two rows.*`alcohol`"):
        CORAL().fit(wine.iloc[:1])
    with pytest.raises(ValueError, match="0 sample"):
        CORAL().fit(wine.iloc[:0])


def test_a_failed_fit_leaves_nothing_fitted(wine):
    coral = CORAL().fit(wine)
    with pytest.raises(InvalidTableError):
        coral.fit(wine.assign(flat=1.0))
    with pytest.raises(sklearn.exceptions.NotFittedError):
        coral.transform(wine)
    with pytest.raises(sklearn.exceptions.NotFittedError, match="T_"):
        _ = coral.T_


def test_singular_transformations_have_no_inverse(wine):
    coral = CORAL().fit(wine.iloc[:, :2])
    coral.T_ = np.ones((2, 2))
    with pytest.raises(InvalidArgumentError, match="singular"):
        coral.inverse_transform(np.ones((3, 2)))
    with pytest.raises(InvalidTableError, match="2 outputs"):
        coral.inverse_transform(np.ones((3, 5)))


def test_dates_are_located(wine):
    dated = wine.assign(day=pd.date_range("2020-01-01", periods=len(wine)))
    for X in (dated, dated.assign(day=dated["day"] - dated["day"].iloc[0])):
        with pytest.raises(InvalidTableError, match="dates or times in `day`"):
            CORAL().fit(X)


def test_frames_without_columns_or_with_the_same_name_twice(wine):
    with pytest.raises(InvalidTableError, match="no columns"):
        CORAL().fit(pd.DataFrame())
    with pytest.raises(InvalidTableError, match="`hue` occur more than once"):
        CORAL().fit(pd.concat([wine, wine["hue"]], axis=1))


def test_masked_cells_are_missing(wine):
    rows = np.ascontiguousarray(wine.to_numpy())  # sums depend on the order in memory
    X = np.ma.masked_array(rows, mask=False)
    assert np.array_equal(CORAL().fit(X).T_, CORAL().fit(rows).T_)
    X[4, 2] = np.ma.masked
    told = r"missing values \(NaN\) in `x2`, first in row 4\..* in a pipeline\)\.$"
    with pytest.raises(InvalidTableError, match=told):
        CORAL().fit(X)


def test_values_too_small_to_be_squared_are_not_called_constant_only(wine):
    with pytest.raises(InvalidTableError, match="rescale"):
        CORAL().fit(wine * 1e-200)


def test_types_that_are_no_real_numbers_are_located(wine):
    few = wine.iloc[:, :3]
    days = pl.Series("day", pd.date_range("2020-01-01", periods=len(wine)).to_numpy())
    for X, told in (
        (few.assign(z=few["ash"] * 1j), "Complex data not supported, as in `z`"),
        (few.assign(day=pd.period_range("2020", periods=len(few), freq="D")), "`day` hold"),
        (pl.DataFrame(few).with_columns(days), "dates or times in `day`"),
    ):
        with pytest.raises(InvalidTableError, match=told):
            CORAL().fit(X)


def test_tables_that_are_none_yet(wine):
    halves = [wine[:89], wine[89:]]
    for X in (halves, tuple(halves), [part.to_numpy() for part in halves]):
        with pytest.raises(InvalidTableError, match=r"of tables is not a table.*iter"):
            CORAL().fit(X)
    with pytest.raises(InvalidTableError, match="reads it once"):
        CORAL().fit_transform(iter(halves))
    with pytest.raises(InvalidTableError, match=r"collect\(\)"):
        CORAL().fit(pl.from_pandas(wine).lazy())


def test_outputs_for_the_inverse_are_checked_like_rows(wine):
    coral = CORAL().set_output(transform="pandas").fit(wine)
    Y = coral.transform(wine)
    with pytest.raises(InvalidTableError, match="another order"):
        coral.inverse_transform(Y[Y.columns[::-1]])
    renamed = Y.add_prefix("coral__")  # as a ColumnTransformer names them: by position
    np.testing.assert_allclose(coral.inverse_transform(renamed), wine, rtol=1e-10)
    Y.loc[5, "hue"] = np.nan
    with pytest.raises(InvalidTableError, match=r"`hue`, first in row 5"):
        coral.inverse_transform(Y)
