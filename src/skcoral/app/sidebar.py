"""The side panel: where the data come from, and which columns are variables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import streamlit as st

from skcoral.app import state
from skcoral.app.cache import remember, remember_table
from skcoral.app.page import plain
from skcoral.app.problem import MOST_VARIABLES, most_variables, variables
from skcoral.app.settings import COVARIANCES, LARGEST_SIMULATION, SOURCES
from skcoral.app.sources import (
    ENDINGS,
    UPLOAD_MB,
    Source,
    example,
    pasted,
    read_file,
    sheets,
)
from skcoral.core.display import printable
from skcoral.exceptions import InvalidTableError

_DIALECT = {
    "separator": {
        "": "as recognised",
        ",": "comma",
        ";": "semicolon",
        "\t": "tab",
        "|": "vertical bar",
    },
    "decimal": {"": "as recognised", ".": "point: 1.5", ",": "comma: 1,5"},
    "encoding": {
        "": "as recognised",
        "utf-8": "UTF-8",
        "latin-1": "Latin-1",
        "cp1252": "Windows-1252",
        "utf-16": "UTF-16",
    },
}


def choose_source() -> Source | None:
    """Let the visitor choose where the numbers come from; None until there are any."""
    st.header("Data", anchor=False)
    settings = state.current()
    chosen = state.pick("Source", SOURCES, state.widget("source", settings.source, lasting=True))
    if chosen != settings.source:
        state.start_anew(chosen)
        st.rerun()
    if chosen == "upload":
        return _upload()
    if chosen == "paste":
        return _paste()
    if chosen == "simulated":
        size = st.number_input(
            "Number of variables",
            3,
            LARGEST_SIMULATION,
            key=state.widget("size", settings.size, lasting=True),
        )
        if size != settings.size:
            state.start_anew("simulated")
            state.change(size=int(size))
            st.rerun()
    size = state.current().size
    return remember(("example", chosen, size), lambda: example(chosen, size=size), public=True)


def _upload() -> Source | None:
    file: Any = st.file_uploader(
        "CSV, Excel or Parquet",
        type=list(ENDINGS),
        max_upload_size=UPLOAD_MB,
        key="file",
        on_change=_read_as,
        help="The file stays in memory for this visit and is never written to disk.",
    )
    if file is None:
        return None
    data = file.getvalue()
    names = remember(("sheets", file.file_id), lambda: sheets(data, file.name), public=False)
    dialect = _sheet(names, file.file_id) if names else _dialect()
    key = (file.file_id, *dialect.items())
    found: Source = remember_table(
        key, lambda: read_file(data, file.name, key=str(key), dialect=dialect)
    )
    if st.session_state.get("read", key) != key:
        # Another file: floors and columns of the last one mean nothing here.
        state.start_anew("upload")
    st.session_state["read"] = key
    return found


def _read_as(dialect: Mapping[str, str] | None = None) -> None:
    """Read a file in a certain way; a new file in the usual one."""
    for name in _DIALECT:
        st.session_state[f"dialect_{name}"] = (dialect or {}).get(name, "")


def offer_reading(error: InvalidTableError) -> None:
    """Say why a text file was not read, with a button that reads it as it seems to be meant."""
    st.error(plain(str(error).split("\n")[0], 1200))
    how = (f"{name} {_DIALECT[name][value]}" for name, value in error.reading.items())
    st.button(
        f"Read it with {' and '.join(how)}",
        on_click=_read_as,
        args=(error.reading,),
        type="primary",
        key="read_as",
    )
    st.caption("Or say how the file is written in the side panel, under “Text files”.")


def _sheet(names: tuple[str, ...], file: str) -> dict[str, str]:
    """Which sheet of a workbook to read, where there are several."""
    if len(names) == 1:
        return {}
    first = "the first with a table"
    chosen = st.selectbox("Sheet", [first, *names], key=f"sheet_{file}")
    return {} if chosen == first and chosen not in names else {"sheet": chosen}


def _dialect() -> dict[str, str]:
    """How a text file is written, where the visitor says that it is not the usual way."""
    with st.expander("Text files"):
        chosen = {
            name: state.pick(name.capitalize(), choices, f"dialect_{name}")
            for name, choices in _DIALECT.items()
        }
    return {name: value for name, value in chosen.items() if value}


def _paste() -> Source | None:
    text = st.text_area(
        "Correlation matrix",
        height=180,
        key="pasted",
        max_chars=200_000,
        placeholder="a\tb\tc\n1\t0.6\t0.3\n0.6\t1\t0.4\n0.3\t0.4\t1",
        help="One row per line; names in the first row or column if you like; a lower triangle "
        "is enough. Decimal commas are understood.",
    )
    file: Any = st.file_uploader(
        "Or a file that holds it",
        type=list(ENDINGS),
        max_upload_size=UPLOAD_MB,
        key="matrix_file",
        help="A correlation or covariance matrix, with or without names.",
    )
    if file is not None:
        data = file.getvalue()
        return remember(
            ("matrix", file.file_id),
            lambda: read_file(data, file.name, key=file.file_id, matrix=True),
            public=False,
        )
    return pasted(text) if text.strip() else None


def _preview(source: Source) -> None:
    """Show the first rows of a table as they were read, the columns that are left out included."""
    rows = remember(("first rows", source.key), source.first_rows, public=source.public)
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


def choose_columns(source: Source) -> None:
    """Let the visitor choose variables, weights and the estimator, and say what was left out."""
    if source.note:
        st.caption(source.note)
    if source.has_rows:
        _preview(source)
    settings = state.current()
    offered = [name for name in source.names if name not in (settings.weights, settings.target)]
    kept = list(variables(source, settings))
    most = most_variables(source)
    if not settings.without and len(kept) > most:
        kept = kept[:most]
        st.warning(f"The first {most} columns are taken; more do not fit here.")
    title = f"({len(kept)} of {len(source.names)} columns of numbers)"
    if len(kept) > MOST_VARIABLES:  # too many to be shown one by one
        first = [name for name in offered if name not in set(kept)]
        key = state.widget(f"aside_{settings.weights}_{settings.target}", first)
        chosen = {*offered} - {*st.multiselect(f"Leave out {title}", offered, key=key)}
    else:
        key = state.widget(f"columns_{settings.weights}_{settings.target}", kept)
        chosen = {*st.multiselect(f"Variables {title}", offered, key=key)}
    left_out = [name for name in offered if name not in chosen]
    doubtful = source.opened.doubtful
    without = tuple(name for name in left_out if name not in doubtful)
    include = tuple(name for name in doubtful if name in chosen)
    if (without, include) != (settings.without, settings.include):
        state.change(without=without, include=include)
    for name, doubt in doubtful.items():
        if name not in include and name in offered:
            st.caption(f"{plain(name, 60)}: not chosen, {doubt}.")
    if not source.has_rows:
        return
    reasons = [(n, why) for n, why in source.opened.reasons.items() if n not in source.names]
    if reasons:
        some = "1 column" if len(reasons) == 1 else f"{len(reasons)} columns"
        with st.expander(f"Left out: {some}"):
            for name, why in reasons[:50]:
                st.markdown(f"**{plain(name) or '(no name)'}**: {plain(why)}")
    target = state.bound(
        st.selectbox,
        "Outcome",
        "target",
        ["", *(name for name in source.names if name != settings.weights)],
        format_func=lambda name: name or "none",
        help="What the variables are to explain. It is left out of the variables and stays as it "
        "is; the report shows its regression on the variables and on the outputs.",
    )
    weights = state.bound(
        st.selectbox,
        "Row weights",
        "weights",
        ["", *(name for name in source.names if name != target)],
        format_func=lambda name: name or "none: every row counts once",
    )
    if (target, weights) != (settings.target, settings.weights):
        st.rerun()
    state.choose("covariance", "Correlations", COVARIANCES)
