"""The settings of one visitor, kept between runs, in the widgets and in the address bar."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import streamlit as st

from skcoral.app.settings import Settings, from_query, to_query

_SETTINGS, _NOTES, _GENERATION, _TABLE = "settings", "link_notes", "generation", "table"
_RECOMMENDED = "recommended_floor"


def current() -> Settings:
    """The settings; at the first run those of the link that opened the app."""
    if _SETTINGS not in st.session_state:
        query = {name: st.query_params.get_all(name) for name in st.query_params}
        st.session_state[_SETTINGS], st.session_state[_NOTES] = from_query(query)
    found: Settings = st.session_state[_SETTINGS]
    return found


def notes() -> list[str]:
    """Which settings of a link, or of another table, could not be taken over."""
    found: list[str] = st.session_state.get(_NOTES, [])
    return found


def fit_to(key: str, names: Sequence[str], *, rows: bool) -> None:
    """When the columns change, drop the settings about columns that are not there."""
    before = st.session_state.get(_TABLE)
    if before == key:
        return
    st.session_state[_TABLE] = key
    st.session_state[_SETTINGS], left_aside = current().about_columns(names, rows=rows)
    st.session_state[_NOTES] = ([] if before else notes()) + left_aside
    if before:
        refresh_widgets()


def change(**values: Any) -> Settings:
    """Change some settings."""
    st.session_state[_SETTINGS] = replace(current(), **values)
    return current()


def recommend(floor: float) -> None:
    """Begin at a floor that the visitor has not chosen: another table has another one."""
    st.session_state[_RECOMMENDED] = floor
    change(floor=floor)


def start_anew(source: str) -> None:
    """Switch to another table and drop the settings about the columns of the last one."""
    floor = current().floor
    change(
        source=source,
        floor=None if floor == st.session_state.get(_RECOMMENDED) else floor,
        own=(),
        mask="",
        without=(),
        include=(),
        weights="",
        target="",
        confidence=0.0,
        groups="",
    )
    st.session_state[_NOTES] = []
    refresh_widgets()


def refresh_widgets() -> None:
    """Let every widget take its value from the settings again."""
    st.session_state[_GENERATION] = generation() + 1


def generation() -> int:
    """How often the widgets have been refreshed; part of their keys."""
    found: int = st.session_state.get(_GENERATION, 0)
    return found


def widget(name: str, value: Any, *, lasting: bool = False) -> str:
    """Key of a widget whose value begins at ``value`` and is kept while it is out of sight.

    A lasting widget is not refreshed, so that whoever uses it by keyboard stays in it.
    """
    key = name if lasting else f"{name}_{generation()}"
    if key not in st.session_state:
        st.session_state[key] = value
    return key


def bound(show: Callable[..., Any], label: str, name: str, *arguments: Any, **settings: Any) -> Any:
    """Show a widget, such as ``st.slider``, for the setting ``name``; take over what it says."""
    now = getattr(current(), name)
    value = show(label, *arguments, key=widget(name, now), **settings)
    if value != now:
        change(**{name: value})
    return value


def pick(label: str, choices: Mapping[str, str], key: str, **settings: Any) -> str:
    """Show a list of choices by what they mean."""
    shown = {"format_func": choices.__getitem__, "key": key, **settings}
    chosen: str = st.selectbox(label, list(choices), **shown)
    return chosen


def choose(name: str, label: str, choices: Mapping[str, str]) -> str:
    """Show a list of choices, by what they mean, for the setting called ``name``."""
    chosen: str = bound(st.selectbox, label, name, list(choices), format_func=choices.__getitem__)
    return chosen


def write_link() -> None:
    """Show the settings in the address bar."""
    query = to_query(current())
    shown = {name: st.query_params.get_all(name) for name in st.query_params}
    if shown != query:
        st.query_params.from_dict(query)
