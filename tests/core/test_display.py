"""Results in notebooks: small, safe HTML; a summary; a plot; labelled loadings."""

from __future__ import annotations

from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest

from skcoral import CORAL, decorrelate, frontier, threshold
from skcoral.datasets import load_wine
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


def test_an_unfitted_transformer_says_so():
    coral = CORAL(max_vif=2)
    assert coral.summary() == "CORAL(max_vif=2): not fitted yet."
    assert "not fitted" in coral._repr_html_()
    assert coral._repr_mimebundle_()["text/plain"] == "CORAL(max_vif=2)"


def test_html_has_no_control_characters():
    names = ["a\x00\x1b[31m", "\N{RIGHT-TO-LEFT OVERRIDE}evil", "line\x0bfeed", "<script>{{ 7*7 }}"]
    X = pd.DataFrame(np.random.default_rng(0).normal(size=(30, 4)), columns=names)
    text = CORAL().fit(X)._repr_html_()
    assert all(c.isprintable() or c == "\n" for c in text)
    assert "&lt;script&gt;{{ 7*7 }}" in text
