"""Tables that cannot be fitted are refused, with the columns and the remedy."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import sklearn
from sklearn.covariance import ShrunkCovariance

from skcoral import CORAL
from skcoral.exceptions import InvalidArgumentError, InvalidTableError, SingularCorrelationError


def text_columns(wine):
    return wine.iloc[:, :3].assign(grape="pinot", count=[str(i * i % 17) for i in range(178)])


def days(wine):
    return pd.date_range("2020-01-01", periods=len(wine))


def halves(wine):
    return [wine[:89], wine[89:]]


def with_a_giant(wine):
    """A whole number beyond floating point."""
    table = wine.astype(object)
    table.iloc[3, 1] = 10**400
    return table


#: Cells of polars that are no numbers, and their types.
ODD_CELLS = [
    ({"x": 1.0}, None),
    ([1.0, 2.0], pl.Array(pl.Float64, 2)),
    ([1.0], pl.List(pl.Float64)),
    (b"x", pl.Binary),
    (object(), pl.Object),
]
REFUSED = {
    "text": (text_columns, "text.* in `grape`, `count`.*numbers first"),
    "text in polars": (lambda w: pl.from_pandas(text_columns(w)), "text.* in `grape`, `count`"),
    "text in an array": (lambda w: text_columns(w).to_numpy(object), "text.* in `x3`, `x4`"),
    "an array of text": (lambda w: w.astype(str).to_numpy(), "text.* in `x0`"),
    "dates": (lambda w: w.assign(day=days(w)), "dates or times in `day`"),
    "dates in an array": (lambda w: np.c_[days(w), days(w)[::-1]], "dates or times in `x0`, `x1`"),
    "durations": (lambda w: w.assign(day=days(w) - days(w)[0]), "dates or times in `day`"),
    "dates in polars": (
        lambda w: pl.DataFrame(w).with_columns(pl.Series("day", days(w).to_numpy())),
        "dates or times in `day`",
    ),
    "complex": (lambda w: w.assign(z=w["ash"] * 1j), "Complex data not supported, as in `z`"),
    "one row": (lambda w: w.iloc[:1], r"at least two rows.*`alcohol`"),
    "no columns": (lambda w: pd.DataFrame(), "no columns"),
    "a name twice": (lambda w: pd.concat([w, w["hue"]], axis=1), "more than once: `hue`"),
    "too small to be squared": (lambda w: w * 1e-200, "rescale"),
    "a list of tables": (halves, r"of tables is not a table.*iter"),
    "a tuple of arrays": (
        lambda w: tuple(part.to_numpy() for part in halves(w)),
        r"of tables is not a table.*iter",
    ),
    "a lazy table": (lambda w: pl.from_pandas(w).lazy(), r"collect\(\)"),
    "a giant": (with_a_giant, "Numbers are needed.*`malic_acid`"),
    "a giant in an array": (lambda w: with_a_giant(w).to_numpy(), "Numbers are needed.*`x1`"),
    "a giant in a list": (lambda w: with_a_giant(w).to_numpy().tolist(), "needed.*`x1`"),
    **{
        f"odd cells of polars, {kind}": (
            lambda w, cell=cell, kind=kind: pl.DataFrame(w).with_columns(
                pl.Series("odd", [cell] * len(w), kind)
            ),
            "`odd`",
        )
        for cell, kind in ODD_CELLS
    },
}


@pytest.mark.parametrize("kind", REFUSED)
def test_what_cannot_be_fitted_is_refused_with_the_columns(wine, kind):
    table, words = REFUSED[kind]
    with pytest.raises(InvalidTableError, match=words):
        CORAL().fit(table(wine))


def test_other_arguments_of_fit_that_are_refused(wine):
    with pytest.raises(ValueError, match="0 sample"):
        CORAL().fit(wine.iloc[:0])
    with pytest.raises(InvalidTableError, match="reads it once"):
        CORAL().fit_transform(iter(halves(wine)))
    with pytest.raises(InvalidTableError, match="sample_weight must contain only numbers"):
        CORAL().fit(wine, sample_weight="many")
    with pytest.raises(InvalidArgumentError, match="rows go to fit"):
        CORAL().fit_moments(wine)
    with pytest.raises(ValueError, match="feature names"):
        CORAL().partial_fit(wine).partial_fit(wine[wine.columns[::-1]])


def test_constant_duplicated_and_dependent_columns(wine):
    flat = wine.assign(flat=3.0, still=0.1)
    with pytest.raises(InvalidTableError, match=r"constant.*`flat`, `still`"):
        CORAL().fit(flat)
    with pytest.raises(SingularCorrelationError, match="`again` = `ash`"):
        CORAL(on_singular="raise").fit(wine.assign(again=wine["ash"]))
    total = wine.assign(total=wine["ash"] + wine["hue"])
    with pytest.raises(SingularCorrelationError, match=r"`total`.*dropping"):
        CORAL(on_singular="raise").fit(total)
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


def test_a_failed_fit_leaves_nothing_fitted(wine):
    def broken():
        yield wine[:100]
        raise ConnectionError("the line is dead")

    flat = wine.assign(flat=1.0)
    for table, error in (
        (lambda: flat, InvalidTableError),
        (lambda: iter([flat]), InvalidTableError),
        (broken, ConnectionError),
    ):
        coral = CORAL().fit(wine)
        with pytest.raises(error):
            coral.fit(table())
        with pytest.raises(sklearn.exceptions.NotFittedError):
            coral.transform(wine)
    with pytest.raises(InvalidTableError, match="sample_weight"):
        coral.partial_fit(wine, sample_weight=[1.0])
    with pytest.raises(sklearn.exceptions.NotFittedError, match="T_"):
        _ = coral.T_
    assert coral.partial_fit(wine).n_samples_seen_ == 178


def test_singular_transformations_have_no_inverse(wine):
    coral = CORAL().fit(wine.iloc[:, :2])
    coral.T_ = np.ones((2, 2))
    with pytest.raises(InvalidArgumentError, match="singular"):
        coral.inverse_transform(np.ones((3, 2)))
    with pytest.raises(InvalidTableError, match="2 outputs"):
        coral.inverse_transform(np.ones((3, 5)))


def test_masked_cells_are_missing(wine):
    rows = np.ascontiguousarray(wine.to_numpy())  # sums depend on the order in memory
    X = np.ma.masked_array(rows, mask=False)
    assert np.array_equal(CORAL().fit(X).T_, CORAL().fit(rows).T_)
    X[4, 2] = np.ma.masked
    message = r"missing values \(NaN\) in `x2`, first in row 4\..* in a pipeline\)\.$"
    with pytest.raises(InvalidTableError, match=message):
        CORAL().fit(X)


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
