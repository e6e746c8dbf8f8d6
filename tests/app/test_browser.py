"""The app in a real browser, started by ``coral app``: shown, operated, and its downloads."""

import itertools
import re

import numpy as np
import pandas as pd
import pytest
from playwright.sync_api import expect

from skcoral import api
from skcoral.choosing import compare_floors

pytestmark = [
    pytest.mark.browser,
    pytest.mark.filterwarnings("ignore::skcoral.exceptions.NotCertifiedWarning"),
]

# A loaded machine is slow to start; what is expected comes in the end.
expect.set_options(timeout=60_000)
# Without a graphics card, every frame of an animation is drawn by the processor.
STILL = """
addEventListener("DOMContentLoaded", () => {
  const sheet = new CSSStyleSheet();
  sheet.replaceSync("* { animation: none !important; transition: none !important }");
  document.adoptedStyleSheets = [sheet];
});
"""
# Names that would do harm if anything took them for markup.
HOSTILE = '<img src="http://e.vil/p.png" onerror="document.title=1">'
NAMES = ["height", "weight", HOSTILE, "![x](http://e.vil/q.png)"]


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(7)
    return 10 + rng.normal(size=(120, 1)) + rng.normal(size=(120, 4))


@pytest.fixture(scope="module")
def upload_page(visit, server):
    """The page of uploads, which takes a browser seconds to open; nothing on it is animated."""
    return visit(server.url, script=STILL)


@pytest.fixture(scope="module")
def people(upload_page, table):
    """The page with a table that was brought, and the table."""
    frame = pd.DataFrame(table, columns=NAMES)
    frame.insert(1, "who", [f"p{i}" for i in range(120)])
    put(upload_page, "people.csv", frame.to_csv(index=False).encode())
    wait_until_idle(upload_page)
    return upload_page, frame


def check_quiet(page, server):
    """Nothing was asked for elsewhere, and no script failed."""
    here = (server.url, server.url.replace("http", "ws"), "data:", "blob:")
    assert [url for url in page.requests if not url.startswith(here)] == []
    assert [problem for problem in page.problems if problem.startswith("script")] == []


def put(page, name, data):
    """Upload a file."""
    page.locator("input[type=file]").set_input_files(
        {"name": name, "mimeType": "text/csv", "buffer": data}
    )


def metric(page, label):
    """The value that is shown under a label."""
    box = page.get_by_test_id("stMetric").filter(has_text=label)
    return box.get_by_test_id("stMetricValue")


def wait_until_idle(page):
    """Wait until the app is idle and its pictures are drawn."""
    expect(page.get_by_test_id("stMetric").first).to_be_visible()
    expect(page.get_by_test_id("stStatusWidget")).to_have_count(0)
    expect(page.get_by_test_id("stImage").first).to_be_visible()


def shown(value):
    """A residual as the app writes it."""
    return f"{value:#.4g}"


def edges(part):
    """Where a part of the page begins and ends, from the top of the window."""
    box = part.bounding_box()
    return box["y"], box["y"] + box["height"]


def fits(page):
    """No sideways scrolling."""
    return page.evaluate(
        "[document.documentElement, ...document.querySelectorAll('[data-testid=stMain]')]"
        ".every(e => e.scrollWidth <= e.clientWidth + 1)"
    )


def test_upload_move_and_download(people, table, server, photograph):
    page, frame = people
    R = np.corrcoef(table, rowvar=False)
    floor = compare_floors(R).recommended.rho_min
    expect(metric(page, "Residual")).to_have_text(shown(api.decorrelate(R, floor).objective))

    # The slider by keyboard: three steps of a thousandth.
    slider = page.get_by_role("slider", name=re.compile("Floor"))
    slider.focus()
    for _ in range(3):
        slider.press("ArrowLeft")
    result = api.decorrelate(R, round(floor - 0.003, 3))
    expect(metric(page, "Residual")).to_have_text(shown(result.objective))
    expect(metric(page, "Weakest fidelity")).to_have_text(f"{result.min_fidelity:.4f}")
    proved = f"smaller sum of squared residual correlations than {result.objective:.6g}"
    expect(page.get_by_text(proved)).to_be_visible()

    page.get_by_role("tab", name="Downloads").click()
    with page.expect_download() as download:
        page.get_by_role("button", name="Decorrelated table").click()
    assert download.value.suggested_filename == "people-decorrelated.csv"
    downloaded = pd.read_csv(download.value.path())
    Z = (table - table.mean(axis=0)) / table.std(axis=0, ddof=1)
    assert list(downloaded.columns) == list(frame.columns)
    assert np.allclose(downloaded[NAMES].to_numpy(), Z @ result.T, atol=1e-9)
    assert downloaded["who"].tolist() == frame["who"].tolist()
    G = np.corrcoef(downloaded[NAMES].to_numpy(), rowvar=False)
    assert 0.5 * ((G - np.eye(4)) ** 2).sum() == pytest.approx(result.objective, rel=1e-6)

    check_quiet(page, server)
    assert page.locator("img[src*='e.vil']").count() == 0
    assert page.title().startswith("CORAL")
    # Matplotlib keeps a list of the fonts that it found.
    left_behind = (path for path in server.folder.rglob("*") if path.is_file())
    assert [str(path) for path in left_behind if "matplotlib" not in path.parts] == []
    photograph(page, "app-upload.png")


def test_pages_fit_and_follow_the_theme(people, server, photograph):
    page, _ = people
    page.get_by_role("tab").first.click()
    page.get_by_test_id("stMain").evaluate("e => e.scrollTo(0, 0)")
    sizes = {390: 844, 1280: 800}
    for width, scheme in itertools.product(sizes, ("light", "dark")):
        page.set_viewport_size({"width": width, "height": sizes[width]})
        page.emulate_media(color_scheme=scheme)
        expect(page.locator(".stApp")).to_have_css("color-scheme", scheme)
        wait_until_idle(page)
        colour = page.evaluate("getComputedStyle(document.querySelector('.stApp')).backgroundColor")
        brightness = sum(map(int, re.findall(r"\d+", colour)[:3])) / 3
        assert (brightness > 200) if scheme == "light" else (brightness < 60)
        assert fits(page)
        # the slider, the figures of the answer in one row, and beside or below them the curve or
        # the verdict, at once and without scrolling
        figures = page.get_by_test_id("stMetric")
        assert len({edges(part)[0] for part in figures.all()}) == 1
        slider, figure = edges(page.get_by_role("slider").first), edges(figures.first)
        curve = edges(page.get_by_test_id("stImage").first)
        verdict = edges(page.get_by_test_id("stAlert").first)
        seen = curve if width > 640 else verdict
        assert 0 <= slider[0] < slider[1] <= figure[0] < figure[1] <= seen[0] < seen[1]
        assert seen[1] <= sizes[width]
        assert width > 640 or verdict[1] <= curve[0]
        photograph(page, f"app-{width}-{scheme}.png")
    check_quiet(page, server)
