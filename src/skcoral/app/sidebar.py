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
    chosen = state.choose("source", "Source", SOURCES)
    if chosen == "upload":
        return _upload()
    if chosen == "paste":
        return _paste()
    size = state.current().size
    if chosen == "simulated":
        size = state.bound(st.number_input, "Number of variables", "size", 3, LARGEST_SIMULATION)
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
            name: st.selectbox(
                name.capitalize(),
                list(choices),
                format_func=choices.__getitem__,
                key=f"dialect_{name}",
            )
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
        help="One row per line; names in the first row if you like, and in the first column too; "
        "the cells of one triangle may be empty. Decimal commas are understood.",
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
    _choose_variables(source)
    if not source.has_rows:
        return
    reasons = [(n, why) for n, why in source.opened.reasons.items() if n not in source.names]
    if reasons:
        some = "1 column" if len(reasons) == 1 else f"{len(reasons)} columns"
        with st.expander(f"Left out: {some}"):
            for name, why in reasons[:50]:
                st.markdown(f"**{plain(name) or '(no name)'}**: {plain(why)}")
    _choose_column(
        source,
        "target",
        "Outcome",
        "none",
        "What the variables are to explain. It is left out of the variables and stays as it is; "
        "the report shows its regression on the variables and on the outputs.",
    )
    _choose_column(source, "weights", "Row weights", "none: every row counts once")
    state.choose("covariance", "Correlations", COVARIANCES)


def _choose_variables(source: Source) -> None:
    """Let the visitor choose the variables, or what is left out where they are many."""
    settings, most = state.current(), most_variables(source)
    kept = list(variables(source, settings))
    if not settings.without and len(kept) > most:
        state.change(without=tuple(kept[most:]))
        kept = kept[:most]
        st.warning(f"The first {most} columns are taken; more do not fit here.")
    offered = [name for name in source.names if name not in (settings.weights, settings.target)]
    many = len(kept) > MOST_VARIABLES  # too many to be shown one by one
    shown = [name for name in offered if name not in set(kept)] if many else kept
    key = state.put("left_out" if many else "variables", shown)

    def take_over() -> None:
        said, doubtful = {*st.session_state[key]}, source.opened.doubtful
        chosen = {*offered} - said if many else said
        left_out = (name for name in offered if name not in chosen)
        state.change(
            without=tuple(name for name in left_out if name not in doubtful),
            include=tuple(name for name in doubtful if name in chosen),
        )

    count = f"({len(kept)} of {len(source.names)} columns of numbers)"
    title = f"{'Leave out' if many else 'Variables'} {count}"
    st.multiselect(title, offered, key=key, on_change=take_over)


def _choose_column(source: Source, name: str, label: str, none: str, help: str = "") -> None:
    """Let the visitor choose the column for the setting ``name``, or none."""
    settings = state.current()
    other = settings.weights if name == "target" else settings.target
    columns = {column: column for column in source.names if column != other}
    state.choose(name, label, {"": none, **columns}, help=help or None)
