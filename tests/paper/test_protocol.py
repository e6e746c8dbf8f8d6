"""The paper's protocol: right derivatives, known optima, and the failures it is known for."""

import itertools

import numpy as np
import pytest

from skcoral import decorrelate, threshold
from skcoral.core.measures import fidelity
from skcoral.datasets import load_wine, make_system, wdi_correlation
from skcoral.exceptions import CoralError
from skcoral.paper import protocol, reproduce
from skcoral.paper.protocol import VIOLATION, ProtocolRun, protocol_from, run_protocol


@pytest.mark.parametrize("rho_min", [0.9, None])
def test_derivatives_of_the_lagrangian_against_differences(rho_min):
    rng = np.random.default_rng(1)
    root = np.linalg.cholesky(make_system(4)).T
    of = protocol._Lagrangian(root, rho_min, rng.uniform(size=4), 10.0)
    parts = [rng.normal(size=(4, 4))] + ([] if rho_min else [np.array([0.8])])
    ways = [rng.normal(size=part.shape) for part in parts]

    def moved(h):
        return [part + h * way for part, way in zip(parts, ways, strict=True)]

    def along(slope):
        slope = [slope] if rho_min else slope
        return sum(float(np.sum(a * way)) for a, way in zip(slope, ways, strict=True))

    h = 1e-5
    first = (of.cost(*moved(h)) - of.cost(*moved(-h))) / (2 * h)
    assert along(of.gradient(*parts)) == pytest.approx(first, rel=1e-7)
    second = (along(of.gradient(*moved(h))) - along(of.gradient(*moved(-h)))) / (2 * h)
    assert along(of.hessian(*parts, *ways)) == pytest.approx(second, rel=1e-7)


@pytest.mark.slow
def test_two_variables_have_a_closed_form():
    r = 0.6
    R = np.array([[1.0, r], [r, 1.0]])
    star = (np.sqrt(1 + r) + np.sqrt(1 - r)) / 2
    run = run_protocol(R, n_starts=4)
    assert run.best == pytest.approx(star, abs=1e-6)
    assert run.best <= star + 1e-12
    # Two caps of angular radius acos ρ leave the sources' own angle acos r by 2 acos ρ at most.
    rho = 0.97
    residual = np.cos(np.arccos(r) + 2 * np.arccos(rho))
    run = run_protocol(R, rho, n_starts=3)
    relaxed = np.cos(np.arccos(r) + 2 * np.arccos(rho - VIOLATION))
    assert relaxed**2 <= run.best <= residual**2 + 1e-9


@pytest.mark.slow
def test_only_the_penalty_used_gives_the_printed_violations(monkeypatch):
    systems = {"9.51e-05": make_system(6), "1.62e-05": wdi_correlation().correlation}
    starts = {printed: decorrelate(R, 0.99).T for printed, R in systems.items()}
    found = []
    for pair in itertools.product((1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0), (1.5, 2, 3, 4, 5, 10)):
        monkeypatch.setattr(protocol, "_PENALTY", pair[0])
        monkeypatch.setattr(protocol, "_GROWTH", pair[1])
        ends = {
            printed: fidelity(R, protocol_from(R, 0.99, starts[printed])).min()
            for printed, R in systems.items()
        }
        if all(f"{0.99 - least:.2e}" == printed for printed, least in ends.items()):
            found.append(pair)
    assert found == [(10.0, 2)]


def test_wine_starts_end_in_worse_optima():
    R = load_wine().correlation
    run = run_protocol(R, 0.85, n_starts=10)
    assert run.feasible.all()
    certified = decorrelate(R, 0.85).objective
    assert run.best == pytest.approx(certified, rel=0.01)
    worse = run.values > 1.01 * run.best
    assert 0.2 <= worse.mean() <= 0.6
    assert run.values[worse].min() / run.best > 10
    assert run.share_worse(certified) == worse.mean()
    # What they have in common: their outputs are oriented the other way round.
    assert np.array_equal(worse, run.determinants < 0)


def test_wine_threshold_starts_stay_in_their_component():
    R = load_wine().correlation
    run = run_protocol(R, n_starts=4)
    assert f"{run.best:.6f}" == "0.826231"  # the paper's text
    assert run.best <= threshold(R).upper
    other = run.determinants < 0
    assert 1 <= other.sum() <= 3
    assert run.values[other].max() < 0.80


def test_run_without_a_feasible_end():
    run = ProtocolRun("primal", np.array([1.0]), np.array([0.1]), np.array([np.nan]), 0.0)
    assert np.isnan(run.best)
    assert run.share_worse(1.0) == 1.0


def test_support_protocol_without_restriction_meets_the_certified_optimum():
    R = make_system(6)
    certified = decorrelate(R, 0.99)
    run = run_protocol(R, 0.99, support=np.ones((6, 6), dtype=bool), n_starts=3)
    assert run.best == pytest.approx(certified.objective, abs=1e-5)
    assert run.best >= certified.lower_bound - 1e-5


def test_support_protocol_keeps_the_support():
    R = make_system(6)
    run = run_protocol(R, 0.5, support=np.eye(6, dtype=bool), n_starts=2)
    untouched = np.sum(np.triu(R, 1) ** 2)
    assert run.values == pytest.approx([untouched] * 2, rel=1e-12)
    assert run.violations.max() < 1e-12


R2 = np.array([[1.0, 0.6], [0.6, 1.0]])


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: run_protocol(R2, 1.5), "between 0 and 1; got 1.5"),
        (lambda: run_protocol(R2, [0.5, 0.5]), "rho_min must be one number"),
        (lambda: run_protocol(R2, 0.5, n_starts=0), "n_starts must be a whole number"),
        (lambda: run_protocol(R2, random_state=-1), "random_state must be a whole number"),
        (lambda: run_protocol(R2, 0.5, support=np.eye(3, dtype=bool)), "support"),
        (lambda: protocol_from(R2, 0.5, np.eye(3)), r"T must be of shape \(2, 2\)"),
        (lambda: protocol_from(R2, 0.5, "a"), "T must"),
        (lambda: reproduce("timings", n_starts="a"), "n_starts"),
    ],
)
def test_arguments_are_refused_by_name(call, words):
    with pytest.raises(CoralError, match=words):
        call()
