"""The analytic bounds of the paper, against naive versions and its printed figures."""

from itertools import combinations

import numpy as np
import pytest
from scipy.linalg import sqrtm

from skcoral.paper.bounds import subset_bound, trace_bound, zca_bound
from systems import with_spectrum


@pytest.mark.parametrize("p", [2, 3, 10])
@pytest.mark.parametrize("r", [0.1, 0.9, 0.999])
def test_equicorrelation(p, r):
    R = np.full((p, p), r) + (1 - r) * np.eye(p)
    wanted = (np.sqrt(1 + (p - 1) * r) + (p - 1) * np.sqrt(1 - r)) / p
    value, subset = subset_bound(R)
    assert [zca_bound(R), trace_bound(R), value] == pytest.approx([wanted] * 3, abs=1e-12)
    # Fewer variables of an equicorrelated set are easier to keep, so all of them bound best.
    assert len(subset) == p


@pytest.mark.parametrize("seed", range(4))
def test_against_the_definition(seed):
    R = with_spectrum(np.geomspace(1, 1e-4, 7), seed=seed)
    root = sqrtm(R).real
    assert zca_bound(R) == pytest.approx(np.diag(root).min(), abs=1e-10)
    assert trace_bound(R) == pytest.approx(np.trace(root) / 7, abs=1e-10)
    # the nuclear norm of the columns S of R^{1/2}, as the paper states it
    value, subset = min(
        (np.linalg.norm(root[:, S], "nuc") / size, S)
        for size in range(1, 8)
        for S in combinations(range(7), size)
    )
    assert subset_bound(R) == (pytest.approx(value, abs=1e-10), subset)
