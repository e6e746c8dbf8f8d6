"""What a visitor has chosen: kept between runs of the page, and shown by the widgets.

The settings are the one place where a choice is kept. A widget shows its setting, and a callback
takes over what the visitor says before the page runs again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import streamlit as st

from skcoral.choosing import MOST_CORRELATION, MOST_VIF

MODES = {
    "floor": "Floor",
    "max_vif": "VIF",
    "max_correlation": "Correlation",
    "budget": "Budget",
    "support": "Support",
}
#: What each mode does, in half a sentence.
EXPLAINED = {
    "floor": "say what every output keeps",
    "max_vif": "say the largest VIF",
    "max_correlation": "say the largest |r|",
    "budget": "say how much may be left",
    "support": "say which source enters where",
}
#: How correlations are estimated from rows.
COVARIANCES = {
    "": "as the rows have them",
    "LedoitWolf": "shrunk, as Ledoit and Wolf advise",
    "OAS": "shrunk, for normal rows (OAS)",
}
#: Modes that look for the highest common floor within a limit, which is the setting of that name.
LIMITED = ("max_vif", "max_correlation", "budget")
_SETTINGS, _TABLE = "settings", "table"


@dataclass(frozen=True)
class Settings:
    """The choices behind a view."""

    mode: str = "floor"
    #: The common floor; none until one is chosen or recommended.
    floor: float | None = None
    #: What the outputs may have at most, in the mode of the same name; the budget depends on the
    #: table and is none until one is chosen.
    max_vif: float = MOST_VIF
    max_correlation: float = MOST_CORRELATION
    budget: float | None = None
    #: Floor mode: whether floors hold for the population, and the column of clusters.
    population: bool = False
    groups: str = ""
    #: Floors of single variables.
    own_floors: tuple[tuple[str, float], ...] = ()
    #: Support mode: sources with a larger |correlation| may enter an output.
    support: float = 0.15
    #: Columns of numbers that are not variables, and those that are although they look like ids.
    without: tuple[str, ...] = ()
    include: tuple[str, ...] = ()
    #: Columns of row weights and of the outcome, and the estimator of correlations; "" for none.
    weights: str = ""
    target: str = ""
    covariance: str = ""


def current() -> Settings:
    """The settings of this visitor."""
    settings: Settings = st.session_state.setdefault(_SETTINGS, Settings())
    return settings


def change(**values: Any) -> None:
    """Change some settings."""
    st.session_state[_SETTINGS] = replace(current(), **values)


def start_over_for(table: str) -> None:
    """Forget the settings of the last table: another one has other columns and another floor."""
    if st.session_state.setdefault(_TABLE, table) != table:
        st.session_state[_TABLE] = table
        st.session_state[_SETTINGS] = Settings()


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


def choose(name: str, label: str, choices: Mapping[str, str], **how: Any) -> None:
    """Show a list of choices, by what they mean, for the setting called ``name``."""
    bound(st.selectbox, label, name, list(choices), format_func=choices.__getitem__, **how)
