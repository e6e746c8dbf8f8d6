"""Write llms.txt beside the site: every page with its title and its first sentence."""

from pathlib import Path

from docutils import nodes


def _first_sentence(page):
    section = next(iter(page.findall(nodes.section)), page)
    for child in section.children:
        if (
            isinstance(child, nodes.paragraph)
            and child.astext()
            and not child.next_node(nodes.image)
        ):
            text = " ".join(child.astext().split())
            return text.split(". ")[0].rstrip(".:") + "."
    return ""


def _in_order(env, name):
    yield name
    for child in env.toctree_includes.get(name, ()):
        if not child.startswith("api/generated/"):
            yield from _in_order(env, child)


def write(app, failure):
    """Called when the pages have been written."""
    if failure is not None or app.builder.format != "html":
        return
    pages = list(_in_order(app.env, "index"))
    told = {name: _first_sentence(app.env.get_doctree(name)) for name in pages}
    lines = [
        "# scikit-coral",
        "",
        f"> {told['index']}",
        "",
        "The text of page NAME.html, as it was written, is in _sources/.",
        "",
        "## Pages",
        "",
        *(
            f"- [{app.env.titles[name].astext()}]({name}.html)"
            + f": {told[name]}" * bool(told[name])
            for name in pages[1:]
        ),
    ]
    Path(app.outdir, "llms.txt").write_text("\n".join(lines) + "\n", "utf-8")


def setup(app):
    """Register with Sphinx."""
    app.connect("build-finished", write)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
