"""The script that Streamlit runs."""

from __future__ import annotations

import warnings

import streamlit as st
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from skcoral.app import sidebar, state, view
from skcoral.app.errors import in_words
from skcoral.app.problem import Problem, pose, variables
from skcoral.app.sources import MatrixSource, TableSource
from skcoral.app.text import clipped, plain
from skcoral.exceptions import NotCertifiedWarning, SingularCorrelationError


def main() -> None:
    """Show the page."""
    st.set_page_config(
        page_title="CORAL: decorrelate and keep the meaning", page_icon="🪸", layout="wide"
    )
    _one_thread_each()
    # The page itself says whether a result is certified; the server's log need not.
    warnings.filterwarnings("ignore", category=NotCertifiedWarning)
    st.html("<style>.stMainBlockContainer {padding-top: 3.5rem}</style>")
    st.header("Move the floor and watch", anchor=False)
    st.caption(
        "CORAL, Constrained Oblique Rotation with Anchored Loadings: every output stays close to "
        "its own variable, and the outputs have the least correlation that this allows."
    )
    state.current()
    for note in state.notes():
        st.warning(plain(clipped(note)))
    with in_words():
        with st.sidebar:
            source = sidebar.choose_source()
            if source is not None:
                sidebar.choose_columns(source)
        if source is None:
            st.info("Bring a table or a matrix on the left, or choose one of the examples there.")
        else:
            _show(source)
    state.write_link()


@st.cache_resource(show_spinner=False)
def _one_thread_each() -> threadpool_limits:
    """Small matrices are solved faster by one thread, and visitors share the processors."""
    return threadpool_limits(limits=1)


def _show(source: MatrixSource | TableSource) -> None:
    try:
        problem = pose(source, state.current())
        view.threshold_of(problem)
    except SingularCorrelationError as error:
        _offer_removal(source, error)
        return
    _say_rows(problem)
    view.explore(problem)


def _say_rows(problem: Problem) -> None:
    if problem.rows is None:
        return
    said = f"{len(problem.rows):,} complete rows, {len(problem.names)} variables"
    if problem.n_incomplete:
        many = (
            "rows with missing values are"
            if problem.n_incomplete > 1
            else ("row with missing values is")
        )
        said += f"; {problem.n_incomplete:,} {many} left out"
    if problem.estimate is not None and problem.estimate.shrinkage:
        said += f". {problem.estimate.guarantee}"
    st.caption(plain(f"{problem.source.label}: {said}"))


def _offer_removal(source: MatrixSource | TableSource, error: SingularCorrelationError) -> None:
    st.error("Some columns are determined by others, so they cannot be decorrelated.")
    for relation in error.relations[:10]:
        st.markdown(f"- {plain(relation)}")
    redundant = [name for name in error.redundant if name in variables(source, state.current())]

    def leave_out(names: list[str]) -> None:
        state.change(without=tuple(dict.fromkeys((*state.current().without, *names))))
        state.refresh_widgets()

    if redundant:
        st.button(
            f"Leave out {plain(clipped(', '.join(redundant), 80))}",
            on_click=leave_out,
            args=(redundant,),
            type="primary",
            key="leave_out",
        )
    if isinstance(source, TableSource):
        st.markdown("Or choose a shrinkage on the left; the guarantee is then about that matrix.")


if __name__ == "__main__":
    main()
