"""The claims of a transformation with a prescribed support: its zeros and its prices."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from skcoral.bounds.arithmetic import UNIT
from skcoral.bounds.columns import in_range, projected, supports_at
from skcoral.bounds.dual import numbers
from skcoral.certificates.evaluation import prices_of
from skcoral.certificates.ledger import Ledger
from skcoral.certificates.reading import agree
from skcoral.core.arrays import Array
from skcoral.core.results import Decorrelation, RestrictedDecorrelation
from skcoral.core.tolerances import PRICE_TOL
from skcoral.exceptions import CertificateError

Mask = NDArray[np.bool_]

_ON_RIM = 1e-7  # a floor binds if the fidelity is no further above it


def claim_support(ledger: Ledger, result: RestrictedDecorrelation, R: Array) -> None:
    """Zeros off the support, and prices that follow from the slope of the criterion."""
    if result.pair_weights is not None:
        raise CertificateError("a support is not combined with pair weights.")
    B = np.eye(len(R)) if result.anchors is None else in_range(np.asarray(result.anchors))
    given = numbers(result.certificate.arrays["support"], B.shape, "`support`")
    if not np.isin(given, (0, 1)).all():
        raise CertificateError("a support consists of zeros and ones.")
    mask = supports_at(given > 0, B, result.rho_min)
    ledger.claim("support", not np.any(result.T[~mask]), "T is not zero off its support")
    if not mask.any(axis=0).all():
        raise CertificateError("an output needs at least one source in the support.")
    _claim_prices(ledger, result, R, *projected(R, B, mask))


def _claim_prices(
    ledger: Ledger, result: RestrictedDecorrelation, R: Array, X: Array, reach: Array
) -> None:
    """Prices are the multipliers of the floors at T, or said not to be known (NaN).

    ``X`` are the anchors as their supports see them.
    """
    k, wide = len(result.names), result.support.sum(axis=0) > 1
    slope = numbers(result.certificate.arrays["slope"], (k, k), "`slope`")
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
    E = G - np.diag(np.diag(G))
    size = np.abs(slope)
    if result.criterion == "squared":
        value = 0.5 * float(np.sum(E * E)) + 0.5 * float(np.sum(slope * slope))
        inside = True
    elif result.criterion == "absolute":
        value = 0.5 * float(np.abs(E).sum())
        inside = bool(size.max(initial=0.0) <= 0.5 * (1 + PRICE_TOL))
    else:
        value = float(np.abs(E).max(initial=0.0))
        inside = bool(size.sum() <= 1 + PRICE_TOL)
    gap = value - float(np.sum(slope * E))
    ledger.claim(
        "slope",
        inside
        and abs(gap) <= PRICE_TOL * max(1.0, value)
        and not np.any(np.diag(slope))
        and np.array_equal(slope, slope.T),
        f"it is not a slope of the criterion at T ({gap:.1e})",
    )
