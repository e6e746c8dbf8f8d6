"""The report: the right numbers, safe whatever the columns are called, whole in a real browser."""

from __future__ import annotations

import html
import re
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest
from sklearn.model_selection import KFold

from skcoral import CORAL, threshold
from skcoral.show import report, sentences, svg

EVIL = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(2)>',
    "a & b",
    "'quoted' \"name\"",
    "line\nbreak\x1b[31m\x00",
    "</style><style>*{display:none}",
    "\u202eright to left",
    "ρ★ ü 漢字",
]


class Page(HTMLParser):
    """What a page is made of: its elements, their attributes and its text."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.attributes, self.text, self.open = set(), [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        self.attributes += attrs
        if tag not in ("meta", "br", "img"):
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.add(tag)
        self.attributes += attrs

    def handle_endtag(self, tag):
        assert self.open
        assert self.open[-1] == tag
        self.open.pop()

    def handle_data(self, data):
        self.text.append(data)


def evil_table(n=120):
    rng = np.random.default_rng(7)
    X = rng.normal(size=(n, len(EVIL))) + rng.normal(size=(n, 1))
    return pd.DataFrame(X, columns=EVIL)


@pytest.fixture(scope="module")
def wine_facts(wine):
    X = wine.to_frame()
    return report.gather(
        CORAL(rho_min=0.85).fit(X), X=X, title="wine.csv", command="coral fit wine.csv", notes=["N"]
    )


@pytest.fixture(scope="module")
def wine_page(wine_facts):
    return report.render(wine_facts)


@pytest.fixture(scope="module")
def evil_facts():
    X = evil_table()
    return report.gather(
        CORAL(rho_min=0.9).fit(X), X=X, title=EVIL[0], command=EVIL[1], notes=[EVIL[2], EVIL[5]]
    )


@pytest.fixture(scope="module")
def evil_page(evil_facts):
    return report.render(evil_facts)


def test_numbers_are_those_of_the_result(wine_facts, wine_page, wine, conic_optimum):
    text = html.unescape(wine_page)
    assert len(wine_facts.frontier.rho_min) == 25
    assert wine_facts.measured.headline() in text
    assert sentences.certificate(wine_facts.result) in text
    assert f"{conic_optimum(wine.correlation, 0.85):.6g}" in text
    th = threshold(wine.correlation)
    assert f"{th.lower:.9f} to {th.upper:.9f}" in text
    assert "independent check</dt><dd>passed" in text
    vif = np.diag(np.linalg.inv(wine.correlation))
    for name, f, price, inflation in zip(
        wine.names, wine_facts.result.fidelity, wine_facts.result.prices, vif, strict=True
    ):
        row = next(line for line in text.split("<tr>") if f">{name}</bdi></td><td>{f:.4f}" in line)
        assert f"<td>{price:.4g}</td>" in row
        assert f">{name}</bdi></td><td>{inflation:.2f}</td>" in text
    T = wine_facts.result.T  # what an output is made of, the largest coefficients first
    made_of = text.partition("What each output is made of")[2].split("<tr>")[2:]
    for row, column in zip(made_of, T.T, strict=True):
        largest = np.argsort(-np.abs(column))[:4]
        assert [float(x) for x in re.findall(r" (\d\.\d{3})", row)] == pytest.approx(
            np.abs(column[largest]), abs=6e-4
        )
        terms = re.findall(r"<bdi title=\"(.*?)\"", row)[1:]
        assert terms == [wine.names[i] for i in largest]
        assert "and 9 smaller" in row


def test_what_an_exact_result_leaves_is_zero_and_not_rounding(wine):
    page = report.render(report.gather(CORAL().fit(wine.to_frame()), n_points=0))
    for figure in ("residual", "lower bound", "gap"):
        assert f"<dt>{figure}</dt><dd>0</dd>" in page


def test_groups_are_held_out_whole_and_said(wine):
    X, groups = wine.to_frame(), np.arange(178) % 20
    coral = CORAL(rho_min=0.85).fit(X)
    facts = report.gather(coral, X=X, known={"groups": groups}, n_points=0)
    assert facts.holdout.left_out == "groups"
    assert "Fitted 5 times without one part of the groups" in report.render(facts)
    three = report.gather(coral, X=X, known={"groups": groups % 3}, n_points=0)
    assert three.holdout is None
    assert "No hold-out table: it needs 4 or more groups." in three.notes


@pytest.mark.parametrize(("n", "folds"), [(8, 0), (19, 0), (20, 5)])
def test_parts_that_are_held_out_have_rows_enough_for_a_correlation(wine, n, folds):
    X = wine.to_frame().iloc[:n, :2]
    facts = report.gather(CORAL(0.95).fit(X), X=X, n_points=0)
    assert (0 if facts.holdout is None else len(facts.holdout.criterion_new)) == folds
    assert any("it needs 20 or more rows" in note for note in facts.notes) == (not folds)
    assert folds == 0 or (facts.holdout.fidelity_new < 1).all()  # of two rows, each is 1 or -1
    report.render(facts)


def test_a_column_that_is_constant_in_a_part_is_told_and_leaves_the_rest(wine):
    X = wine.to_frame().iloc[:60, :3].assign(rare=[1.0] * 2 + [0.0] * 58)
    facts = report.gather(CORAL(0.9).fit(X), X=X, n_points=0)
    assert facts.holdout is None
    assert any(note.startswith("No hold-out table") and "`rare`" in note for note in facts.notes)
    assert "On rows not used for fitting" not in report.render(facts)


def test_weighted_rows_are_held_out_where_they_tell_enough(wine):
    """Ten rows that count and many that hardly do are as few as ten rows."""
    X, few = wine.to_frame().iloc[:, :4], np.full(178, 1e-3)
    few[:10] = 1.0
    for weights, measured in ((few, False), (np.linspace(1, 3, 178), True)):
        known = {"sample_weight": weights}
        facts = report.gather(CORAL(0.9).fit(X, **known), X=X, known=known, n_points=0)
        assert (facts.holdout is not None) == measured
        assert any("20 or more equally weighted rows" in note for note in facts.notes) != measured
    # E r² of independent columns is about 1 / (n - 1) for as many rows as the weighted ones tell
    n = weights.sum() ** 2 / (weights @ weights) / 5
    assert facts.holdout.criterion_noise.mean() == pytest.approx(6 / (n - 1), rel=0.15)
    # every fold has its share of the few rows that count: of two, each |r| would be 1
    few[:25] = 1.0
    known = {"sample_weight": few * 1e-6}
    facts = report.gather(CORAL(0.9).fit(X, **known), X=X, known=known, n_points=0)
    assert facts.holdout.fidelity_new.max() < 1.0 - 1e-6
    assert facts.holdout.criterion_noise.max() < 6 / 3  # six pairs, about five rows
    assert "25 equally weighted ones, for 4 variables" in report.render(facts)


@pytest.mark.browser
def test_wide_screens_show_two_sections_side_by_side(wine_view):
    page = wine_view()
    boxes = {
        title: page.locator("section", has=page.get_by_role("heading", name=title)).bounding_box()
        for title in ("What was asked", "Certificate", "Fidelity and prices", "The trade-off")
    }
    assert boxes["What was asked"]["y"] == boxes["Certificate"]["y"]
    assert boxes["Fidelity and prices"]["y"] == boxes["The trade-off"]["y"]
    assert boxes["The trade-off"]["x"] + boxes["The trade-off"]["width"] > 0.9 * 1280
    # no table is cut off in its half of the page
    inside = "all => all.every(e => e.scrollWidth <= e.clientWidth)"
    assert page.eval_on_selector_all(".columns > section:not(.full) .scroll", inside)
    wine_view(800)
    asked = page.locator("section", has=page.get_by_role("heading", name="What was asked"))
    assert asked.bounding_box()["width"] > 700


def test_held_out_residual_stands_beside_raw_table_and_noise(wine_facts, wine_page, wine):
    holdout = wine_facts.holdout
    # independent columns: E r² = 1 / (n - 1) for each of the 78 pairs
    assert holdout.criterion_noise.mean() == pytest.approx(78 / (178 / 5 - 1), rel=0.05)
    folds = KFold(5, shuffle=True, random_state=0).split(wine.data)
    raw = [0.5 * ((np.corrcoef(wine.data[new].T) - np.eye(13)) ** 2).sum() for _, new in folds]
    np.testing.assert_allclose(holdout.criterion_raw, raw)
    assert holdout.sentence() in html.unescape(wine_page)
    assert "add to the least possible residual" in html.unescape(wine_page)
    for figure in (holdout.criterion_new, holdout.criterion_raw, holdout.criterion_noise):
        assert f"{figure.mean():.4g}" in holdout.sentence()


@pytest.mark.parametrize("asked", [{"rho_min": 0.85}, {"rho_min": {"ash": 0.9}}, {"max_vif": 1.5}])
def test_marks_of_lower_fidelities_agree_with_the_figures_beside_them(wine, asked):
    X = wine.to_frame().iloc[:, :6]
    facts = report.gather(CORAL(**asked).fit(X), X=X, n_points=0)
    text = html.unescape(report.render(facts))
    held_out = text.split("On rows not used for fitting")[1].split("</section>")[0]
    cells = re.findall(r"<td>([\d.]+)</td><td>([\d.]+)( ▾)?</td>", held_out)
    assert len(cells) == 6
    assert all((float(new) < float(fitted)) == bool(mark) for fitted, new, mark in cells)
    # a limit has another highest floor in every fold, some of them below that of all rows
    are_kept = (facts.holdout.fidelity_fitted >= facts.result.rho_min - 1e-9).all()
    assert are_kept == ("max_vif" not in asked)
    assert ("Floors are kept on the rows fitted" in held_out) == are_kept


@pytest.mark.filterwarnings("ignore::skcoral.exceptions.SingularCorrelationWarning")
def test_dependent_columns_have_no_threshold():
    X = pd.DataFrame(np.random.default_rng(0).normal(size=(40, 2)), columns=["a", "b"])
    X["sum"] = X["a"] + X["b"]
    text = html.unescape(report.render(report.gather(CORAL().fit(X), X=X, n_points=0)))
    assert "ρ★" not in text
    assert "least residual of this rank" in text
    assert "<dt>highest floor with the least residual</dt>" in text


@pytest.mark.filterwarnings("ignore::skcoral.exceptions.SingularCorrelationWarning")
@pytest.mark.filterwarnings("ignore::skcoral.exceptions.NotCertifiedWarning")
def test_points_of_a_curve_that_are_not_certified_are_counted(wine):
    facts = report.gather(CORAL(0.9).fit(wine.to_frame()), n_points=3)
    assert "All points are certified." in report.render(facts)
    X = wine.to_frame().iloc[:, 1:4]
    X["copy"] = X["ash"]
    facts = report.gather(CORAL(0.9).fit(X), n_points=4)
    curve = facts.frontier
    gap = curve.objective - curve.lower_bound
    count = int((gap > 1e-6 * np.maximum(1, curve.objective)).sum())
    assert count > 0
    page = report.render(facts)
    assert f"{count} of 4 points" in page
    assert f"{gap.max():.2g}" in page


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"rho_min": 0.9, "covariance": "OAS"}, "<dt>correlations</dt><dd>estimated by OAS</dd>"),
        ({"max_correlation": 0.3}, "the highest common fidelity with no |r| above 0.3"),
        ({"max_vif": 1.2}, "the highest common fidelity with no VIF above 1.2"),
        ({"max_vif": 1.2}, "no transformation within this limit can keep more"),
        ({"budget": 0.1}, "with at most 0.1 residual"),
    ],
)
def test_what_was_asked_is_told(wine, asked, words):
    coral = CORAL(**asked).fit(wine.to_frame().iloc[:, :5])
    page = html.unescape(report.render(report.gather(coral, n_points=0)))
    assert words in page
    assert "The trade-off" not in page


def test_supports_are_not_called_exact(wine):
    X = wine.to_frame()
    coral = CORAL(support=[("alcohol", "proline")]).fit(X)
    text = html.unescape(report.render(report.gather(coral, n_points=3)))
    assert coral.result_.objective > 1  # most pairs stay as they are
    assert "within the support (no floor given)" in text
    assert "curve is for unrestricted coefficients" in text


@pytest.mark.parametrize("page", ["wine_page", "evil_page"])
def test_no_script_no_request_no_handler(page, request):
    text = request.getfixturevalue(page)
    parsed = Page(text)
    assert parsed.open == []
    assert not parsed.tags & {"script", "link", "iframe", "img", "object", "embed", "form", "base"}
    for name, value in parsed.attributes:
        assert not name.startswith("on")
        if name in ("src", "href", "xlink:href"):
            assert value.startswith(("data:image/png;base64,", "#"))
    assert "default-src 'none'" in text
    assert not re.search(r"https?://", text)
    assert not re.search(r"url\((?!#)|@import", text)


def test_names_are_text(evil_page):
    assert "<script" not in evil_page
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in evil_page
    assert "\x1b" not in evil_page
    assert "\x00" not in evil_page
    assert evil_page.count("</style>") == 1
    shown = "".join(Page(evil_page).text)
    for name in (EVIL[0], EVIL[1], EVIL[2], EVIL[3], EVIL[5], EVIL[7]):
        assert name in shown


def test_the_top_says_what_when_and_how_many(wine):
    from datetime import date

    X = wine.to_frame()
    facts = report.gather(CORAL(0.85).fit(X), title="T", file="wine <3>.csv", n_points=0)
    page = report.render(facts)
    top = page[page.index("<h1>") : page.index("<main")]
    day = f"{date.today().day} {date.today():%B %Y}"
    for part in ("<h1>T</h1>", "wine &lt;3&gt;.csv", day, "178 of 178 rows used"):
        assert part in top
    assert facts.measured.headline() in html.unescape(top)


def test_a_failure_is_marked_only_where_there_is_one(wine):
    facts = report.gather(CORAL(0.85).fit(wine.to_frame()), n_points=0)
    assert 'class="promise"' in report.render(facts)
    doubtful = replace(facts, result=replace(facts.result, status="best_found"))
    assert 'class="promise open"' in report.render(doubtful)
    assert 'class="promise failed"' in report.render(
        replace(facts, check=replace(facts.check, passed=False, problems=("x",)))
    )


@pytest.mark.parametrize(("p", "figures"), [(15, True), (16, False)])
def test_cells_hold_their_numbers_up_to_fifteen_variables(p, figures):
    M = np.full((p, p), 0.34)
    names = [f"a rather long name of variable {j}" for j in range(p)]
    picture = svg.heat_map(M, names, "t")
    assert (">.34</text>" in picture) == figures
    assert len(re.findall(r">a [a-z ]*…[a-z ]*e 0</text>", picture)) == 2  # one for each axis


def test_many_variables_stay_light():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 60)) + rng.normal(size=(400, 1))
    facts = report.gather(CORAL().fit(X), n_points=5)
    page = report.render(facts)
    assert len(page) < 400_000
    assert page.count("data:image/png;base64,") == 2
    assert "x59" in page
    assert facts.holdout is None


def test_the_picture_of_a_matrix_is_the_matrix():
    import base64
    import io

    from PIL import Image

    M = np.random.default_rng(0).uniform(-1, 1, size=(7, 7))
    picture = svg.heat_map(M, [f"x{j}" for j in range(7)], "t")
    data = base64.b64decode(re.search(r"data:image/png;base64,([^\"]*)", picture)[1])
    pixels = np.asarray(Image.open(io.BytesIO(data)))
    assert pixels.shape == (7, 7, 4)
    assert np.allclose(pixels[..., 3] / 255, np.abs(M), atol=2 / 255)
    assert np.array_equal(pixels[..., 0] > pixels[..., 2], M >= 0)


@pytest.fixture(scope="module")
def opened(visit, tmp_path_factory):
    """Open the text of a page."""

    def open_page(text):
        path = tmp_path_factory.mktemp("page") / "report.html"
        path.write_text(text, encoding="utf-8")
        return visit(path.as_uri())

    return open_page


@pytest.fixture(scope="module")
def wine_view(opened, wine_page):
    """One page at any width, in light or dark, on a screen or on paper."""
    page = opened(wine_page)

    def look(width=1280, media="screen", color_scheme="light"):
        page.set_viewport_size({"width": width, "height": 900})
        page.emulate_media(media=media, color_scheme=color_scheme)
        return page

    return look


@pytest.mark.browser
class TestInChromium:
    """What a reader sees."""

    @pytest.mark.parametrize("width", [390, 1280])
    def test_opens_quietly_and_fits(self, wine_view, photograph, width):
        page = wine_view(width)
        assert page.problems == []
        assert len(page.requests) == 1
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        small = page.evaluate(
            "[...document.querySelectorAll('h1,h2,p,td,th,dd,dt,li,pre')]"
            ".filter(e => parseFloat(getComputedStyle(e).fontSize) < 12).length"
        )
        assert small == 0
        photograph(page, f"report-{width}.png", full_page=True)

    def test_hostile_names_show_as_text(self, opened, evil_page):
        page = opened(evil_page)
        assert page.problems == []
        assert len(page.requests) == 1
        assert page.locator("td", has_text="<script>alert(1)</script>").count() >= 1
        assert page.locator("h1").inner_text() == "<script>alert(1)</script>"
        assert page.evaluate("document.scripts.length") == 0
        assert page.title().startswith("<script>alert(1)</script>")

    def test_dark_setting_is_followed(self, wine_view):
        page = wine_view()
        colour = "getComputedStyle(document.body).backgroundColor"
        assert page.evaluate(colour) == "rgb(255, 255, 255)"
        wine_view(color_scheme="dark")
        assert page.evaluate(colour) != "rgb(255, 255, 255)"

    def test_prints_on_paper(self, wine_view, artifacts):
        page = wine_view(color_scheme="dark")
        data = page.pdf(path=artifacts / "report.pdf", format="A4")
        assert data.startswith(b"%PDF")
        pages = len(re.findall(rb"/Type\s*/Page\b", data))
        assert 1 <= pages <= 8
        wine_view(700, media="print", color_scheme="dark")
        assert page.evaluate("getComputedStyle(document.body).backgroundColor") in (
            "rgb(255, 255, 255)",
            "rgba(0, 0, 0, 0)",
        )
        assert page.evaluate("document.documentElement.scrollWidth") <= 700

    def test_price_and_residual_are_in_sight_on_a_telephone(self, wine_view):
        page = wine_view(390)
        for place in (4, 5, 6):  # floor, price, largest residual
            cells = page.locator(f".fidelity tbody tr td:nth-child({place})")
            for box in (cells.first.bounding_box(), cells.last.bounding_box()):
                assert box["x"] >= 0
                assert box["x"] + box["width"] <= 390
        fits = "all => all.every(e => e.scrollWidth <= e.clientWidth)"
        assert page.eval_on_selector_all(".fidelity tbody td:not(:first-child)", fits)
        assert page.locator(".fidelity .bar").first.is_visible()


def test_floors_for_the_population_and_their_price(wine):
    X = wine.to_frame()
    sure = CORAL(0.8, confidence=0.95).fit(X)
    facts = report.gather(sure, X=X, n_points=0, folds=3)
    page = report.render(facts)
    text = html.unescape(re.sub("<[^>]*>", " ", page))
    assert sure.confidence_.sentence() in text
    assert "floor raised" in text
    assert f"{sure.confidence_.lower[0]:.4f}" in text
    # held out at the raised floors, judged by those asked for
    np.testing.assert_allclose(facts.holdout.fidelity_fitted.min(axis=0), sure.floors_, atol=0.05)
    assert (facts.holdout.fidelity_fitted >= sure.floors_ - 1e-9).all()
