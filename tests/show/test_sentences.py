"""Sentences about results, on matrices whose figures are known in closed form."""

import warnings
from dataclasses import replace

import numpy as np
import pytest

from skcoral import CORAL, decorrelate, frontier, maximize_fidelity, threshold
from skcoral.datasets import load_wine
from skcoral.show import sentences

PAIR = [[1.0, 0.6], [0.6, 1.0]]  # ρ★ = (√1.6 + √0.4) / 2
HEAVY = [[1.0, 0.9, 0.5], [0.9, 1.0, 0.6], [0.5, 0.6, 1.0]]
COMPOSITES = [[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]]


SOLVED = threshold(PAIR)
SAID = [
    (
        lambda: sentences.windows([0.8, 0.9], [0.2, 0.1], [0.95, 0.96], [0.91, 0.87]),
        "Largest correlation 0.90 → 0.20, every variable keeps at least 0.95 in its window; "
        "ρ★ from 0.8700 to 0.9100.",
    ),
    (
        lambda: sentences.certificate(decorrelate(PAIR, 0.9)),
        "Certified for the matrix given: the outputs are uncorrelated up to rounding.",
    ),
    (
        lambda: sentences.goal(maximize_fidelity([[1.0, 0.8], [0.8, 1.0]], 0.3, criterion="worst")),
        "The floor 0.951936 is the highest at which the largest residual correlation is at most "
        "0.3 (proved).",
    ),
    (
        lambda: sentences.unfloored(decorrelate(PAIR, {"x0": 0.9}), {"x0": 0.9}),
        "1 of 2 variables has a floor; the others have none (0): x1.",
    ),
    (lambda: sentences.unfloored(decorrelate(PAIR), None), ""),
    (
        lambda: sentences.threshold_summary(SOLVED),
        "Exact decorrelation can keep every output at 0.948683298 and no higher (ρ★, proved to "
        f"within {SOLVED.gap:.1g}).\nBound by x0, x1; mean fidelity 0.9487, status optimal.",
    ),
    (
        lambda: sentences.frontier_summary(frontier(PAIR, n_points=5)),
        "The least sum of squared residual correlations of 2 variables for 5 floors from 0.948683 "
        "to 1.\nIt is 0 up to ρ★ = 0.948683 and 0.36 at a floor of 1.\nAll points are certified.",
    ),
    (
        lambda: sentences.frontier_summary(frontier(PAIR, [0.5])),
        "The least sum of squared residual correlations of 2 variables for a floor of 0.5.\n"
        "It is 0 up to ρ★ = 0.948683, and so at it.\nThe point is certified.",
    ),
    (
        lambda: sentences.frontier_summary(frontier(PAIR, [0.5, 0.6])),
        "The least sum of squared residual correlations of 2 variables for 2 floors from 0.5 to "
        "0.6.\nIt is 0 up to ρ★ = 0.948683, and so at all of them.\nAll points are certified.",
    ),
    (
        lambda: sentences.frontier_summary(frontier(PAIR, [1.0])),
        "The least sum of squared residual correlations of 2 variables for a floor of 1.\n"
        "It is 0.36.\nThe point is certified.",
    ),
    (lambda: sentences.goal(decorrelate(PAIR, 1.0)), ""),
    (
        lambda: sentences.goal(maximize_fidelity(PAIR, 0.9, criterion="worst")),
        "At a floor of 1 the largest residual correlation is at most 0.9 already: nothing was "
        "changed.",
    ),
    (
        lambda: sentences.goal(maximize_fidelity(PAIR, 2.0)),
        "At a floor of 1 the sum of squared residual correlations is at most 2 already: nothing "
        "was changed.",
    ),
    (
        lambda: sentences.goal(maximize_fidelity(PAIR, 9.0, criterion="vif")),
        "At a floor of 1 no VIF exceeds 9 already: nothing was changed.",
    ),
    (  # VIFs of the variables are above 5
        lambda: sentences.goal(maximize_fidelity(HEAVY, 3.0, criterion="vif", anchors=COMPOSITES)),
        "At a floor of 1 no VIF exceeds 3 already.",
    ),
    (lambda: sentences.price(1.6e-10), "0"),
    (lambda: sentences.price(2.91931), "2.919"),
    (lambda: sentences.price(float("inf")), "∞"),
]


@pytest.mark.parametrize(("said", "wanted"), SAID, ids=[wanted[:30] for _, wanted in SAID])
def test_sentences_in_full(said, wanted):
    assert said() == wanted


def test_what_is_not_certified():
    best = decorrelate(HEAVY, 0.95)
    found = replace(best, status="best_found", lower_bound=0.01)
    assert best.is_certified
    assert not found.is_certified
    assert sentences.certificate(found).startswith("Not certified")
    assert "can have less than 0.01" in sentences.certificate(found)


def test_a_support_chooses_no_floor():
    found = decorrelate(PAIR, support=[[True, True], [True, True]])
    assert sentences.unfloored(found, None).startswith("No variable has a floor: ")


def test_a_floor_that_is_not_proved_is_the_highest_found():
    R = np.corrcoef(np.random.default_rng(3).normal(size=(4, 7)).T)  # rank 3
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = maximize_fidelity(R, 6.0)
    low, high = float(found.rho_min.min()), float(found.goal.rho_upper)
    assert sentences.goal(replace(found, status="best_found")) == (
        f"The floor {low:.6g} is the highest found at which the sum of squared residual "
        f"correlations is at most 6 (proved: none above {high:.6g} is possible)."
    )


@pytest.mark.parametrize(
    ("settings", "start"),
    [
        ({}, "Exact decorrelation can keep"),
        ({"covariance": "OAS"}, "For the correlation matrix that OAS estimates"),
        ({"support": 0.4, "rho_min": 0.8}, "Exact decorrelation with unrestricted coefficients"),
        ({"anchors": np.eye(4)[:, :2]}, "Exact decorrelation of the variables themselves"),
    ],
)
def test_a_summary_says_of_which_problem_the_threshold_is(settings, start):
    """ρ★ of another matrix, of all coefficients or of the columns is not that of the outputs."""
    X = load_wine().to_frame().iloc[:, 5:9]
    coral = CORAL(**settings).fit(X)
    said = coral.summary().splitlines()[-1]
    assert said.startswith(start)
    solved = coral.correlation_ if "covariance" in settings else X.corr()
    assert f"{threshold(solved).value:.9f} and no higher" in said
