"""Settings of the theory as one article: `make theory-pdf` builds it into build/theory.pdf."""

from docutils import nodes

from skcoral import __version__

project = "scikit-coral"
version = release = __version__
root_doc = "article"
include_patterns = ["article.rst", "theory/*.md", "reproduction.md"]
exclude_patterns = ["theory/index.md"]
extensions = ["sphinx.ext.mathjax", "sphinx-mathjax-offline", "myst_parser", "sphinx_design"]
myst_enable_extensions = ["dollarmath", "amsmath", "colon_fence", "deflist", "attrs_inline"]
myst_heading_anchors = 3
suppress_warnings = ["myst.xref_missing"]  # links to pages of the site, which stay as text
numfig = True  # equations carry the number of their section, as on the site
html_theme = "basic"
html_static_path = ["article.css"]
html_css_files = ["article.css"]
html_show_sphinx = html_show_copyright = html_show_sourcelink = html_copy_source = False
html_sidebars = {"**": []}
pygments_style = "bw"


def remove_checks(app, tree):
    """Leave the numerical checks to the site, where they can be opened."""
    for node in list(tree.findall(nodes.container)):
        if node.get("design_component") == "dropdown":
            node.parent.remove(node)


def keep_text(app, env, node, text):
    """Show a link to a page that is not part of the article as its text."""
    return text


def setup(app):
    """Run before references are resolved."""
    app.connect("doctree-read", remove_checks)
    app.connect("missing-reference", keep_text)
