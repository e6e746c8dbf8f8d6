"""Pages in Markdown: their sessions are correct, their code compiles, their links exist."""

import ast
import doctest
import importlib
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = sorted((ROOT / "README.md", *DOCS.rglob("*.md")))


def page_name(page):
    return page.relative_to(ROOT).as_posix()


def text_of(page):
    """The text of a page, with the file that it includes in place of its own."""
    text = page.read_text("utf-8")
    included = re.search(r"```{include} (\S+)", text)
    return (page.parent / included.group(1)).read_text("utf-8") if included else text


@pytest.mark.parametrize("page", PAGES, ids=page_name)
def test_the_sessions_on_the_page_are_true(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```pycon\n(.*?)```", page.read_text("utf-8"), re.DOTALL)
    session = doctest.DocTestParser().get_doctest("\n".join(blocks), {}, page.name, page.name, 0)
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    assert runner.run(session).failed == 0


@pytest.mark.parametrize("page", PAGES, ids=page_name)
def test_the_code_on_the_page_compiles_and_its_imports_exist(page):
    for block in re.findall(r"```python\n(.*?)```", page.read_text("utf-8"), re.DOTALL):
        tree = ast.parse(block)
        imports = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
        for node in imports:
            if node.module.startswith("skcoral"):
                module = importlib.import_module(node.module)
                for alias in node.names:
                    if not hasattr(module, alias.name):
                        importlib.import_module(f"{node.module}.{alias.name}")


def links_of(page):
    """Links to files, those of the tables of contents included; generated pages are left out."""
    text = page.read_text("utf-8")
    lists = re.findall(r"```{toctree}\n(.*?)```", text, re.DOTALL)
    entries = re.findall(r"^(?:.*<)?([\w/]+)>?$", "\n".join(lists), re.MULTILINE)
    text = re.sub(r"```.*?```", "", text, flags=re.DOTALL)
    links = [target for target in re.findall(r"\]\(([^)\s]+)\)", text) if "://" not in target]
    links += [f"{entry}{'.rst' if entry == 'api/index' else '.md'}" for entry in entries]
    return [link for link in links if not re.match(r"(\.\./)?gallery/", link)]


@pytest.mark.parametrize("page", PAGES, ids=page_name)
def test_links_lead_somewhere(page):
    for target in links_of(page):
        path, _, heading = target.partition("#")
        other = page.parent / path if path else page
        assert other.exists(), target
        if heading:
            titles = re.findall(r"^#+ (.+)$", text_of(other), re.MULTILINE)
            slugs = [re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles]
            labels = re.findall(r"^\((\S+)\)=$", text_of(other), re.MULTILINE)
            assert heading in slugs + labels, target


def test_programs_that_are_named_on_the_pages_exist():
    known = [path.as_posix() for path in ROOT.rglob("*.py") if ".venv" not in str(path)]
    for page in PAGES:
        for name in re.findall(r"(?<![\w/.-])[\w/-]+\.py\b", text_of(page)):
            assert any(path.endswith(f"/{name}") for path in known), f"{page_name(page)}: {name}"


@pytest.mark.parametrize("page", sorted(DOCS.glob("guide/*.md")), ids=page_name)
def test_guide_pages_begin_with_code_and_end_with_links(page):
    if page.stem != "index":
        text = page.read_text("utf-8")
        assert re.match(r"# .+\n\n```(pycon|python|console)\n", text)
        last = re.split(r"^## ", text, flags=re.MULTILINE)[-1]
        assert last.startswith("See also\n")
        assert re.search(r"\]\(\.\./(theory|api|development|benchmarks)", last)


def test_every_page_is_reached_from_the_readme():
    seen, waiting = set(), [ROOT / "README.md"]
    while waiting:
        page = waiting.pop().resolve()
        if page.suffix == ".md" and page not in seen:
            seen.add(page)
            waiting += [page.parent / target.partition("#")[0] for target in links_of(page)]
    assert {page.resolve() for page in PAGES} <= seen
