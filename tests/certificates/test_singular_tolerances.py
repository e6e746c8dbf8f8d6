"""Rank and factor of a singular matrix, at the size of their tolerances."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from skcoral.bounds.arithmetic import Floats
from skcoral.certificates import check, prove
from skcoral.certificates.ledger import Ledger
from skcoral.core.linalg import correlation_of_covariance
from skcoral.core.lowrank import FactoredCorrelation
from skcoral.exceptions import CertificateError

from .conftest import failed, with_arrays
from .test_singular import HONEST, R, Z

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")
judges = pytest.mark.parametrize("judge", [check, prove])


@judges
@pytest.mark.parametrize("name", ["welch", "frame"])
@pytest.mark.parametrize(("step", "refused"), [(4e-10, True), (0.3e-10, False)])
def test_entries_of_the_matrix(judge: Any, name: str, step: float, refused: bool) -> None:
    A = HONEST["welch"].certificate.arrays["factor"]
    change = np.random.default_rng(0).normal(size=A.shape)
    other = correlation_of_covariance((A + 1e-6 * change).T @ (A + 1e-6 * change))
    size = 1e-6 * step / np.abs(other - R).max()
    other = correlation_of_covariance((A + size * change).T @ (A + size * change))
    assert np.abs(other - R).max() == pytest.approx(step, rel=0.01)
    assert ("factor" in failed(replace(HONEST[name], R=None), other, judge)) == refused


@judges
@pytest.mark.parametrize(("step", "refused"), [(4e-10, True), (0.2e-10, False)])
def test_entries_of_a_factor(judge: Any, step: float, refused: bool) -> None:
    other = Z.copy()
    other[0] *= 1 + step / np.abs(Z[0]).max()
    assert ("factor" in failed(HONEST["welch"], FactoredCorrelation(other), judge)) == refused


@judges
@pytest.mark.parametrize(("step", "refused"), [(2e-10, True), (0.2e-10, False)])
def test_columns_of_unit_length(judge: Any, step: float, refused: bool) -> None:
    A = HONEST["welch"].certificate.arrays["factor"].copy()
    A[:, 2] *= 1 + step
    lie = with_arrays(HONEST["welch"], factor=A)
    if refused:
        with pytest.raises(CertificateError, match="unit length"):
            judge(lie, R)
    else:
        judge(lie, R)


@judges
@pytest.mark.parametrize(("step", "refused"), [(3e-9, True), (2e-10, False)])
def test_what_is_left_beside_the_rank(judge: Any, step: float, refused: bool) -> None:
    """Along a vector of the null space; the bound for p variables is p times 1e-10."""
    v = np.linalg.eigh(R)[1][:, 0]
    other = correlation_of_covariance(R + step * np.outer(v, v))
    assert ("rank" in failed(replace(HONEST["lifted"], R=None), other, judge)) == refused


@pytest.mark.parametrize(("ratio", "counts"), [(5e-13, True), (4e-14, False)])
def test_a_direction_that_counts(ratio: float, counts: bool) -> None:
    """Twins and a third variable: the second eigenvalue is 4/3 of what it lacks to a triplet."""
    r = 1 - 2.25 * ratio
    twins = np.array([[1.0, r, 1.0], [r, 1.0, r], [1.0, r, 1.0]])
    assert np.linalg.eigvalsh(twins)[1] == pytest.approx(3 * ratio, rel=0.05)
    claim = SimpleNamespace(
        rank=2, names=tuple("abc"), certificate=SimpleNamespace(info={"rank": 2})
    )
    ledger = Ledger(claim, twins, None, Floats(3))
    ledger.claim_rank()
    assert all(claim.holds for claim in ledger.claims) == counts
