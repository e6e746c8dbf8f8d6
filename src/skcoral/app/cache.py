"""What has been computed before: shared by all visitors for examples, private for other data."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, TypeVar

import streamlit as st

from skcoral.app.problem import Problem

Found = TypeVar("Found")


@st.cache_resource(max_entries=512, show_spinner=False)
def _for_everybody(key: Hashable, _compute: Callable[[], Any]) -> Any:
    return _compute()


@st.cache_resource(max_entries=64, show_spinner=False, scope="session")
def _for_this_visitor(key: Hashable, _compute: Callable[[], Any]) -> Any:
    return _compute()


@st.cache_resource(max_entries=4, show_spinner=False, scope="session")
def remember_table(key: Hashable, _read: Callable[[], Any]) -> Any:
    """Keep the tables and variables that a visitor chose last, and no more: they are large."""
    return _read()


def remember(key: Hashable, compute: Callable[[], Found], *, public: bool) -> Found:
    """Return ``compute()``, or what it returned when it was last asked for under this key.

    What comes from a visitor's own data is kept in that visitor's session and goes with it. The
    results are frozen, so that they are handed out without copying.
    """
    found: Found = (_for_everybody if public else _for_this_visitor)(key, compute)
    return found


def about(problem: Problem, what: Hashable, compute: Callable[[], Found]) -> Found:
    """Remember something about a problem."""
    return remember((problem.key, what), compute, public=problem.source.public)
