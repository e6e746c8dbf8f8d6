"""The one way from a file to a model agrees with the library on the same rows."""

from __future__ import annotations

import io

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

from skcoral import CORAL, certificates
from skcoral.exceptions import InvalidArgumentError, InvalidTableError
from skcoral.workflow import dataset
from skcoral.workflow.dataset import Request
from skcoral.workflow.fit import write_outputs
from skcoral.workflow.opening import open_file


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(3)
    values = rng.normal(size=(90, 1)) + rng.normal(size=(90, 4))
    table = pd.DataFrame(values, columns=list("abcd"))
    table.loc[[4, 40], "b"] = np.nan
    table.insert(0, "site", [f"s{i % 12}" for i in range(90)])
    table["w"] = rng.gamma(2.0, size=90)
    table["y"] = values.sum(axis=1) + rng.normal(size=90)
    return table


def opened(frame, **how):
    return open_file(frame.to_csv(index=False).encode(), name="t.csv", **how)


def written(fit, name):
    """The file that a fit writes."""
    stream = io.BytesIO()
    fit.write(stream, name)
    return io.BytesIO(stream.getvalue())


REQUESTS = {
    "plain": Request(exclude=("w", "y")),
    "weighted": Request(weights="w", target="y"),
    "shrunk": Request(exclude=("w", "y"), covariance="LedoitWolf"),
    "chosen": Request(columns=("d", "a", "b")),
}


@pytest.mark.parametrize("in_memory", [True, False])
@pytest.mark.parametrize("name", REQUESTS)
def test_a_fit_is_that_of_the_estimator_on_the_complete_rows(frame, name, in_memory, monkeypatch):
    request = REQUESTS[name]
    monkeypatch.setattr(dataset, "IN_MEMORY", 20_000_000 if in_memory else 0)
    data = opened(frame).choose(request)
    fit = data.fit({"rho_min": 0.93})
    complete = frame.dropna()
    weights = None if request.weights is None else complete["w"]
    model = CORAL(0.93, covariance=request.covariance)
    model.fit(complete[list(data.names)], sample_weight=weights)
    np.testing.assert_allclose(fit.model.T_, model.T_, atol=1e-9)
    np.testing.assert_allclose(fit.measured.fidelity, model.measured_.fidelity, atol=1e-12)
    assert (fit.measured.rows_used, fit.measured.rows_given) == (88, 90)
    assert data.incomplete == [6, 42]
    assert fit.check.passed
    if not request.covariance:  # another matrix promises nothing of the rows
        assert fit.measured.min_fidelity >= 0.93 - 1e-9


def test_groups_and_outcome_belong_to_the_complete_rows(frame):
    data = opened(frame).choose(Request(weights="w", target="y", labels=("site",)))
    complete = frame.dropna()
    known = data.known("site")
    assert known["groups"].tolist() == complete["site"].tolist()
    np.testing.assert_allclose(known["sample_weight"], complete["w"], rtol=1e-15)
    np.testing.assert_allclose(data.outcome()[0], complete["y"], rtol=1e-15)
    sure = CORAL(0.8, confidence=0.9).fit(
        complete[list("abcd")], sample_weight=complete["w"], groups=complete["site"]
    )
    fit = data.fit({"rho_min": 0.8, "confidence": 0.9}, groups="site")
    np.testing.assert_allclose(fit.model.floors_, sure.floors_, atol=1e-9)


def test_a_certificate_is_checked_once_whatever_is_written(frame, monkeypatch):
    calls = []
    check = certificates.check

    def counted(*arguments, **known):
        calls.append(1)
        return check(*arguments, **known)

    monkeypatch.setattr(certificates, "check", counted)
    fit = opened(frame).choose(REQUESTS["plain"]).fit({"rho_min": 0.9})
    assert fit.check.passed
    page = fit.report(command="coral fit t.csv", notes=["a note of its own"], n_points=0, folds=0)
    assert "a note of its own" in page
    assert fit.certificate()
    assert len(calls) == 1


def test_columns_that_cannot_be_read_are_named_together(frame):
    spoiled = frame.astype(object)
    spoiled.loc[7, "a"], spoiled.loc[9, "c"], spoiled.loc[2, "d"] = "1.5 kg", np.inf, "n/k"
    file = opened(spoiled)
    assert file.unreadable == ("a", "c", "d")
    with pytest.raises(InvalidTableError) as refusal:
        file.choose(Request())
    for part in ("'a' (line 9: '1.5 kg')", "'c' (line 11: infinite)", "'d' (line 4: 'n/k')"):
        assert part in str(refusal.value)
    assert file.choose(Request(exclude=file.unreadable)).names == ("b", "w", "y")


def test_the_column_that_costs_most_rows_is_named(frame):
    holes = frame.copy()
    holes.loc[60:80, "c"] = np.nan
    data = opened(holes).choose(REQUESTS["plain"])
    assert data.estimate.n_rows == 67
    (sentence,) = data.doubts()
    assert "23 rows" in sentence
    assert sentence.endswith("c has no value in 21 of them.")


def test_a_row_that_makes_a_correlation_is_pointed_out(frame):
    far = frame.copy()
    far.loc[20, ["a", "c"]] = 1e4
    data = opened(far).choose(REQUESTS["plain"])
    assert data.dominant == ()  # no row has been read yet
    data = opened(far).choose(REQUESTS["plain"])
    assert data.estimate.n_rows == 88
    (row,) = data.dominant
    assert (row.place, row.names) == (22, ("a", "c"))
    assert any("without line 22" in note for note in data.doubts())
    assert not opened(frame).choose(REQUESTS["plain"]).dominant


def test_weights_of_zero_leave_a_row_without_a_say(frame):
    far = frame.copy()
    far.loc[20, ["a", "c"]] = 1e4
    far.loc[20, "w"] = 0.0
    data = opened(far).choose(REQUESTS["weighted"])
    assert data.estimate.n_rows == 87
    assert data.dominant == ()
    assert any("of weight zero: 1 row" in note for note in data.choices())


@pytest.mark.parametrize("cell", ["x", "inf"])
def test_weights_that_are_no_numbers_are_refused_where_they_are_chosen(frame, cell):
    spoiled = frame.astype(object)
    spoiled.loc[7, "w"] = cell
    with pytest.raises(InvalidTableError, match=f"'w' .line 9: '?{cell}"):
        opened(spoiled).choose(REQUESTS["weighted"])


def test_a_model_is_applied_by_name_and_rows_stay_in_place(frame):
    model = CORAL(0.9).fit(frame.dropna()[list("abcd")])
    data = opened(frame[["d", "site", "b", "c", "a"]]).for_model(model)
    assert data.names == tuple("abcd")
    stream = io.BytesIO()
    write_outputs(data, model, stream, "o.csv")
    outputs = pd.read_csv(io.BytesIO(stream.getvalue()))
    assert list(outputs) == ["d", "site", "b", "c", "a"]
    complete = frame.dropna()
    np.testing.assert_allclose(
        outputs.loc[complete.index, list("abcd")], model.transform(complete[list("abcd")])
    )
    assert outputs.loc[[4, 40], list("abcd")].isna().all(axis=None)
    assert data.effect_of(model).rows_used == 88
    assert data.incomplete == [6, 42]
    with pytest.raises(InvalidTableError, match=r"columns of the model are missing: a, c"):
        opened(frame[["b", "d"]]).for_model(model)


def test_a_matrix_goes_the_same_way(frame):
    R = frame[list("abcd")].corr()
    given = open_file(R.to_csv().encode(), name="matrix.csv")
    data = given.choose(Request(exclude=("c",)))
    fit = data.fit({"rho_min": 0.9})
    assert data.names == ("a", "b", "d")
    assert fit.check.passed
    T = pd.read_csv(written(fit, "T.csv"), index_col=0)
    np.testing.assert_allclose(T.to_numpy(), fit.model.T_, rtol=1e-15)
    with pytest.raises(InvalidArgumentError, match="--weights needs rows"):
        given.choose(Request(weights="a"))
    with pytest.raises(InvalidTableError, match="no column 'e'"):
        given.choose(Request(exclude=("e",)))


def test_a_row_without_a_weight_is_not_used_and_has_outputs(frame):
    holes = frame.copy()
    holes.loc[11, "w"] = np.nan
    data = opened(holes).choose(REQUESTS["weighted"])
    fit = data.fit({"rho_min": 0.9})
    assert data.incomplete == [6, 13, 42]
    assert not any("weight zero" in note for note in data.choices())
    outputs = pd.read_csv(written(fit, "o.csv"))
    assert np.flatnonzero(outputs["a"].isna()).tolist() == [4, 40]


@pytest.mark.parametrize("ending", ["xlsx", "parquet"])
def test_numbers_that_pass_through_are_numbers_in_typed_files(frame, ending):
    german = frame.assign(n=[None, *range(89)], plz=[f"0{k}" for k in range(1000, 1090)])
    text = german.to_csv(index=False, sep=";", decimal=",").encode("cp1252")
    data = open_file(text, name="t.csv").choose(Request(exclude=("w", "plz", "n"), target="y"))
    stream = written(data.fit({"rho_min": 0.9}), f"o.{ending}")
    if ending == "xlsx":
        outputs = pd.read_excel(stream, engine="openpyxl", dtype={"plz": str})
    else:
        outputs = pd.read_parquet(stream)
    np.testing.assert_allclose(outputs["y"].astype(float), frame["y"], rtol=1e-14)
    assert outputs["y"].dtype == float
    assert outputs["n"].tolist()[1:] == [*range(89)]
    if ending == "parquet":
        assert str(pq.read_schema(stream).field("n").type) == "int64"
    assert outputs["plz"].tolist() == german["plz"].tolist()


def test_columns_that_pass_through_keep_their_spelling_and_their_type(frame):
    counted = frame.assign(n=[f"{k}.50" for k in range(90)], k=np.arange(90))
    request, typed = Request(columns=tuple("abcd")), io.BytesIO()
    fit = opened(counted).choose(request).fit({"rho_min": 0.9})
    outputs = pd.read_csv(written(fit, "o.csv"), dtype=str)
    assert outputs[["n", "k"]].equals(counted[["n", "k"]].astype(str))
    counted.to_parquet(typed)
    data = open_file(typed.getvalue(), name="t.parquet").choose(request)
    outputs = pd.read_parquet(written(data.fit({"rho_min": 0.9}), "o.parquet"))
    assert outputs[["n", "k"]].equals(counted[["n", "k"]])
