"""The widgets of each mode: slider, floors of single variables, mask grid."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import streamlit as st

from skcoral.app import state
from skcoral.app.cache import about
from skcoral.app.page import plain
from skcoral.app.problem import Problem, group_columns, mask
from skcoral.app.settings import mask_to_text
from skcoral.choosing import FloorComparison, compare_floors
from skcoral.core import measures
from skcoral.data.effects import rounded_down, vif_text
from skcoral.show import sentences
from skcoral.solvers.support import support_from_threshold

if TYPE_CHECKING:
    from skcoral.core.results import Threshold

_CONFIDENCE = 0.95


def choose_level(problem: Problem, threshold: Threshold) -> None:
    """Show the slider of the current mode."""
    mode = state.current().mode
    if mode == "budget":
        _choose_budget(problem)
        return
    if mode == "max_correlation":
        label = "Largest |correlation| allowed between outputs"
        state.bound(st.slider, label, mode, 0.0, 1.0, step=0.01)
        return
    if mode == "max_vif":
        state.bound(st.number_input, "Largest VIF allowed in the outputs", mode, 1.0, step=0.1)
        return
    slider, button = st.columns([3, 1], vertical_alignment="bottom")
    exact = threshold.least_residual == 0
    least = "uncorrelated" if exact else "as little correlated as is possible"
    button.button(
        "To ρ★" if exact else "To the least",
        on_click=_take,
        args=(rounded_down(threshold.value, 3),),
        help=f"The highest floor at which the outputs can still be {least}.",
        key="to_threshold",
        width="stretch",
    )
    label = "Floor: fidelity that every output keeps"
    state.bound(slider.slider, label, "floor", 0.0, 1.0, step=0.001, format="%.3f")


def _take(floor: float) -> None:
    state.change(floor=floor)
    state.refresh_widgets()


def _compared(problem: Problem, threshold: Threshold) -> FloorComparison:
    return about(
        problem, "floors", lambda: compare_floors(problem.data.judged, threshold=threshold)
    )


def start_at_recommended(problem: Problem, threshold: Threshold) -> None:
    """Begin at the floor that is recommended, or at ρ★ where none is."""
    if state.current().floor is None:
        best = _compared(problem, threshold).recommended
        floor = None if best is None else best.rho_min
        state.recommend(rounded_down(threshold.value, 3) if floor is None else floor)


def compare(problem: Problem, threshold: Threshold) -> None:
    """Show what usual floors give; a click takes one."""
    compared = _compared(problem, threshold)
    best = compared.recommended
    little = best is not None and best.above is None
    advice = "None is recommended." if best is None else f"Try {best.label}."
    with st.expander(f"Which floor? {'Little is to be gained here.' if little else advice}"):
        st.caption(plain(compared.sentence()))
        estimate = problem.data.estimate
        about_matrix = "" if estimate.is_about_rows else f" for {estimate.about}"
        st.caption(
            "A click takes a floor. Largest |r|, largest VIF and weakest fidelity with the least "
            f"{sentences.CRITERIA['squared']}{about_matrix}:"
        )
        for choice in compared.choices:
            floor = rounded_down(choice.floor, 3)
            word = f"{choice.label} {floor:.3f}" if choice.rho_min is None else f"{floor:g}"
            with st.container(horizontal=True, vertical_alignment="center"):
                st.button(
                    word,
                    on_click=_take,
                    args=(floor,),
                    type="primary" if choice is best and not little else "secondary",
                    key=f"take_{word}",
                    width=110,
                )
                st.markdown(
                    f"|r| **{choice.largest_correlation:.2f}**, "
                    f"VIF **{vif_text(choice.largest_vif)}**, "
                    f"keeps **{rounded_down(choice.min_fidelity, 3):.3f}**",
                    width="content",
                )


def _choose_budget(problem: Problem) -> None:
    criterion, now = state.current().criterion, state.current().budget
    everything = about(
        problem,
        ("residual before", criterion),
        lambda: measures.residual_by(criterion, problem.R, np.eye(len(problem.R))),
    )
    # Round steps, a thousand of them or more, and an end at which nothing needs to be done.
    digits = 3 - math.floor(math.log10(max(everything, 1e-6)))
    step = 10.0**-digits
    # Uncorrelated variables have nothing left to allow; a slider needs two ends all the same.
    top = max(math.ceil(everything / step), 1) * step
    budget = st.slider(
        f"Budget: {sentences.CRITERIA[criterion]} allowed",
        0.0,
        top,
        step=step,
        format=f"%.{max(digits, 0)}f",
        key=state.widget(f"budget_{criterion}_{top:g}", min(now, top)),
        help=f"The variables themselves have {everything:.4g}.",
    )
    if budget != now:
        state.change(budget=budget)


def choose_confidence(problem: Problem) -> None:
    """Let the visitor ask for floors that hold for the population."""
    if not problem.can_hold_out:
        return
    current = state.current().confidence
    wanted = st.toggle(
        f"Hold for the population, with {(current or _CONFIDENCE):.0%} confidence",
        help="Floors are kept on these rows; raised a little, they are kept by the population "
        "that the rows come from, with this confidence for all variables together.",
        key=state.widget("confidence", bool(current)),
    )
    if wanted != bool(current):
        state.change(confidence=_CONFIDENCE if wanted else 0.0)
    if wanted:
        _choose_together(problem)


def _choose_together(problem: Problem) -> None:
    """Let the visitor say which rows count as one observation."""
    settings = state.current()
    columns = group_columns(problem)
    if settings.groups and settings.groups not in columns:
        st.caption(plain(f"There is no column {settings.groups!r} to group rows by here."))
    kinds = {
        "": "none: rows are independent",
        **{name: f"those with the same {name}" for name in columns},
    }
    groups = state.pick(
        "Rows that belong together",
        kinds,
        state.widget(
            f"together_{hash(tuple(columns))}", settings.groups if settings.groups in kinds else ""
        ),
        help="Rows of one cluster tell less than as many independent rows. Columns that are no "
        "variables can name clusters.",
    )
    if groups != settings.groups:
        state.change(groups=groups)


def choose_own_floors(problem: Problem) -> None:
    """Show the floors of single variables, and take over what is said."""
    import pandas as pd

    asked = dict(state.current().own)
    with st.expander("Floors of single variables"):
        key = f"own_{state.generation()}_{hash(problem.names)}"
        first = _first(key, asked)
        floors = pd.array([first.get(name) for name in problem.names], dtype="Float64")
        edited = st.data_editor(
            pd.DataFrame({"variable": list(problem.names), "floor": floors}),
            key=key,
            hide_index=True,
            disabled=["variable"],
            column_config={
                "floor": st.column_config.NumberColumn(
                    "own floor", min_value=0.0, max_value=1.0, format="%.3f"
                )
            },
            placeholder="common floor",
        )
        st.caption("Where no number stands, the floor of the slider holds.")
    values = zip(edited["variable"], edited["floor"], strict=True)
    own = {name: value for name, value in asked.items() if name not in problem.names}
    own |= {name: float(value) for name, value in values if not pd.isna(value)}
    if own != asked:
        state.change(own=tuple(own.items()))


def choose_support(problem: Problem) -> None:
    """Show which source may enter which output, and take over what is said."""
    import pandas as pd

    before = state.current().link
    label = "A source may enter an output where their |correlation| exceeds"
    link = state.bound(st.slider, label, "link", 0.0, 1.0, step=0.01)
    if link != before:
        state.change(mask="")
    with st.expander("Edit which source may enter which output"):
        key = f"mask_{state.generation()}_{hash(problem.names)}_{link}"
        first = _first(key, mask(problem, state.current()))
        # Columns go by their places: the editor keeps some names for itself.
        names = {str(j): name for j, name in enumerate(problem.names)}
        edited = st.data_editor(
            pd.DataFrame(first, index=pd.Index(problem.names, name="source"), columns=list(names)),
            key=key,
            column_config={
                place: st.column_config.CheckboxColumn(label=name, width="small", default=False)
                for place, name in names.items()
            },
        )
        st.caption("Rows are sources, columns are outputs. A variable may always enter its own.")
    allowed = edited.to_numpy(dtype=bool, copy=True)
    np.fill_diagonal(allowed, True)
    by_link = np.asarray(support_from_threshold(problem.R, link), dtype=bool)
    text = "" if np.array_equal(allowed, by_link) else mask_to_text(allowed)
    if text != state.current().mask:
        state.change(mask=text)


def _first(key: str, value: Any) -> Any:
    """What an editor began with: it is given the same table in every run."""
    if key not in st.session_state:
        st.session_state[f"{key}_first"] = value
    return st.session_state[f"{key}_first"]
