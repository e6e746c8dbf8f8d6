"""Failures in words, wherever in the page they happen."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import streamlit as st

from skcoral.app.markdown import clipped, plain
from skcoral.exceptions import CoralError


@contextmanager
def in_words() -> Iterator[None]:
    """Show what the library says about a failure, instead of the rest of the block."""
    try:
        yield
    except CoralError as error:
        st.error(plain(clipped(str(error), 1200)))
