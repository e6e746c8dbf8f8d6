"""The side panel: where the data come from, and which columns are variables."""

from __future__ import annotations

from typing import Any

import streamlit as st

from skcoral.app.page import plain, remember, remember_table
from skcoral.app.problem import MOST_VARIABLES, variables
from skcoral.app.settings import COVARIANCES, change, choose, current, put, start_over_for
from skcoral.app.sources import ENDINGS, UPLOAD_MB, Source, example, read_file, sheets
from skcoral.core.display import printable


def choose_data() -> Source:
    """Let the visitor bring a file, and choose variables, weights, outcome and the estimator."""
    st.header("Data", anchor=False)
    source = _choose_source()
    start_over_for(source.key)
    if source.has_rows:
        _preview(source)
    _choose_variables(source)
    # What follows is about rows: outcome, weights and estimators need them.
    if not source.has_rows:
        return source
    reasons = [(n, why) for n, why in source.opened.reasons.items() if n not in source.names]
    if reasons:
        some = "1 column" if len(reasons) == 1 else f"{len(reasons)} columns"
        with st.expander(f"Left out: {some}"):
            for name, why in reasons[:50]:
                st.markdown(f"**{plain(name) or '(no name)'}**: {plain(why)}")
    settings = current()
    columns = {name: name for name in source.names}
    choose(
        "target",
        "Outcome",
        {"": "none"} | {name: name for name in columns if name != settings.weights},
        help="What the variables are to explain. It is left out of the variables and stays as it "
        "is; the report shows its regression on the variables and on the outputs.",
    )
    no_weights = {"": "none: every row counts once"}
    others = {name: name for name in columns if name != settings.target}
    choose("weights", "Row weights", no_weights | others)
    choose("covariance", "Correlations", COVARIANCES)
    return source


def _choose_source() -> Source:
    file: Any = st.file_uploader(
        "CSV, Excel or Parquet",
        type=list(ENDINGS),
        max_upload_size=UPLOAD_MB,
        key="file",
        help="A table with a row for each observation and names in the first line, or a "
        "correlation or covariance matrix. The file stays in memory for this visit and is never "
        "written to disk.",
    )
    if file is None:
        st.caption(
            "Until you bring a file, an example is shown: 178 wines and 13 measurements of each."
        )
        wine: Source = remember_table("wine", example)
        return wine
    data = file.getvalue()
    # A file that is uploaded again has another id, so that it is read again.
    names = remember(("sheets", file.file_id), lambda: sheets(data, file.name))
    sheet = None
    if len(names) > 1:
        chosen = st.selectbox(
            "Sheet",
            ["", *names],
            format_func=lambda name: name or "the first with a table",
            key=f"sheet_{file.file_id}",
        )
        sheet = chosen or None
    key = f"{file.file_id} {sheet or ''}"
    uploaded: Source = remember_table(key, lambda: read_file(data, file.name, key=key, sheet=sheet))
    return uploaded


def _preview(source: Source) -> None:
    """Show the first rows of a table as they were read, the columns that are left out included."""
    rows = remember(("first rows", source.key), source.first_rows)
    with st.expander("First rows"):
        st.dataframe(
            # Columns go by their places: some names mean something to the grid.
            {str(j): cells for j, cells in enumerate(rows)},
            hide_index=True,
            column_config={
                str(j): st.column_config.TextColumn(label=printable(name[:80]))
                for j, name in enumerate(source.opened.table.names)
            },
            key="first_rows",
        )


def _choose_variables(source: Source) -> None:
    """Let the visitor choose the variables."""
    taken = list(variables(source, current()))
    if len(taken) > MOST_VARIABLES:
        change(without=(*current().without, *taken[MOST_VARIABLES:]))
        taken = taken[:MOST_VARIABLES]
        st.warning(f"The first {MOST_VARIABLES} columns are taken; more do not fit here.")
    settings = current()
    offered = [name for name in source.names if name not in (settings.weights, settings.target)]

    def take_over() -> None:
        chosen, doubtful = {*st.session_state["variables"]}, source.opened.doubtful
        change(
            without=tuple(n for n in offered if n not in chosen and n not in doubtful),
            include=tuple(name for name in doubtful if name in chosen),
        )

    title = f"Variables ({len(taken)} of {len(source.names)} columns of numbers)"
    st.multiselect(title, offered, key=put("variables", taken), on_change=take_over)
