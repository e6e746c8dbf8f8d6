"""Every mode shows what the library computes."""

import numpy as np
import pandas as pd
import pytest

from skcoral import CORAL, api
from skcoral.app.problem import request_of
from skcoral.app.settings import Settings
from skcoral.choosing import compare_floors
from skcoral.core import criteria
from skcoral.datasets import make_system
from skcoral.show import sentences
from skcoral.stability import holdout


def matrix_file(R):
    names = [f"x{j}" for j in range(1, len(R) + 1)]
    return pd.DataFrame(R, columns=names).to_csv(index=False).encode()


def test_first_view_is_wine_with_a_certificate(open_app, metric, wine, conic_optimum):
    at = open_app()
    floor = compare_floors(wine.correlation).recommended.rho_min
    result = api.decorrelate(wine.correlation, floor)
    expected = conic_optimum(wine.correlation, floor)
    assert metric(at, "Residual") == pytest.approx(expected, rel=5e-4)
    assert metric(at, "Weakest fidelity") == pytest.approx(floor, abs=1e-4)
    assert metric(at, "Mean fidelity") == pytest.approx(result.mean_fidelity, abs=1e-4)
    said = at.success[0].value.replace("\\", "").strip().split("\n\n")
    fitted = CORAL(floor).fit(wine.to_frame())
    assert said == [f"**{fitted.measured_.headline()}**", sentences.certificate(fitted.result_)]
    assert any("0.826230862" in caption.value for caption in at.caption)
    assert any("178 complete rows" in c.value.replace("\\", "") for c in at.caption)
    compared = compare_floors(wine.to_frame().corr())
    assert at.expander[0].label == f"Which floor? Try {floor:g}."
    listed = at.table[0].value
    assert listed["floor"].tolist() == [choice.label for choice in compared.choices]
    largest = [f"{choice.largest_correlation:.2f}" for choice in compared.choices]
    assert listed["largest |r|"].tolist() == largest
    # a closed tab is not drawn
    assert not any("VIF after" in d.value for d in at.dataframe)
    assert not at.code


def test_moving_the_floor(open_app, metric, slider, wine):
    at = open_app()
    for floor in (0.0, 0.6, 0.95, 1.0):
        slider(at, "Floor").set_value(floor).run()
        result = api.decorrelate(wine.correlation, floor)
        assert metric(at, "Residual") == pytest.approx(result.objective, rel=1e-3, abs=1e-9)
        assert metric(at, "Weakest fidelity") == pytest.approx(result.min_fidelity, abs=1e-4)
    # At a floor of one nothing may change: the residual is that of the data.
    untouched = criteria.value("squared", wine.correlation)
    assert metric(at, "Residual") == pytest.approx(untouched, rel=1e-3)
    at.button(key="to_threshold").click().run()
    assert metric(at, "Residual") == 0
    assert slider(at, "Floor").value == 0.826


OWN = {"alcohol": 0.99, "hue": 0.95}
#: Settings of the app, those of the estimator, and what the command repeats.
SAME = [
    ({"own_floors": tuple(OWN.items()), "floor": 0.8}, {"rho_min": OWN}, "--rho-min alcohol=0.99"),
    *(
        ({"mode": mode, mode: limit}, {mode: limit}, f"--{mode.replace('_', '-')} {limit}")
        for mode, limit in (("budget", 0.5), ("max_vif", 1.5), ("max_correlation", 0.3))
    ),
    (
        {"mode": "support", "floor": 0.9, "support": 0.3},
        {"rho_min": 0.9, "support": 0.3},
        "--support 0.3",
    ),
    ({"target": "proline", "floor": 0.9}, {"rho_min": 0.9}, "--target proline"),
    (
        {"covariance": "LedoitWolf", "floor": 0.95},
        {"covariance": "LedoitWolf", "rho_min": 0.95},
        "--covariance LedoitWolf",
    ),
]


@pytest.mark.parametrize(("settings", "same", "words"), SAME, ids=[s[2] for s in SAME])
def test_the_app_shows_what_the_estimator_finds(open_app, metric, wine, settings, same, words):
    at = open_app(tab="Downloads", **settings)
    frame = wine.to_frame().drop(columns=settings.get("target", []))
    if same.get("rho_min") == OWN:
        same = {"rho_min": dict.fromkeys(wine.names, 0.8) | OWN}
    model = CORAL(**same).fit(frame)
    known = model.measured_
    assert metric(at, "Weakest fidelity") == pytest.approx(known.min_fidelity, abs=1e-4)
    assert metric(at, "Mean fidelity") == pytest.approx(known.fidelity.mean(), abs=1e-4)
    assert metric(at, "Largest |r|") == pytest.approx(known.residual.max(), abs=5.1e-3)
    if "max_vif" in same:
        assert metric(at, "Largest VIF") == pytest.approx(known.vif.max(), abs=1e-2)
        assert any("VIFs without a limit" in c.value for c in at.caption)
    else:
        residual = 0.5 * ((known.after - np.eye(len(known.after))) ** 2).sum()
        if "max_correlation" in same:
            residual = known.residual.max()
        assert metric(at, "Residual") == pytest.approx(residual, rel=1e-3)
    (command,) = (c.value for c in at.code)
    assert words in command
    assert ("--rho-min" in command) == ("floor" in settings)
    assert "--exclude" not in command
    shrunk = "covariance" in same
    assert bool(at.success) == (model.result_.is_certified and not shrunk)
    said = (*at.success, *at.info, *at.warning)[0].value.replace("\\", "")
    assert said.startswith(f"**{known.headline()}**")
    assert ("Certified for the correlation matrix that LedoitWolf estimates" in said) == shrunk
    assert ("proline is the outcome" in said) == ("target" in settings)


def test_controls_change_the_answer(open_app, metric, slider, wine):
    at = open_app(floor=0.8, own_floors=tuple(OWN.items()))
    assert at.multiselect(key="own_names").value == ["alcohol", "hue"]
    at.number_input(key="own_hue").set_value(0.9).run()
    at.multiselect(key="own_names").set_value(["hue", "ash"]).run()
    assert at.session_state["settings"].own_floors == (("hue", 0.9), ("ash", 0.8))
    floors = dict.fromkeys(wine.names, 0.8) | {"hue": 0.9}
    result = api.decorrelate(wine.correlation, list(floors.values()))
    assert metric(at, "Residual") == pytest.approx(result.objective, rel=1e-3)
    at = open_app(mode="budget", budget=0.5)
    at.number_input(key="budget").set_value(0.0).run()
    assert metric(at, "Weakest fidelity") == pytest.approx(0.8262, abs=1e-4)  # the paper's ρ★
    at = open_app(mode="support", floor=0.9, support=0.3)
    slider(at, "A source may").set_value(1.0).run()
    # Nothing may enter but the variable itself: nothing changes.
    untouched = criteria.value("squared", wine.correlation)
    assert metric(at, "Residual") == pytest.approx(untouched, rel=1e-3)
    at = open_app(mode="max_correlation", max_correlation=0.3)
    slider(at, "Largest |correlation|").set_value(0.5).run()
    assert metric(at, "Largest |r|") == pytest.approx(0.5, abs=1e-6)
    at = open_app(target="proline", floor=0.9)
    next(box for box in at.selectbox if box.label == "Outcome").set_value("").run()
    full = CORAL(0.9).fit(wine.to_frame()).measured_
    assert metric(at, "Mean fidelity") == pytest.approx(full.fidelity.mean(), abs=1e-4)


def test_another_table_forgets_the_settings_of_the_last(bring, metric):
    R = make_system(5)
    at = bring("one.csv", matrix_file(R), own_floors=(("x1", 0.99),), floor=0.9, without=("x5",))
    smaller = R[:3, :3]
    at.file_uploader(key="file").set_value(("two.csv", matrix_file(smaller), "text/csv"))
    at.run()
    floor = compare_floors(smaller).recommended.rho_min
    now = at.session_state["settings"]
    assert (now.own_floors, now.without, now.floor) == ((), (), floor)
    assert metric(at, "Residual") == pytest.approx(
        api.decorrelate(smaller, floor).objective, rel=1e-3, abs=1e-9
    )
    at.file_uploader(key="file").set_value(None).run()  # back to the example
    assert metric(at, "Weakest fidelity") == pytest.approx(0.94, abs=1e-4)


def test_outputs_tab(open_app, wine):
    at = open_app(tab="Outputs", floor=0.9)
    table = next(d.value for d in at.dataframe if "VIF after" in d.value)
    result = api.decorrelate(wine.correlation, 0.9)
    assert tuple(table.index) == wine.names
    assert np.allclose(table["fidelity"], result.fidelity)
    assert np.allclose(table["price"], result.prices)
    assert np.allclose(table["VIF before"], np.diag(np.linalg.inv(wine.correlation)))
    assert np.allclose(table["VIF after"], np.diag(np.linalg.inv(result.correlation)))


def test_new_rows_are_measured_when_asked(open_app, wine):
    at = open_app(floor=0.9)
    assert not any("Fitted 5 times" in m.value for m in at.markdown)
    at.toggle(key="new_rows").set_value(True).run()
    figures = holdout(CORAL(0.9), wine.to_frame(), cv=5).to_frame()
    said = next(m.value for m in at.markdown if "Fitted 5 times" in m.value)
    assert "without one part of the rows and measured on it" in said
    assert f"**{figures['fidelity_new'].min():.4f}**" in said
    # a column that is constant in a part is told, and the rest stays
    rare = wine.to_frame().assign(rare=[1.0, 2.0] + [0.0] * 176).to_csv(index=False).encode()
    at.file_uploader(key="file").set_value(("rare.csv", rare, "text/csv")).run()
    assert "rare" in at.error[0].value
    assert at.tabs
    # a matrix has no rows to hold out, also where the switch was on before
    file = ("m.csv", matrix_file(wine.correlation), "text/csv")
    at.file_uploader(key="file").set_value(file).run()
    assert at.toggle(key="new_rows").disabled
    assert not any("Fitted 5 times" in m.value for m in at.markdown)
    assert not any("population" in t.label for t in at.toggle)


@pytest.mark.parametrize(("mode", "limit"), [("support", 30), ("max_correlation", 60)])
def test_modes_that_take_long_say_how_many_variables_they_bear(bring, metric, mode, limit):
    at = bring("m.csv", matrix_file(make_system(limit + 1)))
    assert at.metric
    at.radio[0].set_value(mode).run()
    text = at.error[0].value.replace("\\", "")
    assert f"up to {limit} variables, and there are {limit + 1}" in text
    assert not at.metric
    assert not at.dataframe  # no picture and no table of outputs
    at.radio[0].set_value("floor").run()
    assert not at.error
    assert metric(at, "Residual") > 0


def test_every_setting_of_the_matrix_is_in_the_request():
    """Two questions with different answers are never remembered under one key."""
    names = {"without": ("ash",), "include": ("ash",), "weights": "ash", "target": "ash"}
    others = [{}, {"covariance": "OAS"}, {"covariance": "GraphicalLasso"}]
    others += [{name: value} for name, value in names.items()]
    requests = [request_of(Settings(**chosen)) for chosen in others]
    assert len(set(requests)) == len(requests)
