"""Settings of the documentation site: `make docs` builds it into build/site, without network."""

import os
import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "_ext"))

from numpydoc.xref import DEFAULT_LINKS

from skcoral import __version__

project = "scikit-coral"
author = "scikit-coral maintainers"
copyright = "scikit-coral maintainers, BSD-3-Clause"
version = release = __version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "sphinx-mathjax-offline",
    "numpydoc",
    "myst_parser",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
    "llms",
]
exclude_patterns = ["_build", "article.rst"]  # the article has settings of its own
nitpicky = True
numfig = True  # equations carry the number of their page, so that other pages can refer to them

# Pages in Markdown
myst_enable_extensions = ["dollarmath", "amsmath", "colon_fence", "deflist", "attrs_inline"]
myst_heading_anchors = 3
# "## A heading" of an included page may begin below its title.
suppress_warnings = ["myst.header"]

# API pages from docstrings
autosummary_generate = True
autodoc_typehints = "none"
default_role = "literal"
numpydoc_show_class_members = False
# Types of this package become links; those of others do not, because that takes a network.
DEFAULT_LINKS.clear()
numpydoc_xref_param_type = True
numpydoc_xref_ignore = "all"
numpydoc_xref_aliases = {
    name: f"skcoral.{home}{name}"
    for home, names in {
        "": ["CORAL"],
        "core.results.": ["Threshold", "Decorrelation", "Frontier", "Certificate"],
        "choosing.": ["FloorComparison", "Choice"],
        "certificates.": ["Check", "CertificateFile", "Claim"],
        "solvers.support.": ["Exactness"],
        "baselines.": ["Baseline"],
        "data.correlation.": ["CorrelationEstimate"],
        "stability.": ["Holdout", "Bootstrap", "ConfidentFloors", "Influence"],
        "data.effects.": ["Measured"],
        "data.moments.": ["Moments"],
        "panels.": ["Panel", "Bets"],
        "tables.": ["Table"],
        "core.limits.": ["Limits"],
        "show.report.": ["ReportFacts"],
        "datasets.": ["Dataset", "NamedCorrelation"],
        "paper.": ["Cell", "Reproduction", "Row"],
    }.items()
    for name in names
}

# The gallery: examples are run, and one that raises an error stops the build.
sphinx_gallery_conf = {
    "examples_dirs": "../examples/gallery",
    "gallery_dirs": "gallery",
    "filename_pattern": r"/plot_",
    "abort_on_example_error": True,
    "download_all_examples": False,
    "show_memory": False,
    "show_signature": False,
    "remove_config_comments": True,
    "ignore_repr_types": r"skcoral\.plotting|matplotlib",
    "within_subsection_order": "FileNameSortKey",
    "nested_sections": False,
    "write_computation_times": False,
    "parallel": True,  # as many examples at a time as pages
}
os.environ.setdefault("OMP_NUM_THREADS", "1")

# What a reader copies is what has to be typed.
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
copybutton_exclude = ".linenos, .gp, .go"

templates_path = ["_templates"]
html_theme = "pydata_sphinx_theme"
html_title = "scikit-coral"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_favicon = "_static/favicon.svg"
html_show_sourcelink = False
html_theme_options = {
    "logo": {
        "text": "scikit-coral",
        "image_light": "_static/logo.svg",
        "image_dark": "_static/logo.svg",
    },
    "navbar_align": "left",
    "header_links_before_dropdown": 6,
    "show_toc_level": 2,
    "navigation_with_keys": False,
    "footer_start": ["copyright"],
    "footer_end": ["theme-version"],
    "article_footer_items": [],
    "secondary_sidebar_items": ["page-toc"],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
html_context = {"default_mode": "auto"}  # as the reader has set it
html_sidebars = {"index": [], "start": [], "whats_new": [], "benchmarks": []}

# Of MathJax's files, those that pages load: its TeX input, its HTML output, menu and speech.
MATHJAX = [
    *("tex-chtml.js", "input/tex", "output/chtml", "ui", "a11y"),
    *("sre/mathmaps/base.json", "sre/mathmaps/en.json"),
]


def remove_unused_mathjax(app, exception):
    """Delete the other outputs and languages, which make up most of the site."""
    folder = Path(app.outdir) / "_static" / "mathjax"
    for path in sorted(folder.rglob("*"), reverse=True):
        name = path.relative_to(folder).as_posix()
        if not any(f"{name}/".startswith(f"{kept}/") for kept in MATHJAX):
            if path.is_file():
                path.unlink()
            elif not any(path.iterdir()):
                path.rmdir()


def setup(app):
    """Read pages in parallel; clean up after the extension that copies MathJax into the site."""
    # it only copies files at the end, but does not declare that pages may be read in parallel
    app.extensions["sphinx-mathjax-offline"].parallel_read_safe = True
    app.connect("build-finished", remove_unused_mathjax, priority=900)
