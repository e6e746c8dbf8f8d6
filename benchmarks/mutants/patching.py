"""A changed module takes the place of one that is loaded, in this process."""

from __future__ import annotations

import ast
import functools
import inspect
import sys
import types
from pathlib import Path
from typing import Any

_PACKAGE = "skcoral"


def install(module: types.ModuleType, tree: ast.Module) -> None:
    """Give the functions, classes and constants of ``module`` the content that ``tree`` has.

    Functions keep their identity, so that everybody who imported them gets the new code. Modules
    that imported a constant are made anew, with what they derive from it.
    """
    fresh = types.ModuleType(module.__name__)
    fresh.__dict__.update({k: v for k, v in vars(module).items() if k.startswith("__")})
    exec(compile(tree, str(module.__file__), "exec"), fresh.__dict__)
    moved = []
    for name, new in vars(fresh).items():
        old = vars(module).get(name)
        if name.startswith("__") or old is new:
            continue
        if inspect.isclass(new) and new.__module__ == module.__name__:
            for attribute, value in vars(new).items():
                if not _transplant(vars(old).get(attribute), value) and _plain(value):
                    setattr(old, attribute, value)
        elif not _transplant(old, new) and (not _plain(new) or new != old):
            setattr(module, name, new)
            moved.append((name, old))
    for name, old in moved:
        for other in list(sys.modules.values()):
            if not getattr(other, "__name__", "").startswith(_PACKAGE) or other is module:
                continue
            if vars(other).get(name) is old:
                install(other, ast.parse(Path(str(other.__file__)).read_text("utf-8")))
                setattr(other, name, getattr(module, name))


def _transplant(old: Any, new: Any) -> bool:
    """Whether ``old`` could be given the code of ``new``."""
    if isinstance(old, staticmethod | classmethod):
        return _transplant(old.__func__, new.__func__)
    if isinstance(old, property):
        return _transplant(old.fget, new.fget)
    if isinstance(old, functools.cached_property):
        return _transplant(old.func, new.func)
    if isinstance(old, types.FunctionType) and isinstance(new, types.FunctionType):
        old.__code__ = new.__code__
        old.__defaults__, old.__kwdefaults__ = new.__defaults__, new.__kwdefaults__
        inner = getattr(old, "__wrapped__", None)
        return inner is None or _transplant(inner, new.__wrapped__)
    return False


def _plain(value: Any) -> bool:
    return isinstance(value, int | float | str | tuple | frozenset | set | dict | None)
