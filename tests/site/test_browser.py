"""Pages of the site in a real browser: wide and narrow, light and dark."""

import functools
import http.server
import threading

import pytest

pytestmark = [pytest.mark.site, pytest.mark.browser]

PAGES = {
    "home": "index.html",
    "guide": "guide/floor.html",
    "theory": "theory/index.html",
    "gallery": "gallery/index.html",
    "example": "gallery/plot_01_wine_tour.html",
    "api": "api/generated/skcoral.decorrelate.html",
    "class": "api/generated/skcoral.CORAL.html",
}


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


@pytest.fixture(scope="module")
def address(site):
    handler = functools.partial(Quiet, directory=site)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


@pytest.fixture
def open_page(visit, address):
    """Open a page of the site, which asks for nothing elsewhere."""

    pages = []

    def go(path, width=1280, scheme="light"):
        pages.append(visit(address + path, width, scheme))
        pages[-1].wait_for_load_state("networkidle")
        return pages[-1]

    yield go
    requests = [url for page in pages for url in page.requests]
    assert [url for url in requests if not url.startswith((address, "data:", "blob:"))] == []


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (390, "dark")])
@pytest.mark.parametrize("name", PAGES)
def test_the_page_is_whole(open_page, artifacts, name, width, scheme):
    page = open_page(PAGES[name], width, scheme)
    page.screenshot(path=artifacts / f"site-{name}-{width}-{scheme}.png", full_page=True)
    assert page.locator("h1").first.is_visible()
    assert page.evaluate("document.documentElement.dataset.theme") == scheme
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    broken = "[...document.images].filter(i => i.complete && !i.naturalWidth).map(i => i.src)"
    assert page.evaluate(broken) == []
    assert page.problems == []


def test_formulas_are_typeset_without_another_machine(open_page):
    page = open_page("theory/tradeoff.html")
    page.wait_for_selector("mjx-container", timeout=30_000)
    assert page.locator("mjx-merror").count() == 0
    assert page.problems == []


def test_code_has_a_copy_button_and_the_reader_can_change_the_colours(open_page):
    page = open_page(PAGES["guide"], scheme="light")
    assert page.locator("button.copybtn").count() > 0
    page.locator(".theme-switch-button:visible").click()
    page.locator("[data-mode=dark]:visible").first.click()
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"


def test_search_finds_the_threshold(open_page):
    page = open_page("search.html?q=threshold")
    page.wait_for_selector("#search-results ul.search li a", timeout=30_000)
    titles = page.locator("#search-results ul.search li a").all_inner_texts()
    assert any("threshold" in title.lower() for title in titles)
    assert page.problems == []
