"""Problems that once ended with an open gap: mixtures of floors, weights over eight decades."""

from pathlib import Path

import numpy as np
import pytest

from skcoral import decorrelate
from skcoral.certificates import check

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
