"""The transformer against its definition, scikit-learn's own checks, and the bad tables of life."""

import pickle
import warnings

import joblib
import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.datasets import load_wine
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator, parametrize_with_checks

from skcoral import CORAL
from skcoral.exceptions import (
    InvalidArgumentError,
    InvalidFloorError,
    InvalidTableError,
    SingularCorrelationError,
)
from skcoral.moments import Moments


@pytest.fixture(scope="module")
def wine():
    return load_wine(as_frame=True).data


def ugly_table(n=300, p=5, seed=0, offset=4):
    """Correlated, badly scaled, and off-centre by up to 10**offset standard deviations."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p)) @ (np.eye(p) + 0.7 * rng.normal(size=(p, p)))
    return (X + np.logspace(offset, -1, p)) * np.logspace(-6, 6, p)


def correlation_of(A):
    return np.corrcoef(np.asarray(A, dtype=np.float64).T)


# --- scikit-learn's own checks ---------------------------------------------------------------


@parametrize_with_checks(
    [
        CORAL(shrinkage="auto"),
        CORAL(shrinkage=0.1),
        CORAL(0.5, shrinkage=0.3, output_scale="original"),
        CORAL(correlation="spearman", shrinkage="auto"),
    ]
)
def test_scikit_learns_checks(estimator, check):
    check(estimator)


def test_scikit_learns_checks_without_shrinkage():
    # One check fits 27 rows of 30 columns. That is singular and must be refused unless shrinkage
    # is asked for, so it is the one that cannot pass here; it does in the test above.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sklearn.exceptions.SkipTestWarning)
        outcomes = check_estimator(CORAL(), on_fail=None)
    failed = {o["check_name"]: o["exception"] for o in outcomes if o["status"] == "failed"}
    assert set(failed) == {"check_sample_weight_equivalence_on_dense_data"}
    (refusal,) = failed.values()
    assert isinstance(refusal, InvalidTableError)
    assert "27 rows cannot determine the correlations of 30 columns" in str(refusal)
    assert len(outcomes) > 40


# --- what the transformation promises --------------------------------------------------------


@pytest.mark.parametrize("output_scale", ["unit", "original"])
def test_outputs_are_decorrelated_and_keep_their_fidelity(output_scale):
    X = ugly_table()
    coral = CORAL(output_scale=output_scale).fit(X)
    Y = coral.transform(X)
    np.testing.assert_allclose(correlation_of(Y), np.eye(5), atol=1e-8)
    achieved = [np.corrcoef(X[:, j], Y[:, j])[0, 1] for j in range(5)]
    np.testing.assert_allclose(achieved, coral.fidelity_, atol=1e-8)
    assert min(achieved) >= coral.threshold_.value - 1e-8
    assert coral.threshold_.gap < 1e-8
    if output_scale == "unit":
        np.testing.assert_allclose(Y.mean(axis=0), 0.0, atol=1e-8)
        np.testing.assert_allclose(Y.std(axis=0, ddof=1), 1.0, rtol=1e-10)
    else:
        np.testing.assert_allclose(Y.mean(axis=0), X.mean(axis=0), rtol=1e-9)
        np.testing.assert_allclose(Y.std(axis=0, ddof=1), X.std(axis=0, ddof=1), rtol=1e-8)


def test_the_assertions_above_can_fail():
    X = ugly_table()
    off = np.abs(correlation_of(X) - np.eye(5))
    assert off.max() > 0.3
    whitened = PCA(whiten=True).fit_transform(X / X.std(axis=0))
    assert np.abs([np.corrcoef(X[:, j], whitened[:, j])[0, 1] for j in range(5)]).min() < 0.5


def test_fitted_attributes_agree_with_each_other():
    X = ugly_table()
    coral = CORAL(rho_min=0.4).fit(X)
    Z = (X - coral.mean_) / coral.scale_
    np.testing.assert_allclose(coral.transform(X), Z @ coral.T_, atol=1e-9)
    np.testing.assert_allclose(coral.transform(X), (X - coral.mean_) @ coral.components_.T)
    np.testing.assert_allclose(coral.correlation_, correlation_of(X), atol=1e-10)
    np.testing.assert_allclose(coral.scale_, X.std(axis=0, ddof=1), rtol=1e-9)
    assert coral.result_.T is coral.T_
    assert coral.certificate_ is coral.result_.certificate
    np.testing.assert_array_equal(coral.prices_, coral.result_.prices)
    assert (coral.n_samples_seen_, coral.n_features_in_) == (300, 5)
    assert coral.shrinkage_ == 0.0
    assert "300 rows" in coral.result_.details["guarantee"]


def test_the_papers_threshold(wine):
    assert CORAL().fit(wine).threshold_.value == pytest.approx(0.8262309, abs=1e-7)


@pytest.mark.parametrize("output_scale", ["unit", "original"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_inverse_transform_recovers_the_rows(wine, output_scale, dtype):
    X = wine.to_numpy(dtype)
    coral = CORAL(0.7, output_scale=output_scale).fit(X)
    back = coral.inverse_transform(coral.transform(X))
    assert back.dtype == dtype
    eps = np.finfo(dtype).eps
    np.testing.assert_allclose(back, X, rtol=0, atol=60 * eps * np.abs(X).max(axis=0).max())


def test_one_column():
    X = ugly_table(p=1)
    coral = CORAL().fit(X)
    np.testing.assert_array_equal(coral.T_, [[1.0]])
    np.testing.assert_allclose(coral.transform(X).std(ddof=1), 1.0)


def test_columns_far_from_zero():
    X = ugly_table()
    X = X / X.std(axis=0)
    X -= X.mean(axis=0)
    far = X + 1e8
    coral = CORAL().fit(far)
    np.testing.assert_allclose(correlation_of(coral.transform(far)), np.eye(5), atol=1e-9)


def test_permuting_and_flipping_columns_permutes_and_flips_the_outputs():
    X = ugly_table()
    order, signs = np.array([3, 0, 4, 1, 2]), np.array([1.0, -1.0, 1.0, -1.0, 1.0])
    plain = CORAL(0.5).fit(X).transform(X)
    other = CORAL(0.5).fit(X[:, order] * signs).transform(X[:, order] * signs)
    np.testing.assert_allclose(other, plain[:, order] * signs, atol=1e-7)


def test_the_same_fit_gives_the_same_bits():
    X = ugly_table()
    np.testing.assert_array_equal(CORAL(0.5).fit(X).T_, CORAL(0.5).fit(X).T_)


def test_float32_statistics_are_double():
    X = ugly_table(offset=2).astype(np.float32)
    coral = CORAL().fit(X)
    assert coral.transform(X).dtype == np.float32
    assert coral.T_.dtype == np.float64
    np.testing.assert_allclose(coral.correlation_, correlation_of(X), atol=1e-12)


# --- settings --------------------------------------------------------------------------------


def test_floors_by_name(wine):
    coral = CORAL({"flavanoids": 0.95, "ash": 0.5}).fit(wine)
    flavanoids = list(wine.columns).index("flavanoids")
    assert coral.fidelity_[flavanoids] >= 0.95 - 1e-9
    floors = dict(zip(wine.columns, coral.result_.rho_min, strict=True))
    assert floors["flavanoids"] == 0.95
    assert floors["alcohol"] == 0.0
    with pytest.raises(InvalidFloorError, match="`flavonoids`"):
        CORAL({"flavonoids": 0.9}).fit(wine)


def test_above_the_threshold(wine):
    coral = CORAL(0.95).fit(wine)
    assert coral.result_.objective == pytest.approx(1.66517846, abs=1e-7)
    assert coral.result_.gap < 1e-7
    assert coral.fidelity_.min() >= 0.95 - 1e-9
    assert (coral.prices_ > 0).any()
    assert coral.score(wine) == pytest.approx(-1.66517846, abs=1e-7)


@pytest.mark.parametrize(("criterion", "expected"), [("worst", 0.414324), ("absolute", 6.675383)])
def test_other_criteria(wine, criterion, expected):
    coral = CORAL(0.95, criterion=criterion).fit(wine)
    assert coral.result_.objective == pytest.approx(expected, abs=2e-6)
    assert coral.score(wine) == pytest.approx(-expected, abs=2e-6)


def test_budget(wine):
    coral = CORAL(budget=0.1).fit(wine)
    assert coral.fidelity_.min() == pytest.approx(0.8715, abs=5e-5)
    assert -coral.score(wine) <= 0.1 + 1e-8


def test_support(wine):
    X = wine.iloc[:, :5]
    mask = np.abs(correlation_of(X)) > 0.2
    coral = CORAL(0.8, support=mask).fit(X)
    assert (coral.T_[~mask] == 0).all()
    assert coral.fidelity_.min() >= 0.8 - 1e-9


def test_anchors(wine):
    X = wine.iloc[:, :4]
    composites = np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.0, 1.0]])
    coral = CORAL(anchors=composites).fit(X)
    Y = coral.transform(X)
    assert Y.shape == (178, 2)
    Z = (X - X.mean()) / X.std()
    achieved = [np.corrcoef(Z @ composites[:, j], Y[:, j])[0, 1] for j in range(2)]
    np.testing.assert_allclose(achieved, coral.fidelity_, atol=1e-9)
    assert abs(np.corrcoef(Y.T)[0, 1]) < 1e-9
    assert len(coral.get_feature_names_out()) == 2
    with pytest.raises(InvalidArgumentError, match="no inverse"):
        coral.inverse_transform(Y)
    with pytest.raises(InvalidArgumentError, match="unit"):
        CORAL(anchors=composites, output_scale="original").fit(X)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"rho_min": 0.5, "budget": 0.1}, "not both"),
        ({"budget": 0.1, "support": np.eye(13)}, "support goes with floors"),
        ({"criterion": "cubed"}, "criterion must be one of"),
        ({"correlation": "kendall"}, "correlation must be one of"),
        ({"output_scale": "big"}, "output_scale must be one of"),
        ({"shrinkage": 2.0}, "shrinkage must be"),
        ({"shrinkage": "strong"}, "shrinkage must be"),
    ],
)
def test_settings_that_make_no_sense(wine, settings, message):
    with pytest.raises(InvalidArgumentError, match=message):
        CORAL(**settings).fit(wine)


def test_spearman_decorrelates_ranks_in_the_estimate(wine):
    from scipy.stats import spearmanr

    coral = CORAL(correlation="spearman").fit(wine)
    expected = spearmanr(wine).statistic
    np.testing.assert_allclose(coral.correlation_, expected, atol=1e-12)
    G = coral.T_.T @ expected @ coral.T_
    np.testing.assert_allclose(G, np.eye(13), atol=1e-8)
    assert "ranks" in coral.result_.details["guarantee"]


# --- bad tables ------------------------------------------------------------------------------


def test_fewer_rows_than_columns_need_explicit_shrinkage():
    X = ugly_table(n=6, p=12)
    with pytest.raises(InvalidTableError, match=r"6 rows.*12 columns.*shrinkage='auto'"):
        CORAL().fit(X)
    coral = CORAL(shrinkage="auto").fit(X)
    assert 0 < coral.shrinkage_ < 1
    expected = (1 - coral.shrinkage_) * correlation_of(X) + coral.shrinkage_ * np.eye(12)
    np.testing.assert_allclose(coral.correlation_, expected, atol=1e-9)
    assert "shrunk" in coral.result_.details["guarantee"]
    np.testing.assert_allclose(coral.T_.T @ expected @ coral.T_, np.eye(12), atol=1e-8)


def test_constant_duplicated_and_dependent_columns(wine):
    flat = wine.assign(flat=3.0, still=0.1)
    with pytest.raises(InvalidTableError, match=r"constant.*`flat`, `still`"):
        CORAL().fit(flat)
    with pytest.raises(SingularCorrelationError, match="`again` duplicates `ash`"):
        CORAL().fit(wine.assign(again=wine["ash"]))
    total = wine.assign(total=wine["ash"] + wine["hue"])
    with pytest.raises(SingularCorrelationError, match=r"`total`.*Drop one") as caught:
        CORAL().fit(total)
    assert set(caught.value.variables) == {"total", "ash", "hue"}
    CORAL(shrinkage=0.01).fit(total)


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


# --- batches ---------------------------------------------------------------------------------


@pytest.mark.parametrize("batch", [1, 17, 178])
def test_partial_fit_is_fit(wine, batch):
    coral = CORAL(0.7)
    for start in range(0, len(wine), batch):
        coral.partial_fit(wine.iloc[start : start + batch])
    whole = CORAL(0.7).fit(wine)
    np.testing.assert_allclose(coral.T_, whole.T_, atol=1e-10)
    np.testing.assert_allclose(coral.transform(wine), whole.transform(wine), atol=1e-9)
    assert coral.n_samples_seen_ == 178


def test_the_answer_follows_later_batches(wine):
    coral = CORAL().partial_fit(wine[:100])
    first = coral.T_
    coral.partial_fit(wine[100:])
    assert coral.T_ is not first
    np.testing.assert_allclose(coral.T_, CORAL().fit(wine).T_, atol=1e-9)


def test_too_few_rows_so_far(wine):
    coral = CORAL().partial_fit(wine[:5])
    with pytest.raises(InvalidTableError, match="5 rows"):
        coral.transform(wine)
    coral.partial_fit(wine[5:])
    assert coral.transform(wine).shape == wine.shape


def test_a_refused_first_batch_leaves_nothing_fitted(wine):
    coral = CORAL()
    with pytest.raises(InvalidTableError, match="sample_weight"):
        coral.partial_fit(wine, sample_weight=[1.0])
    with pytest.raises(sklearn.exceptions.NotFittedError):
        coral.transform(wine)
    assert coral.partial_fit(wine).n_samples_seen_ == 178


def test_iterator_of_batches(wine):
    coral = CORAL().fit(wine.iloc[i : i + 50] for i in range(0, 178, 50))
    np.testing.assert_allclose(coral.T_, CORAL().fit(wine).T_, atol=1e-10)
    counts = np.random.default_rng(0).integers(0, 3, size=178)
    pairs = ((wine[i : i + 50], counts[i : i + 50]) for i in range(0, 178, 50))
    weighted = CORAL().fit(pairs)
    expected = CORAL().fit(wine, sample_weight=counts)
    np.testing.assert_allclose(weighted.T_, expected.T_, atol=1e-10)
    with pytest.raises(InvalidTableError, match="no batch"):
        CORAL().fit(iter([]))
    with pytest.raises(InvalidArgumentError, match="pairs"):
        CORAL().fit(iter([wine]), sample_weight=counts)


def test_fit_moments_of_two_sites(wine):
    names = list(wine.columns)
    sites = [Moments.from_rows(part, names=names) for part in (wine[:60], wine[60:])]
    coral = CORAL(0.7).fit_moments(sites[0].merge(sites[1]))
    np.testing.assert_allclose(coral.T_, CORAL(0.7).fit(wine).T_, atol=1e-10)
    assert list(coral.feature_names_in_) == names
    before = coral.moments_.n_rows
    sites[0].update(wine[:5])
    assert coral.moments_.n_rows == before


@pytest.mark.parametrize("settings", [{"shrinkage": "auto"}, {"correlation": "spearman"}])
def test_settings_that_need_all_rows_at_once(wine, settings):
    coral = CORAL(**settings)
    assert not hasattr(coral, "partial_fit")
    with pytest.raises(InvalidArgumentError, match="all rows are needed at once"):
        coral.fit(iter([wine]))
    with pytest.raises(InvalidArgumentError, match="all rows are needed at once"):
        coral.fit_moments(Moments.from_rows(wine))


def test_batches_with_other_columns(wine):
    coral = CORAL().partial_fit(wine)
    with pytest.raises(ValueError, match="feature names"):
        coral.partial_fit(wine[wine.columns[::-1]])


# --- weights ---------------------------------------------------------------------------------


@pytest.mark.parametrize("settings", [{}, {"shrinkage": "auto"}, {"correlation": "spearman"}])
def test_weights_are_repetitions(wine, settings):
    counts = np.random.default_rng(0).integers(0, 4, size=178)
    weighted = CORAL(0.6, **settings).fit(wine, sample_weight=counts)
    repeated = CORAL(0.6, **settings).fit(wine.loc[np.repeat(wine.index, counts)])
    np.testing.assert_allclose(weighted.T_, repeated.T_, atol=1e-8)
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


# --- company ---------------------------------------------------------------------------------


def test_score_on_new_rows_is_the_residual_there(wine):
    coral = CORAL(0.7).fit(wine[::2])
    G = correlation_of(coral.transform(wine[1::2]))
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
    np.testing.assert_allclose(correlation_of(out.iloc[:, :4]), np.eye(4), atol=1e-8)

    pipeline = make_pipeline(CORAL(), LogisticRegression(max_iter=500))
    assert cross_val_score(pipeline, wine, y, cv=3).mean() > 0.9
    folds = KFold(3, shuffle=True, random_state=0)  # the table is sorted by cultivar
    search = GridSearchCV(CORAL(), {"rho_min": [0.5, 0.8, 0.99]}, cv=folds, n_jobs=2).fit(wine)
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


def test_dates_are_located(wine):
    dated = wine.assign(day=pd.date_range("2020-01-01", periods=len(wine)))
    for X in (dated, dated.assign(day=dated["day"] - dated["day"].iloc[0])):
        with pytest.raises(InvalidTableError, match="`day` hold dates"):
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
    with pytest.raises(InvalidTableError, match=r"missing values \(NaN\) in `x2`, first in row 4"):
        CORAL().fit(X)


def test_values_too_small_to_be_squared_are_not_called_constant_only(wine):
    with pytest.raises(InvalidTableError, match="rescale"):
        CORAL().fit(wine * 1e-200)


def test_weights_that_are_no_numbers(wine):
    with pytest.raises(InvalidTableError, match="sample_weight must hold one number per row"):
        CORAL().fit(wine, sample_weight="many")


def test_a_scale_set_after_the_fit_waits_for_the_next(wine):
    coral = CORAL(0.9).fit(wine)
    before = coral.transform(wine)
    coral.set_params(output_scale="original", criterion="worst")
    assert np.array_equal(coral.transform(wine), before)
    assert np.allclose(coral.inverse_transform(before), wine)
    assert coral.score(wine) == pytest.approx(-coral.result_.objective)
    again = coral.fit(wine).transform(wine)
    assert np.allclose(again.mean(axis=0), wine.mean())
    assert np.allclose(again.std(axis=0, ddof=1), wine.std())


def test_types_that_are_no_real_numbers_are_located(wine):
    few = wine.iloc[:, :3]
    days = pl.Series("day", pd.date_range("2020-01-01", periods=len(wine)).to_numpy())
    for X, told in (
        (few.assign(z=few["ash"] * 1j), "Complex data not supported, as in `z`"),
        (few.assign(day=pd.period_range("2020", periods=len(few), freq="D")), "`day` hold"),
        (pl.DataFrame(few).with_columns(days), "`day` hold dates"),
    ):
        with pytest.raises(InvalidTableError, match=told):
            CORAL().fit(X)
