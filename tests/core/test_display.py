"""Results in notebooks: small, safe HTML; a summary; a plot; labelled loadings."""

from __future__ import annotations

import inspect
import re
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest

from skcoral import CORAL, decorrelate, frontier, threshold
from skcoral.datasets import load_wine
from skcoral.estimator.fitting import Fitting
from skcoral.exceptions import InvalidArgumentError
from skcoral.stability import bootstrap, confident_floors, holdout, influence

EVIL = ["<script>alert(1)</script>", '"><img src=x onerror=alert(2)>', "a & b", "ρ★ 漢字"]


@pytest.fixture(scope="module")
def evil():
    rng = np.random.default_rng(7)
    X = rng.normal(size=(80, 4)) + rng.normal(size=(80, 1))
    return pd.DataFrame(X, columns=EVIL)


DRAWN = ["Threshold", "Decorrelation", "Frontier", "Holdout", "ConfidentFloors", "CORAL"]


@pytest.fixture(scope="module")
def results(evil):
    R = evil.corr()
    return {
        "Threshold": threshold(R),
        "Decorrelation": decorrelate(R, 0.95),
        "Frontier": frontier(R, n_points=30),
        "Holdout": holdout(CORAL(0.9), evil),
        "ConfidentFloors": confident_floors(CORAL(0.9), evil),
        "Bootstrap": bootstrap(CORAL(), evil, n_boot=5),
        "Influence": influence(CORAL(), evil.set_index(evil.index.astype(str) + EVIL[0])),
        "CORAL": CORAL(0.9).fit(evil),
    }


TAGS = {"div", "strong", "br", "table", "thead", "tbody", "tr", "th", "td", "small"}


class Tags(HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.tags, self.styles, self.text = set(), "", ""
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        self.styles += " ".join(value for name, value in attrs if name == "style")
        assert {name for name, _ in attrs} <= {"style", "class"}

    def handle_data(self, data):
        self.text += data


@pytest.mark.parametrize("name", [*DRAWN, "Bootstrap", "Influence"])
def test_html_is_small_safe_and_has_no_colours(results, name):
    text = results[name]._repr_html_()
    page = Tags(text)
    assert page.tags <= TAGS
    assert "color:" not in page.styles
    assert "background" not in page.styles
    assert len(text) < 12_000
    assert page.text.startswith(name)
    if name == "Influence":
        assert EVIL[0] in page.text
    elif name != "Frontier":
        assert all(evil in page.text for evil in EVIL)


@pytest.mark.parametrize("name", DRAWN)
def test_pictures_are_drawn_where_they_are_asked_for(results, name):
    from matplotlib.figure import Figure

    ax = Figure().add_subplot()
    display = results[name].plot(ax)
    assert display.ax_ is ax
    assert ax.has_data()
    assert ax.get_xlabel()


@pytest.mark.parametrize("kind", ["fidelity", "correlations", "coefficients", "frontier"])
def test_pictures_of_a_fit_by_kind(kind):
    from skcoral.show import pictures as plotting

    coral = CORAL(0.95).fit(load_wine().data[:, :4])
    display = coral.plot(kind=kind)
    assert type(display).__name__ in plotting.__all__
    assert display.figure_.axes
    with pytest.raises(InvalidArgumentError, match="kind must be one of 'fidelity'"):
        coral.plot(kind="pie")


def test_summaries_hold_the_numbers(results, evil):
    R = evil.corr().to_numpy()
    th, curve, coral = results["Threshold"], results["Frontier"], results["CORAL"]
    assert f"{th.value:.9f}" in th.summary()
    everything = 0.5 * ((R - np.eye(4)) ** 2).sum()
    assert f"{everything:.6g} at a floor of 1." in curve.summary()
    assert "All points are certified." in curve.summary()
    assert coral.measured_.headline() in coral.summary()
    new = results["Holdout"].fidelity_new.mean(axis=0).min()
    assert f"{new:.4f}" in results["Holdout"].summary()


def test_an_unfitted_transformer_says_so():
    coral = CORAL(max_vif=2)
    assert coral.summary() == "CORAL(max_vif=2): not fitted yet."
    assert "not fitted" in coral._repr_html_()
    assert coral._repr_mimebundle_()["text/plain"] == "CORAL(max_vif=2)"


def test_loadings_are_the_transformation_with_names(evil):
    coral = CORAL(0.9).fit(evil)
    frame = coral.loadings()
    assert list(frame.index) == list(frame.columns) == EVIL
    Z = (evil - evil.mean()) / evil.std()
    np.testing.assert_allclose((Z @ frame).to_numpy(), coral.transform(evil))
    np.testing.assert_array_equal(decorrelate(evil.corr(), 0.9).loadings().columns, EVIL)
    assert list(coral.to_frame().index) == EVIL


def test_loadings_of_composites_name_sources_and_outputs(evil):
    anchors = pd.DataFrame({"mean": np.full(4, 0.25), "first": [1.0, 0, 0, 0]}, index=EVIL)
    frame = CORAL(0.8, anchors=anchors).fit(evil).loadings()
    assert list(frame.index) == EVIL
    assert list(frame.columns) == ["mean", "first"]


def test_the_way_back_returns_frames_under_set_output(evil):
    coral = CORAL(0.9).set_output(transform="pandas").fit(evil)
    outputs = coral.transform(evil)
    assert isinstance(outputs, pd.DataFrame)
    back = coral.inverse_transform(outputs)
    assert isinstance(back, pd.DataFrame)
    assert back.index.equals(evil.index)
    pd.testing.assert_frame_equal(back, evil, atol=1e-9, rtol=0)
    plain = CORAL(0.9).fit(evil.to_numpy())
    assert isinstance(plain.inverse_transform(plain.transform(evil.to_numpy())), np.ndarray)


def test_documented_attributes_are_declared():
    section = inspect.getdoc(CORAL).split("Attributes\n")[1].split("Examples\n")[0]
    documented = {
        n for line in re.findall(r"^([\w, ]+) :", section, re.M) for n in line.split(", ")
    }
    assert documented
    assert documented <= {*Fitting.__annotations__, *dir(CORAL)}


def test_a_summary_says_that_an_optimum_within_a_support_is_one_within_it():
    R = 0.6 ** np.abs(np.subtract.outer(range(4), range(4)))
    chain = [(0, 1), (1, 2), (2, 3)]
    restricted, free = decorrelate(R, 0.97, support=chain), decorrelate(R, 0.97)
    assert restricted.status == free.status == "optimal"
    assert restricted.objective > free.objective + 1e-6
    assert "no transformation with these floors and restrictions has" in restricted.summary()
    assert "no transformation with these floors has" in free.summary()


def test_html_has_no_control_characters():
    names = ["a\x00\x1b[31m", "\N{RIGHT-TO-LEFT OVERRIDE}evil", "line\x0bfeed", "<script>{{ 7*7 }}"]
    X = pd.DataFrame(np.random.default_rng(0).normal(size=(30, 4)), columns=names)
    text = CORAL().fit(X)._repr_html_()
    assert all(c.isprintable() or c == "\n" for c in text)
    assert "&lt;script&gt;{{ 7*7 }}" in text
