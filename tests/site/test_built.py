"""The built pages: links and anchors exist, and nothing is loaded from elsewhere."""

import functools
import re
from html.parser import HTMLParser
from urllib.parse import unquote, urlsplit

import pytest

pytestmark = pytest.mark.site


class Page(HTMLParser):
    """The anchors of a page, what it links to, and what it loads."""

    def __init__(self, path):
        super().__init__()
        self.anchors, self.links, self.loaded = {"", "top"}, [], []
        self.feed(path.read_text("utf-8"))

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        self.anchors |= {attrs[key] for key in ("id", "name") if attrs.get(key)}
        if tag == "a" and attrs.get("href"):
            self.links.append(attrs["href"])
        if tag in ("script", "img", "source", "iframe") and attrs.get("src"):
            self.loaded.append(attrs["src"])
        if tag == "link" and attrs.get("rel") in ("stylesheet", "preload", "icon"):
            self.loaded.append(attrs["href"])


read = functools.cache(Page)


def pages_of(site):
    return sorted(path for path in site.rglob("*.html") if "_static" not in path.parts)


def test_links_and_anchors_lead_somewhere(site):
    broken = []
    pages = pages_of(site)
    assert len(pages) > 100
    for path in pages:
        for link in read(path).links:
            scheme, _, target, _, anchor = urlsplit(link)
            if not scheme:
                other = (path.parent / unquote(target)).resolve() if target else path
                if not other.exists():
                    broken.append(f"{path.relative_to(site)} -> {link}")
                elif other.suffix == ".html" and unquote(anchor) not in read(other).anchors:
                    broken.append(f"{path.relative_to(site)} -> {link} (no such anchor)")
    assert broken == []


def test_pages_load_only_files_of_the_site(site):
    for path in pages_of(site):
        for source in read(path).loaded:
            scheme, host, target, _, _ = urlsplit(source)
            assert not host, f"{path.relative_to(site)} loads {source}"
            if scheme != "data":
                assert (path.parent / unquote(target)).exists(), f"{path}: {source}"


def test_llms_txt_lists_pages_that_exist(site):
    text = (site / "llms.txt").read_text("utf-8")
    assert text.startswith("# scikit-coral\n\n> Decorrelate variables")
    links = re.findall(r"\]\((\S+\.html)\)", text)
    assert all((site / link).exists() for link in links)
    guide = {f"guide/{path.name}" for path in (site / "guide").glob("*.html")}
    assert guide <= set(links)
