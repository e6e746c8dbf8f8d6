"""Build the theory as one article: its pages by Sphinx, printed by Chromium, without network."""

import shutil
import sys
from pathlib import Path

from playwright.sync_api import sync_playwright
from sphinx.cmd.build import build_main

DOCS = Path(__file__).parents[1]
BUILD = DOCS.parent / "build"
STYLE = "width: 100%; text-align: center; font-size: 8pt"
FOOTER = f'<div style="{STYLE}"><span class="pageNumber"></span></div>'


def build() -> Path:
    """Write build/theory.pdf, and return its path."""
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        sys.exit(
            "Chromium is needed to print the article: apt install chromium (and fonts-lmodern)"
        )
    pages, out = BUILD / "article", BUILD / "theory.pdf"
    told = ["-W", "--keep-going", "-q", "-b", "singlehtml", "-c", str(DOCS / "_article")]
    if status := build_main([*told, "-d", str(BUILD / "article-doctrees"), str(DOCS), str(pages)]):
        sys.exit(status)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_page()
        page.goto((pages / "article.html").as_uri())
        page.evaluate("MathJax.startup.promise")
        wrong = page.locator("mjx-merror").count()
        page.pdf(
            path=out,
            prefer_css_page_size=True,
            display_header_footer=True,
            header_template="<span></span>",
            footer_template=FOOTER,
            outline=True,
            tagged=True,
        )
        browser.close()
    if wrong:
        sys.exit(f"{wrong} formulas could not be set.")
    return out


if __name__ == "__main__":
    print(build())
