"""The API pages: every public name is there, and every name there has an example."""

import importlib
import inspect
import pkgutil
import re
from pathlib import Path

import pytest

import skcoral

PAGES = sorted((Path(__file__).parents[2] / "docs" / "api").glob("*.rst"))
# What the public names are made of: reached through them, and free to change.
INTERNAL = {
    *("api", "app", "cli", "estimator", "bounds", "workflow"),
}


def listed():
    """The names under each module, as the API pages list them."""
    names = {}
    for page in PAGES:
        text = page.read_text("utf-8")
        for module, part in re.findall(
            r"^\.\. (?:current)?module:: (\S+)\n(.*?)(?=^\.\. (?:current)?module|\Z)",
            text,
            re.MULTILINE | re.DOTALL,
        ):
            names[module] = re.findall(r"^   (\w+)$", part, re.MULTILINE)
    return names


LISTED = listed()


def test_every_public_module_has_a_place():
    rooms = {m.name for m in pkgutil.iter_modules(skcoral.__path__) if m.name[0] != "_"}
    on_pages = {name.split(".")[1] for name in LISTED if "." in name} | {"exceptions"}
    assert rooms - INTERNAL == on_pages
    (errors,) = (page for page in PAGES if page.stem == "exceptions")
    assert ".. automodule:: skcoral.exceptions\n   :members:" in errors.read_text("utf-8")
    assert ">>> " in importlib.import_module("skcoral.exceptions").__doc__


@pytest.mark.parametrize("module", LISTED)
def test_every_public_name_is_listed(module):
    home = importlib.import_module(module)
    public = [name for name in getattr(home, "__all__", []) if callable(getattr(home, name))]
    assert set(public) <= set(LISTED[module])


@pytest.mark.parametrize(("module", "name"), [(m, n) for m in LISTED for n in LISTED[m]])
def test_every_listed_name_has_an_example(module, name):
    text = inspect.getdoc(getattr(importlib.import_module(module), name))
    assert text
    assert ">>> " in text, f"{module}.{name} has no example"
