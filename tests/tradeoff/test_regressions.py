"""Problems that once ended with an open gap: mixtures of floors, weights over eight decades."""

from pathlib import Path

import numpy as np
import pytest

from skcoral import decorrelate
from skcoral.certificates import check
from skcoral.exceptions import NotCertifiedWarning

KEPT = sorted((Path(__file__).parent / "problems").glob("*.npz"))


@pytest.mark.parametrize("path", KEPT, ids=lambda path: path.stem)
def test_no_gap_is_open(path):
    with np.load(path) as problem:
        R, floors, criterion = problem["R"], problem["floors"], str(problem["criterion"])
        weights = problem.get("weights")
    result = decorrelate(R, floors, criterion=criterion, pair_weights=weights)
    assert result.status == "optimal"
    found = check(result, R)
    assert found.passed, found.problems


def test_rounding_that_leaves_no_floor_to_bind():
    # 1e-9 above the threshold, condition 1e8, weights over eight decades: no digits for a bound
    with np.load(Path(__file__).parent / "problems" / "hard" / "worst_no_floor_left.npz") as kept:
        R, floors, weights = kept["R"], kept["floors"], kept["weights"]
    with pytest.warns(NotCertifiedWarning):
        result = decorrelate(R, floors, criterion="worst", pair_weights=weights)
    assert check(result, R).problems == ()
