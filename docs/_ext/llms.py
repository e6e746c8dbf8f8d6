"""Write llms.txt beside the site: every page with its title and its first sentence."""

from pathlib import Path

from docutils import nodes

ORDER = ("index", "start", "guide/", "gallery/", "theory/", "api/")


def _place(name: str) -> tuple[int, str]:
    places = [place for place, start in enumerate(ORDER) if name.startswith(start)]
    return (places[0] if places else len(ORDER), name)


def _first_sentence(page: nodes.document) -> str:
    section = next(iter(page.findall(nodes.section)), page)
    for child in section.children:
        if isinstance(child, nodes.paragraph):
            text = " ".join(child.astext().split())
            return text.split(". ")[0].rstrip(".:") + "."
    return ""


def write(app, failure):
    """Called when the pages have been written."""
    if failure is not None or app.builder.format != "html":
        return
    lines = [
        "# scikit-coral",
        "",
        "> " + _first_sentence(app.env.get_doctree("index")),
        "",
        "The text of page NAME.html, as it was written, is in _sources/.",
        "",
        "## Pages",
        "",
    ]
    for name in sorted(app.env.found_docs, key=_place):
        if not name.startswith("api/generated/") and name in app.env.titles:
            title = app.env.titles[name].astext()
            told = _first_sentence(app.env.get_doctree(name))
            lines.append(f"- [{title}]({name}.html)" + (f": {told}" if told else ""))
    Path(app.outdir, "llms.txt").write_text("\n".join(lines) + "\n", "utf-8")


def setup(app):
    """Register with Sphinx."""
    app.connect("build-finished", write)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
