"""How the pictures of :mod:`skcoral.plotting.interactive` are put on the page."""

from __future__ import annotations

import streamlit as st

from skcoral.plotting.interactive import Figure


def picture(figure: Figure, key: str) -> None:
    """Show an interactive figure that does not catch scrolling on a touch screen."""
    layout = figure["layout"]
    layout["dragmode"] = False
    layout["legend"] |= {"itemclick": False, "itemdoubleclick": False}
    for axis in ("xaxis", "yaxis"):
        layout[axis]["fixedrange"] = True
    st.plotly_chart(figure, key=key, config={"displayModeBar": False})
