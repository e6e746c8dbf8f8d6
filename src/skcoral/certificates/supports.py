"""The claims of a transformation with a prescribed support: its zeros and its prices."""

from __future__ import annotations

import numpy as np

from skcoral.bounds.arithmetic import UNIT
from skcoral.bounds.columns import proved_columns
from skcoral.bounds.dual import part
from skcoral.certificates.evaluation import prices_of
from skcoral.certificates.ledger import Ledger
from skcoral.certificates.reading import agree
from skcoral.core import criteria
from skcoral.core.arrays import Array
from skcoral.core.results import Decorrelation, RestrictedDecorrelation
from skcoral.core.tolerances import PRICE_TOL
from skcoral.exceptions import CertificateError

_ON_RIM = 1e-7  # a floor binds if the fidelity is no further above it


def claim_support(ledger: Ledger, result: RestrictedDecorrelation, R: Array) -> None:
    """Zeros off the support, and prices that follow from the slope of the criterion."""
    if result.pair_weights is not None:
        raise CertificateError("a support is not combined with pair weights.")
    given = result.certificate.arrays["support"], result.rho_min, R, result.anchors
    columns = [one.column for one in proved_columns(*given, ledger.arithmetic)]
    mask, X = np.zeros(result.T.shape, dtype=np.bool_), np.zeros(result.T.shape)
    for j, one in enumerate(columns):
        mask[one.sources, j], X[one.sources, j] = True, one.anchor
    ledger.claim("support", not np.any(result.T[~mask]), "T is not zero off it")
    _claim_prices(ledger, result, R, X, np.array([one.reach for one in columns]))


def _claim_prices(
    ledger: Ledger, result: RestrictedDecorrelation, R: Array, X: Array, reach: Array
) -> None:
    """Prices are the multipliers of the floors at T, or said not to be known (NaN).

    ``X`` are the anchors as their supports see them.
    """
    k, wide = len(result.names), result.support.sum(axis=0) > 1
    slope = part(result.certificate.arrays, "slope", k, k)
    if np.isnan(result.prices).all() and np.isnan(result.weights).all():
        return  # said not to be known
    image = R @ result.T
    G = result.T.T @ image
    if result.status != "exact":
        _claim_subgradient(ledger, result, slope, G)
    floors = result.rho_min / np.where(result.rho_min > 0, reach, 1.0)
    f = np.einsum("ij,ij->j", X, image)
    along = np.einsum("ij,ij->j", X, image @ slope)
    radial = np.einsum("ij,ji->i", G, slope)
    active = (floors > 0) & (floors < 1) & wide & (f - floors <= _ON_RIM)
    room = np.where(active, 1.0 - f * f, 1.0)
    multipliers = np.maximum(np.where(active, (along - f * radial) / room, 0.0), 0.0)
    multipliers = multipliers / np.where(active, reach, 1.0)
    prices = prices_of(result, 2.0 * multipliers)
    # Near a floor of one the multiplier is a small difference over a small one.
    digits = 64 * UNIT * multipliers / room
    for name, reported, wanted in (
        ("prices", result.prices, prices),
        ("weights", result.weights, multipliers),
    ):
        ledger.claim(
            name,
            np.all(agree(reported, wanted, PRICE_TOL, digits)),
            "they are not the multipliers of the floors at T",
        )


def _claim_subgradient(ledger: Ledger, result: Decorrelation, slope: Array, G: Array) -> None:
    """``slope`` is half a subgradient of the criterion: equality in Fenchel's inequality."""
    name, k = result.criterion, len(G)
    value = criteria.value(name, G) + (criteria.conjugate(name, slope) if name == "squared" else 0)
    gap = value - float(np.sum(slope * criteria.off(G)))
    inside = criteria.gauge(name, slope, criteria.pair_matrix(None, k)) <= 1 + PRICE_TOL
    holds = inside and not np.any(np.diag(slope)) and abs(gap) <= PRICE_TOL * max(1.0, value)
    ledger.claim("slope", holds, f"it is not a slope of the criterion at T ({gap:.1e})")
