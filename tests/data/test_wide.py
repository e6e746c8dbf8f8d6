"""Copies among many columns."""

import numpy as np
import pytest
from scipy.linalg import null_space

from skcoral.data.wide import duplicates


@pytest.mark.parametrize(("apart", "copies"), [(3e-10, False), (0.3e-10, True)])
def test_columns_that_count_as_copies(apart, copies):
    """Distances are those of 1 - |r|; the projections that the search sorts by are not apart."""
    rng = np.random.default_rng(0)
    key, a = rng.normal(size=(2, 5))
    a /= np.linalg.norm(a)
    turn = null_space([a, key])[:, 0]
    angle = np.arccos(1 - apart)
    b = np.sin(angle) * turn + np.cos(angle) * a
    pairs = duplicates(np.column_stack([a, -b]))
    assert pairs == ([(0, 1)] if copies else [])
