"""The script that Streamlit runs."""

from __future__ import annotations

import warnings
from pathlib import Path

import streamlit as st
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from skcoral.app import sidebar, view
from skcoral.app.page import in_words, leave_out_button, plain, remember_table
from skcoral.app.problem import pose, request_of, variables
from skcoral.app.settings import current
from skcoral.app.sources import Source
from skcoral.exceptions import (
    ConfidenceWarning,
    InvalidTableError,
    NotCertifiedWarning,
    SingularCorrelationWarning,
)


def main() -> None:
    """Show the page."""
    st.set_page_config(
        page_title="CORAL: decorrelate and keep the meaning", page_icon="🪸", layout="wide"
    )
    _one_thread_each()
    # The page itself says what holds; the server's log need not.
    for kind in (ConfidenceWarning, NotCertifiedWarning, SingularCorrelationWarning):
        warnings.filterwarnings("ignore", category=kind)
    st.html(Path(__file__).with_name("style.css"))
    st.header("CORAL: move the floor and watch", anchor=False)
    st.caption(
        "Constrained Oblique Rotation with Anchored Loadings: outputs stay close to their own "
        "variables, with the least correlation left."
    )
    with in_words():
        with st.sidebar:
            source = sidebar.choose_data()
        _show(source)


@st.cache_resource(show_spinner=False)
def _one_thread_each() -> threadpool_limits:
    """Small matrices are solved faster by one thread, and visitors share the processors."""
    return threadpool_limits(limits=1)


def _show(source: Source) -> None:
    settings = current()
    broken = [n for n in variables(source, settings) if n in source.opened.unreadable]
    try:
        request = request_of(settings)
        problem = remember_table((source.key, request), lambda: pose(source, request))
    except InvalidTableError as error:
        if not broken:
            raise
        st.error(plain(str(error).split("\n")[0], 1200))
        leave_out_button(broken)
        st.caption("Or correct these cells and upload the file again.")
        return
    data = problem.data
    size = f"{len(data.names)} variables, their correlation matrix"
    if data.rows is not None:
        size = f"{len(data.rows.values):,} complete rows, {len(data.names)} variables"
    if source.is_example:
        size += ". An example: bring your own table in the side panel (» opens it)."
    st.caption(plain(f"{data.table.label}: {size}"))
    view.explore(problem)


if __name__ == "__main__":
    main()
