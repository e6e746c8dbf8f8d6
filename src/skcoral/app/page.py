"""What goes onto the page: text from the data, failures in words, and figures."""

from __future__ import annotations

import string
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import streamlit as st

from skcoral.app import state
from skcoral.app.charts import Figure
from skcoral.core.display import printable
from skcoral.exceptions import CoralError

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
    without = tuple(dict.fromkeys((*state.current().without, *names)))
    label = f"Leave out {plain(', '.join(names), 80)}"
    return st.button(
        label,
        on_click=state.change,
        kwargs={"without": without},
        type="primary",
        key="leave_out",
    )


def show_figure(figure: Figure, key: str) -> None:
    """Show an interactive figure."""
    st.plotly_chart(figure, key=key, config={"displayModeBar": False})
