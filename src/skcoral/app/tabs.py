"""The tabs below the curve: heat maps, what outputs are made of, downloads."""

from __future__ import annotations

import mimetypes
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import streamlit as st

from skcoral.app import exports
from skcoral.app.page import plain, show_picture
from skcoral.app.problem import Problem
from skcoral.app.settings import current
from skcoral.core.display import number
from skcoral.data.effects import Measured
from skcoral.models.files import model_json
from skcoral.show import sentences, svg
from skcoral.stability import ConfidentFloors
from skcoral.workflow.fit import Fit

_TABS = ("Correlations", "Outputs", "Downloads")


def show(problem: Problem, fit: Fit, chosen: dict[str, Any]) -> None:
    """Show the tabs of a fit with the settings ``chosen``; only the open one costs time."""
    correlations, outputs, downloads = st.tabs(_TABS, on_change="rerun", key="tab")
    if correlations.open:
        with correlations:
            _correlations(fit.measured)
    if outputs.open:
        with outputs:
            _outputs(fit)
    if downloads.open:
        with downloads:
            _downloads(problem, fit, chosen)


def _correlations(measured: Measured) -> None:
    sides = zip(st.columns(2), ("Before", "After"), (measured.before, measured.after), strict=True)
    for column, title, M in sides:
        assert M is not None  # the app takes no more variables than it can show
        with column:
            largest = np.abs(M - np.eye(len(M))).max()
            st.markdown(f"**{title}**: largest |correlation| {largest:.4f}")
            show_picture(svg.heat_map(M, measured.names, f"Correlations {title.lower()}"))


def _outputs(fit: Fit) -> None:
    import pandas as pd

    result, measured = fit.model.result_, fit.measured
    columns: dict[str, tuple[Any, int]] = {  # figures of each output, and their decimals
        "weighted fidelity" if measured.weighted else "fidelity": (measured.fidelity, 4),
        "floor": (result.rho_min, 4),
        "price": (result.prices, 3),
        "largest residual": (measured.residual, 4),
        "VIF before": (measured.vif_before, 2),
        "VIF after": (measured.vif, 2),
    }
    if np.ptp(result.rho_min) == 0:
        del columns["floor"]  # the slider shows it
    explained = "VIF: variance inflation factor, 1 at best."
    if sentences.minimises_residual(result):
        explained += " Price: what one more unit of this floor would add to the least residual."
    else:
        del columns["price"]
    frame = pd.DataFrame({name: values for name, (values, _) in columns.items()}, result.names)
    spelled: dict[Any, Any] = {
        name: partial(number, digits=digits) for name, (_, digits) in columns.items()
    }
    # All rows of a table of usual size: one scrollbar is enough.
    st.dataframe(frame.style.format(spelled), height=38 + 35 * min(len(frame), 20))
    st.caption(explained)
    if hasattr(fit.model, "confidence_"):
        _population(fit.model.confidence_)
    top = float(np.abs(result.T).max()) or 1.0
    with st.columns([3, 2])[0]:
        show_picture(svg.heat_map(result.T, result.names, "Coefficients", top=top))
        st.caption("The transformation: each column is an output, each row a standardised source.")


def _population(sure: ConfidentFloors) -> None:
    st.markdown(plain(sure.sentence()))
    names = ["floor asked", "floor raised", "fidelity fitted", "fidelity at least"]
    frame = sure.to_frame()
    frame.columns = [*names, *(["residual at most"] if len(frame.columns) > len(names) else [])]
    st.dataframe(frame.round(4), height=38 + 35 * min(len(frame), 20))


def _downloads(problem: Problem, fit: Fit, chosen: dict[str, Any]) -> None:
    is_table = problem.source.has_rows
    left, right = st.columns(2)
    name = left.radio("Format of tables", list(exports.FORMATS), horizontal=True, key="format")
    ending = exports.FORMATS[name]
    scale = "unit"
    if is_table:
        units = {"unit": "standardised", "original": "in the units of their sources"}
        how: dict[str, Any] = {"format_func": units.get, "horizontal": True, "key": "scale"}
        scale = right.radio("Outputs", list(units), **how)
    command = exports.command(problem, current(), ending=ending, scale=scale)

    def again() -> Fit:
        """The fit on the screen in these units, with what new rows can expect."""
        sure = getattr(fit.model, "confidence_", None)
        return problem.data.fit(chosen | {"output_scale": scale}, groups=fit.groups, raised=sure)

    stem = exports.file_stem(problem.data.table.label)

    def offer(label: str, file: str, make: Callable[[], bytes]) -> None:
        # Made when it is clicked, and the page stays as it is.
        how: dict[str, Any] = {"file_name": f"{stem}-{file}", "mime": mimetypes.guess_type(file)[0]}
        st.download_button(label, make, on_click="ignore", key=f"get {label}", **how)

    with st.container(horizontal=True):
        if is_table:
            table = f"decorrelated.{ending}"
            offer("Decorrelated table", table, lambda: exports.table_file(again(), ending))
            offer("Model (JSON)", "model.json", lambda: model_json(again().model).encode())
            offer("Report (HTML)", "report.html", lambda: exports.page(again(), command))
        offer("Transformation T", f"T.{ending}", lambda: exports.matrix_file(fit, ending))
    if not is_table:
        st.caption("Table, model and report need the rows; here is only a correlation matrix.")
    st.markdown("**The same as a command**")
    st.code(command, language="bash", wrap_lines=True)
