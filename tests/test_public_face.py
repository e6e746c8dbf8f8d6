"""The public face of version 1.0: names, parameters and their order are a contract."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

import skcoral
from skcoral import CORAL, decorrelate, maximize_fidelity, panels, stability

CONTRACT = {
    "CORAL": "rho_min * budget max_vif max_correlation criterion support pair_weights anchors "
    "covariance confidence on_singular output_scale tol random_state",
    "threshold": "R * tol on_singular callback",
    "decorrelate": "R rho_min * criterion pair_weights support bounds anchors proof tol max_iter "
    "on_singular n_starts random_state warm callback",
    "maximize_fidelity": "R budget * criterion pair_weights anchors tol on_singular callback",
    "frontier": "R rho_min * criterion pair_weights anchors n_points tol on_singular callback",
}


def written(function):
    """Names of the parameters, with a star before those by keyword only."""
    names = []
    for name, parameter in inspect.signature(function).parameters.items():
        if parameter.kind is parameter.KEYWORD_ONLY and "*" not in names:
            names.append("*")
        names.append(name)
    return names


@pytest.mark.parametrize("name", CONTRACT)
def test_parameters_are_those_of_the_contract(name):
    assert written(getattr(skcoral, name)) == CONTRACT[name].split()


def test_the_package_has_these_names():
    assert set(skcoral.__all__) == {*CONTRACT, "__version__"}
    assert set(panels.__all__) >= {"rolling", "grouped", "effective_bets"}
    assert set(stability.__all__) >= {"holdout", "bootstrap", "influence", "confident_floors"}


def test_fit_takes_weights_and_groups():
    # scikit-learn's pipelines give a target that is ignored
    assert [n for n in written(CORAL.fit) if n != "y"] == ["self", "X", "sample_weight", "groups"]
    assert inspect.signature(CORAL.fit).parameters["y"].default is None


RESULT = (
    "T correlation fidelity min_fidelity mean_fidelity rho_min criterion objective lower_bound gap "
    "prices weights status certificate n_iter"
)


@pytest.mark.filterwarnings("ignore::skcoral.exceptions.SingularCorrelationWarning")
@pytest.mark.parametrize(
    "answer",
    [
        lambda: decorrelate(np.eye(3)),
        lambda: decorrelate(np.ones((3, 3)), 0.9),
        lambda: decorrelate(np.eye(3), support=np.eye(3)),
        lambda: maximize_fidelity(np.eye(3), 0.1),
        lambda: CORAL().fit(np.random.default_rng(0).normal(size=(20, 3))).result_,
    ],
    ids=["exact", "singular", "restricted", "budget", "fitted"],
)
def test_results_have_what_the_contract_lists(answer):
    result = answer()
    assert all(hasattr(result, name) for name in RESULT.split())
    assert result.status in ("exact", "optimal", "best_found", "not_converged")
    assert {"largest_correlation", "largest_vif", "min_fidelity"} <= set(result.measured.to_dict())


def test_every_parameter_is_in_the_groups_of_the_documentation():
    groups = CORAL.__doc__.partition("by group.")[2].partition("Parameters\n")[0]
    documented = [word.strip("`.,") for word in groups.split() if word.startswith("``")]
    assert documented == [n for n in written(CORAL) if n != "*"]
