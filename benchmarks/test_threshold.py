"""The threshold against one eigendecomposition of the same matrix, in the same run.

In the table of each group the number in brackets is the ratio to the faster of the two, which is
``numpy.linalg.eigh``. The aim is a ratio of 60 from p = 100 on, and 30 ms in all at p ≤ 50.
"""

import tracemalloc

import numpy as np
import pytest

from skcoral import threshold
from skcoral.datasets import make_factor_system, make_system

SYSTEMS = {"simulated": make_system, "factors": make_factor_system}


@pytest.mark.parametrize("call", ["eigh", "threshold"])
@pytest.mark.parametrize("kind", SYSTEMS)
@pytest.mark.parametrize("p", [6, 18, 50, 100, 200, 500, 1000])
def test_speed(benchmark, p, kind, call):
    R = SYSTEMS[kind](p)
    benchmark.group = f"p = {p}, {kind}"
    work = np.linalg.eigh if call == "eigh" else threshold
    result = benchmark.pedantic(work, args=(R,), rounds=3 if p > 200 else 10, warmup_rounds=1)
    if call == "threshold":
        assert result.gap < 1e-9
        benchmark.extra_info["gap"] = result.gap


@pytest.mark.parametrize("kind", SYSTEMS)
@pytest.mark.parametrize("p", [200, 500])
def test_memory_stays_within_twenty_matrices(p, kind):
    R = SYSTEMS[kind](p)
    threshold(R)
    tracemalloc.start()
    try:
        threshold(R)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 20 * R.nbytes
