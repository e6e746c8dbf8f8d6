"""Behind the curve: heat maps, what outputs are made of, new rows, downloads. Drawn when opened."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import streamlit as st

from skcoral.app import exports
from skcoral.app.cache import about
from skcoral.app.markdown import plain
from skcoral.app.pictures import picture
from skcoral.app.problem import HOLDOUT_ROWS_PER_VARIABLE, MOST_VARIABLES, Problem
from skcoral.app.settings import Settings
from skcoral.app.solving import at_floors, known, unfitted
from skcoral.measured import Measured
from skcoral.plotting import interactive
from skcoral.report.facts import top_sources
from skcoral.results import Array, Decorrelation
from skcoral.stability import ConfidentFloors, Holdout, holdout

if TYPE_CHECKING:
    import pandas as pd

_MOST_LABELS = 45
_WORST_PAIRS = 15
_TABS = ("Correlations", "Outputs", "New rows", "Take away")


@dataclass(frozen=True)
class Answer:
    """What is shown: the problem, what was asked and the solution."""

    problem: Problem
    settings: Settings
    chosen: dict[str, Any]
    asked: tuple[Any, ...]
    result: Decorrelation
    measured: Measured
    sure: ConfidentFloors | None = None


def show(answer: Answer) -> None:
    """Show the tabs; only the open one costs time."""
    panels = (_correlations, _outputs, _new_rows, _take_away)
    for tab, panel in zip(st.tabs(_TABS, on_change="rerun", key="tab"), panels, strict=True):
        if tab.open:
            with tab:
                panel(answer)


def _heat_map(M: Array, names: Sequence[str], *, top: float, word: str, key: str) -> None:
    drawn = interactive.heat_map(M, names, top=top, word=word, figures=top == 1.0)
    if len(names) > _MOST_LABELS:
        # Too small to be read: the pointer tells the names.
        drawn["layout"]["height"] = 420
        for axis in ("xaxis", "yaxis"):
            drawn["layout"][axis] |= {"showticklabels": False, "ticks": ""}
    picture(drawn, key)


def _correlations(answer: Answer) -> None:
    names = answer.problem.names
    found = answer.measured
    if len(names) > MOST_VARIABLES:
        _many_correlations(found)
        return
    for column, M, title, largest in zip(
        st.columns(2),
        (found.before, found.after),
        ("Before", "After"),
        (found.largest_correlation_before, found.largest_correlation),
        strict=True,
    ):
        with column:
            assert M is not None  # an app takes no more variables than it can show
            st.markdown(f"**{title}**: largest |correlation| {largest:.4f}")
            _heat_map(M, names, top=1.0, word="correlation", key=f"heat_{title}")


def _many_correlations(found: Measured) -> None:
    """The worst pairs and the distribution, where a cell for each pair could not be read."""
    upper = np.triu_indices(len(found.names), 1)
    sizes = {}
    for column, M, title in zip(
        st.columns(2), (found.before, found.after), ("Before", "After"), strict=True
    ):
        assert M is not None  # an app takes no more variables than it can show
        values = M[upper]
        sizes[title.lower()] = np.abs(values)
        worst = np.argsort(-np.abs(values), kind="stable")[:_WORST_PAIRS]
        column.markdown(f"**{title}**: worst pairs of {len(values):,}")
        column.dataframe(
            {
                "pair": [f"{found.names[upper[0][k]]} – {found.names[upper[1][k]]}" for k in worst],
                "correlation": [float(values[k]) for k in worst],
            },
            hide_index=True,
        )
    picture(interactive.distribution(sizes, "|correlation|", "pairs"), "distribution")


def _outputs(answer: Answer) -> None:
    result = answer.result
    digits = {"fidelity": 4, "floor": 4, "price": 3, "largest residual": 4}
    digits |= {"VIF before": 2, "VIF after": 2}
    st.dataframe(
        _output_table(result, answer.measured),
        hide_index=True,
        # All rows of a table of usual size: one scrollbar is enough.
        height=38 + 35 * min(len(result.names), 20),
        column_config={
            name: st.column_config.NumberColumn(format=f"%.{count}f")
            for name, count in digits.items()
        },
    )
    st.caption(
        "Made of: coefficients on the standardised sources, largest first. Price: how much the "
        "residual grows per unit of this floor. VIF: variance inflation factor, 1 at best."
    )
    if len(result.names) > MOST_VARIABLES:
        return
    top = float(np.abs(result.T).max()) or 1.0
    _heat_map(result.T, result.names, top=top, word="coefficient", key="heat_T")
    st.caption("The transformation: each column is an output, each row a source.")


def _output_table(result: Decorrelation, found: Measured) -> pd.DataFrame:
    import pandas as pd

    frame = result.to_frame()
    made_of = [
        " ".join(f"{value:+.2f} {result.names[i]}" for i, value in top_sources(result.T, j))
        for j in range(len(result.names))
    ]
    own = np.ptp(result.rho_min) > 0
    return pd.DataFrame(
        {
            "output": list(result.names),
            "fidelity": found.fidelity,
            **({"floor": frame["floor"].to_numpy()} if own else {}),
            "price": frame["price"].to_numpy(),
            "largest residual": found.residual,
            "VIF before": found.vif_before,
            "VIF after": found.vif,
            "made of": made_of,
        }
    )


def _new_rows(answer: Answer) -> None:
    problem = answer.problem
    if not problem.can_hold_out:
        st.info(
            "Fidelity on new rows is measured on parts of a table that are held out. That needs "
            f"the rows, at least {HOLDOUT_ROWS_PER_VARIABLE} per variable."
        )
        return
    with st.spinner("Fitting five times …"):
        found: Holdout = about(
            problem,
            ("holdout", answer.asked),
            lambda: holdout(
                unfitted(problem, at_floors(problem, answer.chosen, answer.sure)),
                problem.frame(),
                cv=5,
                block_length=answer.chosen.get("block_length"),
                **known(problem, answer.chosen),
            ),
        )
    if answer.sure is not None:
        _population(answer.sure)
    frame = found.to_frame()
    st.markdown(
        f"Fitted on four fifths of the rows and measured on the last fifth, five times: the "
        f"weakest mean fidelity is **{frame['fidelity_fitted'].min():.4f}** on the rows fitted and "
        f"**{frame['fidelity_new'].min():.4f}** on new rows. {found.sentence()}"
    )
    picture(
        interactive.new_rows(
            found.names,
            frame["fidelity_fitted"].to_numpy(),
            frame["fidelity_new"].to_numpy(),
            frame["fidelity_new_worst"].to_numpy(),
        ),
        "new_rows",
    )


def _population(sure: ConfidentFloors) -> None:
    st.markdown(plain(sure.sentence()))
    names = ["floor asked", "floor raised", "fidelity fitted", "fidelity at least"]
    frame = sure.to_frame()
    frame.columns = [*names, *(["residual at most"] if len(frame.columns) > len(names) else [])]
    st.dataframe(frame.round(4), height=38 + 35 * min(len(frame), 20))


def _take_away(answer: Answer) -> None:
    problem, chosen = answer.problem, answer.chosen
    is_table = problem.rows is not None
    left, right = st.columns(2)
    name = left.radio("Format of tables", list(exports.FORMATS), horizontal=True, key="format")
    ending, mime = exports.FORMATS[name]
    scale = "unit"
    if is_table:
        scale = right.radio(
            "Outputs",
            ["unit", "original"],
            format_func={"unit": "standardised", "original": "in the units of their sources"}.get,
            horizontal=True,
            key="scale",
        )
    stem = exports.file_stem(problem)
    command = exports.command(problem, answer.settings, ending=ending, scale=scale)
    with st.container(horizontal=True):
        if is_table:
            _download(
                "Decorrelated table",
                lambda: exports.decorrelated(problem, chosen, ending=ending, scale=scale),
                f"{stem}-decorrelated.{ending}",
                mime,
            )
            _download(
                "Model (JSON)",
                lambda: exports.model(problem, chosen, scale=scale),
                f"{stem}-model.json",
                "application/json",
            )
            _download(
                "Report (HTML)",
                lambda: exports.page(problem, chosen, scale=scale, command=command or ""),
                f"{stem}-report.html",
                "text/html",
            )
        _download(
            "Transformation T",
            lambda: exports.transformation(answer.result, ending=ending),
            f"{stem}-T.{ending}",
            mime,
        )
        if "support" in chosen:
            _download(
                "Support mask",
                lambda: exports.mask_file(problem, chosen["support"]),
                exports.SUPPORT_FILE,
                "text/csv",
            )
    if not is_table:
        st.caption("Table, model and report need the rows; here is only a correlation matrix.")
    st.markdown("**The same in Python**")
    code = exports.snippet(problem, answer.settings, scale=scale)
    st.code(code, language="python", wrap_lines=True)
    if command is not None:
        st.markdown("**The same as a command**")
        st.code(command, language="bash", wrap_lines=True)


def _download(label: str, make: Any, file_name: str, mime: str) -> None:
    # Made when it is clicked, and the page stays as it is.
    st.download_button(
        label, make, file_name=file_name, mime=mime, on_click="ignore", key=f"get {label}"
    )
