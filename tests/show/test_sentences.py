"""Sentences about results, on matrices whose figures are known in closed form."""

import warnings
from dataclasses import replace

import numpy as np
import pytest

from skcoral import CORAL, decorrelate, frontier, maximize_fidelity, threshold
from skcoral.datasets import load_wine
from skcoral.show import sentences

PAIR = [[1.0, 0.6], [0.6, 1.0]]  # ρ★ = (√1.6 + √0.4) / 2
STRONG = [[1.0, 0.8], [0.8, 1.0]]
HEAVY = [[1.0, 0.9, 0.5], [0.9, 1.0, 0.6], [0.5, 0.6, 1.0]]
CHAIN = 0.6 ** np.abs(np.subtract.outer(range(4), range(4)))
COMPOSITES = [[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]]


#: Sentences, and the names and numbers that each has to hold.
HELD = [
    (
        lambda: sentences.windows([0.8, 0.9], [0.2, 0.1], [0.95, 0.96], [0.91, 0.87]),
        ["0.90 → 0.20", "0.95", "0.8700", "0.9100"],
    ),
    (lambda: sentences.certificate(decorrelate(PAIR, 0.9)), ["matrix given", "uncorrelated"]),
    (
        lambda: sentences.goal(maximize_fidelity(STRONG, 0.3, criterion="worst")),
        ["0.951936 is the highest", "at most 0.3", "(proved)"],
    ),
    (lambda: sentences.unfloored(decorrelate(PAIR, {"x0": 0.9}), {"x0": 0.9}), ["1 of 2", "x1"]),
    (
        lambda: sentences.threshold_summary(threshold(PAIR)),
        ["0.948683298", "x0, x1", "0.9487", "optimal"],
    ),
    (
        lambda: sentences.frontier_summary(frontier(PAIR, n_points=5)),
        ["2 variables", "5 floors from 0.948683 to 1", "0 up to ρ★", "0.36 at", "All points"],
    ),
    (lambda: sentences.frontier_summary(frontier(PAIR, [0.5])), ["0.5", "0 up to ρ★ = 0.948683"]),
    (lambda: sentences.frontier_summary(frontier(PAIR, [1.0])), ["floor of 1", "0.36"]),
    (
        lambda: sentences.goal(maximize_fidelity(PAIR, 0.9, criterion="worst")),
        ["largest", "at most 0.9", "nothing was changed"],
    ),
    (lambda: sentences.goal(maximize_fidelity(PAIR, 9.0, criterion="vif")), ["VIF exceeds 9"]),
    (lambda: decorrelate(CHAIN, 0.97).summary(), ["with these floors has"]),
    (
        lambda: decorrelate(CHAIN, 0.97, support=[(0, 1), (1, 2), (2, 3)]).summary(),
        ["floors and restrictions"],
    ),
    (lambda: sentences.price(2.91931), ["2.919"]),
]


@pytest.mark.parametrize(("sentence", "needles"), HELD, ids=[needles[0] for _, needles in HELD])
def test_sentences_hold_names_and_numbers(sentence, needles):
    text = " ".join(sentence().split())
    assert [needle for needle in needles if needle not in text] == []


def test_where_there_is_nothing_to_say():
    assert sentences.unfloored(decorrelate(PAIR), None) == ""
    assert sentences.goal(decorrelate(PAIR, 1.0)) == ""
    # variables whose VIFs are above 5, and composites of them that keep to the limit
    limited = maximize_fidelity(HEAVY, 3.0, criterion="vif", anchors=COMPOSITES)
    assert "changed" not in sentences.goal(limited)
    assert sentences.price(1.6e-10) == "0"
    assert sentences.price(float("inf")) == "∞"


def test_what_is_not_certified():
    best = decorrelate(HEAVY, 0.95)
    unproved = replace(best, status="best_found", lower_bound=0.01)
    assert best.is_certified
    assert not unproved.is_certified
    assert sentences.certificate(unproved).startswith("Not certified")
    assert "less than 0.01" in sentences.certificate(unproved)


def test_a_support_chooses_no_floor():
    answer = decorrelate(PAIR, support=[[True, True], [True, True]])
    assert sentences.unfloored(answer, None).startswith("No variable has a floor: ")


def test_a_floor_that_is_not_proved_is_the_highest_found():
    R = np.corrcoef(np.random.default_rng(3).normal(size=(4, 7)).T)  # rank 3
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        answer = maximize_fidelity(R, 6.0)
    low, high = float(answer.rho_min.min()), float(answer.goal.rho_upper)
    goal = sentences.goal(replace(answer, status="best_found"))
    for needle in (f"{low:.6g} is the highest found", "at most 6", f"none above {high:.6g}"):
        assert needle in goal


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
    sentence = coral.summary().splitlines()[-1]
    assert sentence.startswith(start)
    solved = coral.correlation_ if "covariance" in settings else X.corr()
    assert f"{threshold(solved).value:.9f} and no higher" in sentence
