"""The widgets of each mode: slider, floors of single variables, support, confidence."""

from __future__ import annotations

import streamlit as st

from skcoral.app.page import plain
from skcoral.app.problem import CONFIDENCE, Problem, group_columns
from skcoral.app.settings import bound, change, choose, current, put
from skcoral.core import criteria
from skcoral.core.results import Frontier
from skcoral.data.effects import rounded_down
from skcoral.show import sentences
from skcoral.workflow.dataset import Dataset


def choose_level(problem: Problem, curve: Frontier) -> None:
    """Show the slider of the current mode."""
    mode = current().mode
    if mode == "budget":
        _choose_budget(problem, curve)
        return
    if mode == "max_correlation":
        label = "Largest |correlation| allowed between outputs"
        bound(st.slider, label, mode, 0.0, 1.0, step=0.01)
        return
    if mode == "max_vif":
        bound(st.number_input, "Largest VIF allowed in the outputs", mode, 1.0, step=0.1)
        return
    slider, button = st.columns([2, 1], vertical_alignment="bottom")
    threshold = problem.data.threshold
    exact = threshold.least_residual == 0
    least = "uncorrelated" if exact else "as little correlated as is possible"
    button.button(
        "To ρ★" if exact else "To the least residual",
        on_click=change,
        kwargs={"floor": rounded_down(threshold.value, 3)},
        help=f"The highest floor at which the outputs can still be {least}.",
        key="to_threshold",
        width="stretch",
    )
    label = "Floor: fidelity that every output keeps"
    bound(slider.slider, label, "floor", 0.0, 1.0, step=0.001, format="%.3f")


def start_at_recommended(data: Dataset) -> None:
    """Begin at the floor that is recommended, or at ρ★ where none is."""
    if current().floor is None:
        best = data.floors.recommended
        change(floor=rounded_down(data.threshold.value if best is None else best.floor, 3))


def compare(data: Dataset) -> None:
    """Show what usual floors give, and which one is recommended."""
    best = data.floors.recommended
    advice = "None is recommended." if best is None else f"Try {best.label}."
    if best is not None and best.floor == 1.0:
        advice = "Little is to be gained here."
    with st.expander(f"Which floor? {advice}"):
        st.caption(plain(data.floors.sentence()))
        st.table([choice.cells for choice in data.floors.choices], hide_index=True)
        least = sentences.CRITERIA["squared"]
        st.caption(f"With the least {least}. Weakest: the fidelity that every output keeps.")


def _choose_budget(problem: Problem, curve: Frontier) -> None:
    """Begin a tenth of the way from what has to remain to what the variables have."""
    everything = criteria.value("squared", problem.R)
    # Where variables depend on each other, no budget below the lowest point of the curve is met.
    least = 0.0 if problem.data.estimate.deficiency is None else float(curve.objective.min())
    if current().budget is None:
        change(budget=float(f"{0.9 * least + 0.1 * everything:.3g}"))
    bound(
        st.number_input,
        f"Budget: {sentences.CRITERIA['squared']} allowed",
        "budget",
        0.0,
        step=float(f"{max(everything, 1e-6) / 50:.0e}"),
        format="%.4g",
        help=f"The variables themselves have {everything:.4g}.",
    )


def choose_confidence(problem: Problem) -> None:
    """Let the visitor ask for floors that hold for the population."""
    if not problem.source.has_rows:
        return
    wanted = bound(
        st.toggle,
        f"Hold for the population, with {CONFIDENCE:.0%} confidence",
        "population",
        help="Floors are kept on these rows; raised a little, they are kept by the population "
        "that the rows come from, with this confidence for all variables together.",
    )
    if not wanted:
        return
    columns = {"": "none: rows are independent"}
    columns |= {name: f"those with the same {name}" for name in group_columns(problem)}
    if current().groups not in columns:  # it is a variable by now
        change(groups="")
    choose(
        "groups",
        "Rows that belong together",
        columns,
        help="Rows of one cluster tell less than as many independent rows. Any column that is not "
        "a variable can name clusters.",
    )
    if not current().groups:
        suggested = problem.data.suggested_groups
        how = "choose it here"
        if suggested is not None and suggested[0] not in columns:
            how = "take it out of the variables and choose it here"
        st.caption(plain(sentences.clusters(suggested, how)))


def choose_own_floors(problem: Problem) -> None:
    """Let the visitor name variables that have floors of their own."""
    # Floors of variables that are left out for now are kept until these come back.
    floors = dict(current().own_floors)

    def name_them() -> None:
        floor = current().floor
        named = st.session_state["own_names"]
        change(own_floors=tuple((name, floors.get(name, floor)) for name in named))

    def set_floor(name: str, key: str) -> None:
        change(own_floors=tuple((floors | {name: st.session_state[key]}).items()))

    with st.expander("Floors of single variables"):
        st.multiselect(
            "Variables with another floor than the slider's",
            problem.data.names,
            key=put("own_names", [name for name in floors if name in problem.data.names]),
            on_change=name_them,
        )
        for name in (name for name in floors if name in problem.data.names):
            key = put(f"own_{name}", floors[name])
            st.number_input(
                plain(name),
                0.0,
                1.0,
                step=0.001,
                format="%.3f",
                key=key,
                on_change=set_floor,
                args=(name, key),
            )


def choose_support() -> None:
    """Let the visitor say which source may enter which output."""
    label = "A source may enter an output where their |correlation| exceeds"
    bound(st.slider, label, "support", 0.0, 1.0, step=0.01)
