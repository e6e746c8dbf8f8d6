"""The paper's method from a given start: right derivatives, and settings that follow from print."""

import itertools

import numpy as np
import pytest

from skcoral import decorrelate
from skcoral.core.measures import fidelity
from skcoral.datasets import make_system, wdi_correlation
from skcoral.paper import protocol
from skcoral.paper.protocol import protocol_from


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
