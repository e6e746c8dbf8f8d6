"""The main view: one slider, the curve, the guarantee in words, and what lies behind them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import streamlit as st

from skcoral import api
from skcoral.app import controls, details, figures, state
from skcoral.app.errors import in_words
from skcoral.app.memory import about
from skcoral.app.problem import Problem, arguments, solve
from skcoral.app.settings import MODES, Settings
from skcoral.plotting.fidelity import baseline_fidelities
from skcoral.plotting.frontier import landmark_points
from skcoral.report import words
from skcoral.results import Decorrelation, Threshold

if TYPE_CHECKING:
    from skcoral.results import Frontier

#: A worst-pair solution takes as long as dozens of the others: its curve has fewer points, and
#: for many variables none.
_WORST_POINTS = ((16, 11), (32, 7))


def threshold_of(problem: Problem) -> Threshold:
    """The threshold, computed once per matrix."""
    return about(problem, "threshold", lambda: api.threshold(problem.named))


@st.fragment
def explore(problem: Problem) -> None:
    """Everything that follows the slider; moving it runs this function and nothing else."""
    with in_words():
        _explore(problem)
    state.write_link()


def _explore(problem: Problem) -> None:
    threshold = threshold_of(problem)
    left, right = st.columns([4, 3], gap="medium")
    with left:
        mode = st.radio(
            "What to hold fixed",
            list(MODES),
            format_func=MODES.__getitem__,
            horizontal=True,
            key=state.widget("mode", state.current().mode),
        )
        if mode != state.current().mode:
            state.change(mode=mode)
        controls.choose(problem, threshold)
        settings = state.current()
        chosen = arguments(problem, settings)
        asked = _asked(settings, chosen)
        result = _solution(problem, asked, chosen)
        st.plotly_chart(
            figures.frontier(
                _curve(problem, result.criterion),
                about(
                    problem,
                    ("points", result.criterion),
                    lambda: landmark_points(problem.R, result.criterion),
                ),
                result,
                threshold=threshold.value,
            ),
            key="frontier",
            config={"displayModeBar": False},
        )
    with right:
        _say(result, threshold)
        others = about(problem, "baselines", lambda: baseline_fidelities(problem.R))
        st.plotly_chart(
            figures.fidelity(result, others),
            key="fidelity",
            config={"displayModeBar": False},
        )
    details.show(details.Answer(problem, settings, chosen, asked, result))


def _asked(settings: Settings, chosen: dict[str, Any]) -> tuple[Any, ...]:
    """What was asked, as a key."""
    if settings.mode == "budget":
        return (settings.mode, settings.budget)
    support = chosen["support"].tobytes() if "support" in chosen else b""
    return (settings.mode, str(chosen["rho_min"]), support)


def _solution(problem: Problem, asked: tuple[Any, ...], chosen: dict[str, Any]) -> Decorrelation:
    with st.spinner("Solving …", show_time=True):
        return about(problem, asked, lambda: solve(problem, chosen))


def _curve(problem: Problem, criterion: str) -> Frontier | None:
    n_points = 25
    if criterion == "worst":
        p = len(problem.names)
        n_points = next((n for limit, n in _WORST_POINTS if p <= limit), 0)
    if not n_points:
        return None
    with st.spinner("Drawing the curve …"):
        return about(
            problem,
            ("curve", criterion),
            lambda: api.frontier(problem.named, criterion=criterion, n_points=n_points),
        )


def _say(result: Decorrelation, threshold: Threshold) -> None:
    said = words.guarantee(result)
    (st.success if words.is_certified(result) else st.warning)(said)
    residual = "0" if result.status == "exact" else f"{result.objective:.4g}"
    with st.container(horizontal=True):
        for label, value in (
            ("Weakest fidelity", f"{result.min_fidelity:.4f}"),
            ("Mean fidelity", f"{result.mean_fidelity:.4f}"),
            ("Residual", residual),
        ):
            st.metric(label, value, width="content")
    st.caption(f"{words.threshold(threshold)} {words.certificate(result).capitalize()}.")
