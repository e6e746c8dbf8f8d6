"""When a gap counts as closed."""

import numpy as np
import pytest

from skcoral.solvers.tradeoff.solved import Solved


@pytest.mark.parametrize(("gap", "closed"), [(3e-7, False), (0.3e-7, True)])
@pytest.mark.parametrize("objective", [0.2, 40.0])
def test_a_gap_that_a_solver_calls_closed(gap, closed, objective):
    gap = gap * max(1.0, objective)
    none = np.zeros((6, 6))
    solved = Solved(
        T=np.eye(6),
        G=np.eye(6),
        fidelity=np.ones(6),
        objective=objective,
        lower_bound=objective - gap,
        lam=none[0],
        H=none,
        binding=none[0] > 0,
        n_iter=1,
    )
    assert solved.certified == closed
