"""Support certificates where rounding decides, at the size of the tolerance."""

from __future__ import annotations

import numpy as np
import pytest

from skcoral.bounds.arithmetic import Floats
from skcoral.bounds.support import _factor_error
from skcoral.exceptions import CertificateError


@pytest.mark.parametrize("condition", [1e3, 1e8])
def test_the_error_of_a_cholesky_factor(condition: float) -> None:
    """``E = L⁻¹RL⁻ᵀ - I`` as found in more digits, within what is said of it."""
    rng = np.random.default_rng(0)
    Q = np.linalg.qr(rng.normal(size=(12, 12)))[0]
    R = (Q * np.geomspace(1 / condition, 1.0, 12)) @ Q.T
    R = 0.5 * (R + R.T) / np.sqrt(np.outer(np.diag(R), np.diag(R)))
    R = np.tril(R) + np.tril(R, -1).T
    np.fill_diagonal(R, 1.0)
    L = np.linalg.cholesky(R)
    E, doubt, unknown = _factor_error(L, R, Floats(parts=3))
    wide = L.astype(np.longdouble)
    exact = (R - wide @ wide.T).astype(np.float64)
    K = np.linalg.inv(L)
    wanted = K @ exact @ K.T
    size = float(np.linalg.norm(wanted))
    assert size > 1e-17 * condition**0.5
    assert np.linalg.norm(E - wanted) <= 1e-3 * size
    assert size <= doubt
    assert unknown <= 1e-3 * doubt
    np.testing.assert_array_equal(E, E.T)


def test_a_factor_of_another_matrix_proves_nothing() -> None:
    """What is neglected are cubes of E, so E has to be small: 0.1."""
    for short, proved in ((0.02, True), (0.05, False)):
        L = (1 - short) * np.eye(3)
        if proved:
            assert _factor_error(L, np.eye(3), Floats(parts=2))[1] < 0.1
            continue
        with pytest.raises(CertificateError, match="too nearly singular"):
            _factor_error(L, np.eye(3), Floats(parts=2))
