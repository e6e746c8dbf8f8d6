"""Every mode shows what the library computes, and a link reopens it."""

import numpy as np
import pytest

from skcoral import CORAL, api
from skcoral.choosing import compare_floors
from skcoral.core import measures
from skcoral.datasets import make_system, wdi_correlation
from skcoral.show import sentences
from skcoral.solvers.support import support_from_threshold
from skcoral.stability import holdout


def test_first_view_is_wine_with_a_certificate(open_app, metric, wine, conic_optimum):
    at = open_app()
    floor = compare_floors(wine.correlation).recommended.rho_min
    assert at.query_params["floor"] == f"{floor:g}"
    result = api.decorrelate(wine.correlation, floor)
    expected = conic_optimum(wine.correlation, floor)
    assert metric(at, "Residual") == pytest.approx(expected, rel=5e-4)
    assert metric(at, "Weakest fidelity") == pytest.approx(floor, abs=1e-4)
    assert metric(at, "Mean fidelity") == pytest.approx(result.mean_fidelity, abs=1e-4)
    said = at.success[0].value.replace("\\", "").strip().split("\n\n")
    fitted = CORAL(floor).fit(wine.to_frame())
    assert said == [f"**{fitted.measured_.headline()}**", sentences.certificate(fitted.result_)]
    assert any("0.826231" in caption.value for caption in at.caption)
    assert any("178 complete rows" in c.value.replace("\\", "") for c in at.caption)


def test_moving_the_floor(open_app, metric, slider, wine):
    at = open_app()
    for floor in (0.0, 0.6, 0.9, 0.95, 1.0):
        slider(at, "Floor").set_value(floor).run()
        result = api.decorrelate(wine.correlation, floor)
        assert metric(at, "Residual") == pytest.approx(result.objective, rel=1e-3, abs=1e-9)
        assert metric(at, "Weakest fidelity") == pytest.approx(result.min_fidelity, abs=1e-4)
        assert at.query_params["floor"] == f"{floor:g}"
    # At a floor of one nothing may change: the residual is that of the data.
    untouched = measures.residual_by("squared", wine.correlation, np.eye(13))
    assert metric(at, "Residual") == pytest.approx(untouched, rel=1e-3)


def test_back_to_the_threshold(open_app, metric):
    at = open_app(floor="0.97")
    assert metric(at, "Residual") > 1
    at.button(key="to_threshold").click().run()
    assert metric(at, "Residual") == 0
    assert at.query_params["floor"] == "0.826"


def test_floors_of_single_variables(open_app, metric, wine):
    at = open_app(floor="0.8", own=["alcohol:0.99", "hue:0.95"])
    floors = dict.fromkeys(wine.names, 0.8) | {"alcohol": 0.99, "hue": 0.95}
    result = api.decorrelate(wine.correlation, list(floors.values()))
    assert metric(at, "Residual") == pytest.approx(result.objective, rel=1e-3)
    assert at.multiselect(key="own_names").value == ["alcohol", "hue"]
    assert at.query_params["own"] == ["alcohol:0.99", "hue:0.95"]
    at.number_input(key="own_hue").set_value(0.9).run()
    assert at.query_params["own"] == ["alcohol:0.99", "hue:0.9"]
    at.multiselect(key="own_names").set_value(["hue", "ash"]).run()
    assert at.query_params["own"] == ["hue:0.9", "ash:0.8"]
    floors = dict.fromkeys(wine.names, 0.8) | {"hue": 0.9}
    result = api.decorrelate(wine.correlation, list(floors.values()))
    assert metric(at, "Residual") == pytest.approx(result.objective, rel=1e-3)


def test_budget(open_app, metric, slider, wine):
    at = open_app(mode="budget", budget="0.5")
    assert metric(at, "Residual") == pytest.approx(0.5, abs=1e-4)
    # Two routes to the same point: the budget's floor costs the budget.
    again = api.decorrelate(wine.correlation, metric(at, "Weakest fidelity"))
    assert again.objective == pytest.approx(0.5, abs=5e-3)
    slider(at, "Budget").set_value(0.0).run()
    assert metric(at, "Weakest fidelity") == pytest.approx(0.8262, abs=1e-4)  # the paper's ρ★
    assert at.query_params["budget"] == "0"


@pytest.mark.parametrize("budget", ["0.0314159", "0.00012", "7"])
def test_budget_of_a_link_is_not_rounded(open_app, metric, budget):
    at = open_app(mode="budget", budget=budget)
    assert metric(at, "Residual") == pytest.approx(float(budget), rel=1e-3)
    assert at.query_params["budget"] == budget


def test_support(open_app, metric, slider):
    R = wdi_correlation().correlation
    at = open_app(source="wdi", mode="support", floor="0.9", support="0.3")
    result = api.decorrelate(R, 0.9, support=support_from_threshold(R, 0.3))
    assert metric(at, "Residual") == pytest.approx(result.objective, rel=1e-3)
    assert (result.T[np.abs(R) <= 0.3] == 0).all()
    slider(at, "A source may").set_value(1.0).run()
    # Nothing may enter but the variable itself: nothing changes.
    untouched = measures.residual_by("squared", R, np.eye(len(R)))
    assert metric(at, "Residual") == pytest.approx(untouched, rel=1e-3)


def test_modes_keep_their_settings(open_app, metric):
    at = open_app(floor="0.9")
    at.radio[0].set_value("budget").run()
    at.radio[0].set_value("floor").run()
    assert at.query_params["floor"] == "0.9"
    assert metric(at, "Weakest fidelity") == pytest.approx(0.9, abs=1e-4)


@pytest.mark.parametrize(
    "query",
    [
        {"source": "wine", "mode": "floor", "floor": "0.91", "without": ["ash", "hue"]},
        {
            "source": "simulated",
            "size": "9",
            "mode": "floor",
            "floor": "0.98",
            "criterion": "worst",
        },
        {"source": "wine", "mode": "budget", "budget": "1.5", "covariance": "LedoitWolf"},
        {"source": "wine", "mode": "floor", "floor": "0.9", "weights": "proline"},
    ],
)
def test_link_reopens_the_same_view(open_app, query):
    at = open_app(**query)
    assert at.metric
    assert at.query_params == query
    again = open_app(**at.query_params)
    assert [m.value for m in again.metric] == [m.value for m in at.metric]


def test_link_that_is_invalid_is_reported(open_app, metric):
    at = open_app(source="<b>", floor="7", mode="x", own="hue", covariance="-1")
    said = " ".join(w.value for w in at.warning).replace("\\", "")
    for part in ("source = <b>", "floor = 7", "mode = x", "own = hue", "covariance = -1"):
        assert part in said
    assert metric(at, "Weakest fidelity") == pytest.approx(0.94, abs=1e-4)  # recommended


@pytest.mark.parametrize(
    ("query", "told"),
    [
        ({"weights": "nothing"}, "'nothing'"),
        ({"without": ["ash", "nothing"]}, "'nothing'"),
        ({"own": ["nothing:0.9", "ash:0.99"]}, "'nothing'"),
        ({"source": "wdi", "covariance": "OAS"}, "here is only a matrix"),
    ],
)
def test_links_about_what_is_not_there_are_reported(open_app, query, told):
    at = open_app(**query)
    assert at.metric
    assert told in at.warning[0].value.replace("\\", "")
    assert not any("nothing" in value for value in at.query_params.values())
    again = open_app(**at.query_params)
    assert not [w for w in again.warning if told in w.value.replace("\\", "")]
    assert [m.value for m in again.metric] == [m.value for m in at.metric]


def test_what_is_shown_is_what_the_link_says(open_app):
    at = open_app(tab="Downloads", floor="0.8512345678", own=["ash:-0"])
    assert at.query_params["floor"] == "0.851235"
    assert at.query_params["own"] == "ash:0"
    assert "--rho-min 0.851235 " in at.code[0].value


def test_simulated_system_of_any_size(open_app, metric):
    at = open_app(source="simulated", size="5", floor="0.99")
    assert metric(at, "Residual") == pytest.approx(
        api.decorrelate(make_system(5), 0.99).objective, rel=1e-3
    )
    at.number_input[0].set_value(7).run()
    assert metric(at, "Residual") == pytest.approx(
        api.decorrelate(make_system(7), 0.99).objective, rel=1e-3
    )
    assert at.query_params["size"] == "7"


def test_another_source_forgets_the_columns_of_the_last(open_app):
    at = open_app(without=["ash"], own=["hue:0.9"])
    at.sidebar.selectbox[0].set_value("wdi").run()
    floor = compare_floors(wdi_correlation().correlation).recommended.rho_min
    assert at.query_params == {"source": "wdi", "mode": "floor", "floor": f"{floor:g}"}
    assert not at.exception


def test_outputs_tab(open_app, wine):
    at = open_app(tab="Outputs", floor="0.9")
    table = next(d.value for d in at.dataframe if "made of" in d.value)
    result = api.decorrelate(wine.correlation, 0.9)
    assert np.allclose(table["fidelity"], result.fidelity)
    assert np.allclose(table["price"], result.prices)
    assert np.allclose(table["VIF before"], np.diag(np.linalg.inv(wine.correlation)))
    assert np.allclose(table["VIF after"], np.diag(np.linalg.inv(result.correlation)))
    heaviest = wine.names[int(np.abs(result.T[:, 0]).argmax())]
    assert table["made of"][0].split()[1] == heaviest


def test_new_rows_are_measured_when_asked(open_app, wine):
    at = open_app(floor="0.9")
    assert not any("Fitted 5 times" in m.value for m in at.markdown)
    at.toggle(key="new_rows").set_value(True).run()
    found = holdout(CORAL(0.9), wine.to_frame(), cv=5).to_frame()
    said = next(m.value for m in at.markdown if "Fitted 5 times" in m.value)
    assert "without one part of the rows and measured on it" in said
    assert f"**{found['fidelity_new'].min():.4f}**" in said
    # a matrix has no rows to hold out, also where the switch was on before
    at.sidebar.selectbox[0].set_value("wdi").run()
    assert at.toggle(key="new_rows").disabled
    assert not any("Fitted 5 times" in m.value for m in at.markdown)


@pytest.mark.parametrize(("mode", "limit"), [("support", 30), ("worst", 60), ("absolute", 60)])
def test_modes_that_take_long_say_how_many_variables_they_bear(open_app, mode, limit):
    at = open_app(source="simulated", size=str(limit + 1), floor="0.97")
    assert at.metric
    if mode == "support":
        at.radio[0].set_value(mode).run()
    else:
        at.main.selectbox[0].set_value(mode).run()
    told = at.error[0].value.replace("\\", "")
    assert f"up to {limit} variables, and there are {limit + 1}" in told
    assert not at.metric
    assert not at.dataframe  # no picture and no table of outputs


def test_only_the_open_tab_is_drawn(open_app):
    closed = open_app()
    assert not any("made of" in d.value for d in closed.dataframe)
    assert not closed.code
    assert open_app(tab="Downloads").code


def test_a_click_takes_one_of_the_floors_compared(open_app, metric, wine):
    at = open_app(floor="0.5")
    compared = compare_floors(wine.to_frame().corr())
    shown = [m.value.replace("*", "") for m in at.main.markdown if m.value.startswith("|r|")]
    assert len(shown) == len(compared.choices) == 6
    for said, choice in zip(shown, compared.choices, strict=True):
        assert f"|r| {choice.largest_correlation:.2f}, VIF {choice.largest_vif:.1f}" in said
    best = f"{compared.recommended.rho_min:g}"
    assert at.expander[0].label == f"Which floor? Try {best}."
    at.button(key=f"take_{best}").click().run()
    assert metric(at, "Weakest fidelity") == pytest.approx(float(best), abs=1e-4)
    assert at.query_params["floor"] == best
    assert not at.exception


@pytest.mark.parametrize(("criterion", "budget"), [("worst", "0.3"), ("absolute", "4")])
def test_every_criterion(open_app, metric, wine, criterion, budget):
    at = open_app(floor="0.9", criterion=criterion)
    expected = api.decorrelate(wine.correlation, 0.9, criterion=criterion)
    assert metric(at, "Residual") == pytest.approx(expected.objective, rel=1e-3)
    assert sentences.CRITERIA[criterion] in at.success[0].value
    at = open_app(mode="budget", criterion=criterion, budget=budget)
    expected = api.maximize_fidelity(wine.correlation, float(budget), criterion=criterion)
    assert metric(at, "Weakest fidelity") == pytest.approx(expected.min_fidelity, abs=1e-4)
    assert metric(at, "Residual") == pytest.approx(float(budget), rel=1e-3)
    assert "(proved)" in at.success[0].value.replace("\\", "")


def test_floors_for_the_population(open_app, metric, wine):
    at = open_app(floor="0.85")
    plain = metric(at, "Residual")
    switch = next(t for t in at.toggle if "population" in t.label)
    assert "95%" in switch.label
    switch.set_value(True).run()
    sure = CORAL(0.85, confidence=0.95).fit(wine.to_frame())
    assert metric(at, "Residual") == pytest.approx(sure.result_.objective, rel=1e-3)
    assert metric(at, "Residual") > plain
    assert metric(at, "Weakest fidelity") == pytest.approx(sure.fidelity_.min(), abs=1e-4)
    assert at.query_params["confidence"] == "0.95"
    assert sure.confidence_.sentence() in at.success[0].value.replace("\\", "")
    again = open_app(floor="0.85", confidence="0.95")
    assert metric(again, "Residual") == metric(at, "Residual")
    off = open_app(floor="1", confidence="0.95")
    assert not off.exception
    assert not off.error


def test_raised_floors_of_single_outputs(open_app):
    at = open_app(tab="Outputs", floor="0.85", confidence="0.95")
    assert not at.exception
    shown = next(d.value for d in at.dataframe if "floor asked" in d.value)
    assert list(shown["floor asked"].unique()) == [0.85]
    assert (shown["fidelity at least"] >= 0.85).all()


def test_a_matrix_has_no_population(open_app):
    at = open_app(source="wdi", floor="0.85", confidence="0.95")
    assert not any("population" in t.label for t in at.toggle)
    assert any("need rows" in w.value for w in at.warning)


def test_limit_on_the_vif(open_app, metric, wine):
    at = open_app(mode="max_vif", max_vif="1.5")
    known = CORAL(max_vif=1.5).fit(wine.to_frame())
    assert metric(at, "Weakest fidelity") == pytest.approx(known.measured_.min_fidelity, abs=1e-4)
    assert metric(at, "Largest VIF") <= 1.5
    assert any("a limit on the VIF can lie above it" in c.value for c in at.caption)
    assert at.query_params == {"source": "wine", "mode": "max_vif", "max_vif": "1.5"}


def test_limit_on_the_largest_correlation(open_app, metric, slider, wine):
    at = open_app(mode="max_correlation", max_correlation="0.3")
    known = CORAL(max_correlation=0.3).fit(wine.to_frame())
    assert metric(at, "Weakest fidelity") == pytest.approx(known.measured_.min_fidelity, abs=1e-4)
    assert metric(at, "Largest |r|") == pytest.approx(0.3, abs=1e-6)
    slider(at, "Largest |correlation|").set_value(0.5).run()
    assert at.query_params["max_correlation"] == "0.5"
    assert metric(at, "Largest |r|") == pytest.approx(0.5, abs=1e-6)


def test_modes_within_a_limit_give_commands_that_say_it(open_app):
    at = open_app(tab="Downloads", mode="max_vif", max_vif="1.5")
    (command,) = (c.value for c in at.code)
    assert "--max-vif 1.5" in command
    assert "--rho-min" not in command


def test_outcome(open_app, metric, wine):
    at = open_app(tab="Downloads", target="proline", floor="0.9")
    frame = wine.to_frame()
    known = CORAL(0.9).fit(frame.drop(columns="proline"))
    assert metric(at, "Mean fidelity") == pytest.approx(known.measured_.fidelity.mean(), abs=1e-4)
    said = at.success[0].value.replace("\\", "")
    assert "proline is the outcome: it is left out of the variables and stays as it is." in said
    (command,) = (c.value for c in at.code)
    assert "--target proline" in command
    assert "--exclude" not in command
    at.selectbox[[box.label for box in at.selectbox].index("Outcome")].set_value("").run()
    assert "target" not in at.query_params
    assert metric(at, "Mean fidelity") == pytest.approx(
        CORAL(0.9).fit(frame).measured_.fidelity.mean(), abs=1e-4
    )
