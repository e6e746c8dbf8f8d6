"""The settings of one visitor: kept between runs, shown by the widgets and in the address bar.

The settings are the one place where a choice is kept. A widget shows its setting, and a callback
takes over what the visitor says before the page runs again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import streamlit as st

from skcoral.app.settings import Settings, from_query, to_query

_SETTINGS, _NOTES, _TABLE, _RECOMMENDED = "settings", "link_notes", "table", "recommended_floor"


def current() -> Settings:
    """The settings; at the first run those of the link that opened the app."""
    if _SETTINGS not in st.session_state:
        query = {name: st.query_params.get_all(name) for name in st.query_params}
        st.session_state[_SETTINGS], st.session_state[_NOTES] = from_query(query)
    found: Settings = st.session_state[_SETTINGS]
    return found


def notes() -> list[str]:
    """Which settings of a link could not be taken over."""
    found: list[str] = st.session_state.get(_NOTES, [])
    return found


def change(**values: Any) -> None:
    """Change some settings."""
    st.session_state[_SETTINGS] = replace(current(), **values)


def recommend(floor: float) -> None:
    """Begin at a floor that the visitor has not chosen: another table has another one."""
    st.session_state[_RECOMMENDED] = floor
    change(floor=floor)


def fit_to(key: str, names: Sequence[str], *, rows: bool) -> None:
    """Drop the settings about columns of the last table, or that a link asks for in vain."""
    before = st.session_state.get(_TABLE)
    if before == key:
        return
    st.session_state[_TABLE] = key
    if before is not None:
        floor = current().floor
        change(
            floor=None if floor == st.session_state.get(_RECOMMENDED) else floor,
            budget=None,
            own=(),
            without=(),
            include=(),
            weights="",
            target="",
            confidence=0.0,
            groups="",
        )
        st.session_state[_NOTES] = []
    st.session_state[_SETTINGS], left_aside = current().about_columns(names, rows=rows)
    st.session_state[_NOTES] = notes() + left_aside


def put(key: str, value: Any) -> str:
    """Let a widget show a value, and return its key.

    One that shows it already is left alone: the visitor may have moved it on meanwhile.
    """
    if key not in st.session_state or st.session_state[key] != value:
        st.session_state[key] = value
    return key


def bound(show: Callable[..., Any], label: str, name: str, *arguments: Any, **how: Any) -> Any:
    """Show a widget, such as ``st.slider``, for the setting ``name``, and return what it says."""
    key = put(how.pop("key", name), getattr(current(), name))
    return show(label, *arguments, key=key, on_change=_take_over, args=(name, key), **how)


def _take_over(name: str, key: str) -> None:
    change(**{name: st.session_state[key]})


def choose(name: str, label: str, choices: Mapping[str, str], **how: Any) -> str:
    """Show a list of choices, by what they mean, for the setting called ``name``."""
    shown = {"format_func": choices.__getitem__, **how}
    chosen: str = bound(st.selectbox, label, name, list(choices), **shown)
    return chosen


def write_link() -> None:
    """Show the settings in the address bar."""
    query = to_query(current())
    shown = {name: st.query_params.get_all(name) for name in st.query_params}
    if shown != query:
        st.query_params.from_dict(query)
