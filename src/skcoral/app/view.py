"""The main view: one slider, the curve, the guarantee in words, and the tabs."""

from __future__ import annotations

from typing import Any

import streamlit as st

from skcoral import api
from skcoral.app import controls, tabs
from skcoral.app.page import in_words, leave_out_button, plain, show_picture
from skcoral.app.problem import Problem, arguments, check_mode, doubts, groups
from skcoral.app.settings import EXPLAINED, LIMITED, MODES, bound, current
from skcoral.core import criteria
from skcoral.core.results import Decorrelation, Frontier
from skcoral.data.effects import Measured, rounded_down, vif_text
from skcoral.estimator.rows import named_rows
from skcoral.show import sentences, svg
from skcoral.show.pictures import FidelityDisplay, FrontierDisplay, HoldoutDisplay
from skcoral.show.pictures.fidelity import baseline_fidelities
from skcoral.show.report.facts import curve_points, held_out, holdout_folds
from skcoral.workflow.fit import Fit

_MOST_BARS = 22  # rows of a picture that stand on the page without a scrollbar


@st.fragment
def explore(problem: Problem) -> None:
    """Everything that follows the slider; moving it runs this function and nothing else."""
    with in_words():
        _explore(problem)


def _explore(problem: Problem) -> None:
    mode = bound(
        st.radio,
        "What to hold fixed",
        "mode",
        list(MODES),
        format_func=MODES.__getitem__,
        help="\n".join(f"- {MODES[key]}: {what}" for key, what in EXPLAINED.items()),
        horizontal=True,
    )
    # The keys are those of the style sheet, which orders these parts on narrow screens.
    left, right = st.container(key="answer").columns([4, 3], gap="medium")
    level, plot, choices = (left.container(key=key) for key in ("level", "curve", "choices"))
    verdict, bars = (right.container(key=key) for key in ("verdict", "bars"))
    with verdict:
        answer = st.container()
        _say_dependent(problem)
    check_mode(problem, mode)
    if mode not in LIMITED:
        controls.start_at_recommended(problem.data)
    with choices:
        if mode == "support":
            controls.choose_support()
        if mode == "floor":
            controls.compare(problem.data)
            controls.choose_confidence(problem)
        if mode not in LIMITED:
            controls.choose_own_floors(problem)
    with plot:
        curve = _curve(problem, "worst" if mode == "max_correlation" else "squared")
    with level:
        controls.choose_level(problem, curve)
        figures = st.container(horizontal=True)
    chosen = arguments(problem, current())
    clusters = groups(current(), chosen)
    asked = (clusters, str(chosen))
    with plot:
        with st.spinner("Solving …", show_time=True):
            # Confidence leaves rows out again and again. Only the model is remembered: a fit holds
            # the rows.
            thorough = "confidence" in chosen
            model = problem.remember(
                asked, lambda: problem.data.fit(chosen, groups=clusters, thorough=thorough).model
            )
        fit = Fit(problem.data, model, clusters)
        _frontier(problem, model.result_, curve)
    with figures:
        _figures(model.result_, fit.measured)
    with answer:
        _say(problem, fit, chosen)
    with bars:
        _fidelities(problem, fit)
        with in_words():
            _new_rows(problem, asked, fit)
    tabs.show(problem, fit, chosen)


def _say_dependent(problem: Problem) -> None:
    """Which variables are determined by others, and a button that leaves them out."""
    deficiency = problem.data.estimate.deficiency
    if deficiency is None:
        return
    st.warning(plain(deficiency.explain()))
    if deficiency.redundant and leave_out_button(deficiency.redundant):
        st.rerun()  # the whole page, not only this part of it


def _frontier(problem: Problem, result: Decorrelation, curve: Frontier) -> None:
    R = (
        problem.R if problem.data.estimate.deficiency is None else None
    )  # classical methods need full rank
    display = FrontierDisplay.from_result(curve, R, chosen=result)
    show_picture(svg.frontier(display, "Least residual for every floor"))
    caption = [sentences.threshold(problem.data.threshold, result), sentences.about_curve(result)]
    if result.status != "exact" and sentences.minimises_residual(result):
        gap = max(result.gap, 0.0)
        caption.append(f"The gap between the residual and its proved lower bound is {gap:.2g}.")
    st.caption(" ".join(caption))


def _curve(problem: Problem, criterion: str) -> Frontier:
    dependent = problem.data.estimate.deficiency is not None
    n_points = curve_points(len(problem.data.names), criterion, dependent=dependent)
    with st.spinner("Drawing the curve …"):
        return problem.remember(
            ("curve", criterion),
            lambda: api.frontier(problem.data.estimate, criterion=criterion, n_points=n_points),
        )


def _say(problem: Problem, fit: Fit, chosen: dict[str, Any]) -> None:
    """The measured figures, what the certificate is about, and what was left out.

    A result is green where it is certified for the rows and nothing about the data is in doubt.
    """
    result = fit.model.result_
    plain_case = result.is_certified and result.notes.is_about_rows and not fit.measured.rises
    certificate, *details = sentences.proved(result)
    details += [*problem.data.choices(), sentences.unfloored(result, chosen.get("rho_min"))]
    doubtful = doubts(problem.data)
    body = f"**{plain(fit.measured.headline())}**\n\n{plain(certificate)}\n"
    body += "".join(f"\n- {plain(line, 1200)}" for line in details if line)
    certified = st.info if doubtful or problem.data.estimate.deficiency is not None else st.success
    (certified if plain_case else st.warning)(body)
    if doubtful:
        st.warning("\n".join(f"- {plain(line, 1200)}" for line in doubtful))


def _fidelities(problem: Problem, fit: Fit) -> None:
    """What each output keeps, and what the classical methods would."""
    measured, result = fit.measured, fit.model.result_
    others = {}
    if problem.data.estimate.deficiency is None:  # the classical methods need all directions
        others = problem.remember("baselines", lambda: baseline_fidelities(problem.R))
    display = FidelityDisplay(
        measured.fidelity, names=result.names, rho_min=result.rho_min, baselines=others
    )
    _show_rows(svg.rows(display, "Fidelity of each output"), len(problem.data.names))


def _show_rows(picture: Any, count: int) -> None:
    """A picture with a row per output: many scroll on their own, and the rest stays in reach."""
    with st.container(height=500 if count > _MOST_BARS else "content", border=False):
        show_picture(picture)


def _new_rows(problem: Problem, asked: tuple[Any, ...], fit: Fit) -> None:
    """Below the fidelities, those on rows that are held out; they take five more fits."""
    rows, known = problem.data.rows, problem.data.known(fit.groups)
    folds, why = 0, "No hold-out: here is only a correlation matrix."
    if rows is not None:
        folds, why = holdout_folds(fit.model, known.get("groups"))
    wanted = st.toggle(
        "Measure on new rows",
        disabled=not folds,
        help=why or "Fits again without parts of the table and measures on these.",
        key="new_rows",
    )
    if rows is None or not (wanted and folds):
        return
    with st.spinner("Fitting five times …"):
        validation = problem.remember(
            ("holdout", asked),
            lambda: held_out(fit.model, named_rows(rows.values, problem.data.names), folds, known),
        )
    display = HoldoutDisplay.from_result(validation)
    st.markdown(
        f"{validation.procedure()}: the weakest mean fidelity is **{display.fitted.min():.4f}** on "
        f"the rows fitted and **{display.new.min():.4f}** on new rows. {validation.sentence()}"
    )
    _show_rows(svg.rows(display, "Fidelity on new rows"), len(display.names))


def _figures(result: Decorrelation, measured: Measured) -> None:
    """The result in figures, next to the slider on every screen."""
    assert measured.after is not None  # the app takes no more variables than it can show
    residual = criteria.value(result.criterion, measured.after)
    for label, value in (
        ("Weakest fidelity", f"{rounded_down(measured.min_fidelity, 4):.4f}"),
        ("Mean fidelity", f"{measured.fidelity.mean():.4f}"),
        ("Largest |r|", f"{measured.largest_correlation:.2f}"),
        ("Largest VIF", vif_text(measured.largest_vif)),
        ("Residual", "0" if residual < 1e-12 else f"{residual:#.4g}"),
    ):
        st.metric(label, value, width="content")
