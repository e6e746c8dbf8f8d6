"""What goes onto the page: text from the data, failures in words, pictures, and what is kept."""

from __future__ import annotations

import string
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import streamlit as st

from skcoral.app import settings
from skcoral.core.display import printable
from skcoral.exceptions import CoralError
from skcoral.show import svg

if TYPE_CHECKING:
    from markupsafe import Markup

_ESCAPES = {ord(mark): f"\\{mark}" for mark in string.punctuation}


def plain(text: str, limit: int | None = None) -> str:
    r"""Text as Markdown that shows it as it is: no formatting, links, pictures or formulas.

    With a ``limit`` longer text is clipped.
    """
    if limit is not None and len(text) > limit:
        text = text[: limit - 1] + "…"
    text = printable(text, keep="\n")
    for mark in ("://", "www.", "@"):
        # Addresses become links whatever is escaped in them, unless something stands in between.
        text = text.replace(mark, f"{mark[0]}\N{WORD JOINER}{mark[1:]}")
    return text.translate(_ESCAPES).replace("\n", "  \n")


@contextmanager
def in_words() -> Iterator[None]:
    """Show what the library says about a failure, instead of the rest of the block."""
    try:
        yield
    except CoralError as error:
        st.error(plain(str(error), 1200))


def leave_out_button(names: Sequence[str]) -> bool:
    """Show a button that leaves columns out of the variables; true when it was clicked."""
    without = tuple(dict.fromkeys((*settings.current().without, *names)))
    how: Any = {"on_click": settings.change, "kwargs": {"without": without}, "key": "leave_out"}
    return st.button(f"Leave out {plain(', '.join(names), 80)}", type="primary", **how)


def show_picture(picture: Markup) -> None:
    """Show a picture as wide as its column, in the colours of a light or of a dark page."""
    st.image(svg.file(picture), width="stretch")


@st.cache_resource(max_entries=64, show_spinner=False, scope="session")
def remember(key: Hashable, _compute: Callable[[], Any]) -> Any:
    """Return what the function gives, or gave to this visitor under this key.

    The results are frozen, so that they are handed out without copying.
    """
    return _compute()


@st.cache_resource(max_entries=4, show_spinner=False, scope="session")
def remember_table(key: Hashable, _read: Callable[[], Any]) -> Any:
    """Keep the tables and variables that a visitor chose last, and no more: they are large."""
    return _read()
