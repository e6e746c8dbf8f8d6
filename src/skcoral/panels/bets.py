"""Effective bets of a portfolio: how its risk spreads over decorrelated factors.

A portfolio of correlated factors with exposures ``b`` has the variance ``bᵀΣb``. Decorrelated
outputs ``Z T`` of the standardised factors carry the same portfolio with exposures
``c = T⁻¹ (σ ∘ b)``, and with ``G = TᵀRT`` the variance is ``cᵀGc = Σ_j c_j (Gc)_j``: one
contribution for each output, which add up whatever ``T`` is. If the outputs are uncorrelated, they
are ``c_j²``, and the exponential of the entropy of their shares is the effective number of bets
(Meucci, 2009). Minimum torsion (Meucci, Santangelo and Deguest, 2015) chooses the uncorrelated
factors that are nearest to the given ones on average; :func:`skcoral.decorrelate` keeps every
factor above its floor instead.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import entr

from skcoral.baselines import minimum_torsion
from skcoral.core.arrays import Array, Frozen
from skcoral.core.display import Shown
from skcoral.core.problem import check_correlation, square_matrix
from skcoral.core.validation import check_names, float_array, listing, positions
from skcoral.exceptions import InvalidArgumentError


@dataclass(frozen=True, eq=False, repr=False)
class Bets(Shown, Frozen):
    """The risk of one portfolio on decorrelated factors.

    Attributes
    ----------
    names : tuple of str
        The factors.
    exposures : ndarray of shape (p,)
        Exposures ``c`` to the outputs, in units of the portfolio's return per standard deviation.
    contributions : ndarray of shape (p,)
        ``c_j (Gc)_j``: they add up to ``variance``. Where outputs are correlated, some may be
        negative: hedges.
    variance : float
        Of the portfolio.
    shares : ndarray of shape (p,)
        ``c_j² / Σc²``, a distribution; the shares of the variance where outputs are uncorrelated.
    effective : float
        Effective number of bets, ``exp(-Σ shares log shares)``: from 1 (one bet) to p (all alike).
    shared : float
        ``variance - Σc²``: what the correlations left between the outputs add; zero without any.

    Examples
    --------
    >>> bets = effective_bets([[1.0, 0.0], [0.0, 3.0]], [1.0, 1.0])
    >>> bets.shares.round(6).tolist(), round(bets.effective, 3)
    ([0.25, 0.75], 1.755)
    """

    names: tuple[str, ...]
    exposures: Array
    contributions: Array
    variance: float
    shares: Array
    effective: float
    shared: float

    def _table(self) -> tuple[str, tuple[str, ...], dict[str, Array]]:
        columns = {
            "exposure": self.exposures,
            "contribution": self.contributions,
            "share": self.shares,
        }
        return "factor", self.names, columns

    def summary(self) -> str:
        """The effective number of bets and the variance, in one sentence."""
        return (
            f"{self.effective:.3f} effective bets on {len(self.names)} factors: variance "
            f"{self.variance:.6g}, of which correlated outputs share {self.shared:.3g}."
        )


def effective_bets(covariance: Any, exposures: Any, T: Any = None) -> Bets:
    """Spread the variance of a portfolio over decorrelated factors.

    Parameters
    ----------
    covariance : array-like or DataFrame of shape (p, p)
        Of the factors.
    exposures : array-like of shape (p,), Series or mapping by name
        Exposures ``b`` of the portfolio to the factors.
    T : array of shape (p, p), or a result that has one, optional
        The transformation of the standardised factors: a
        :class:`~skcoral.core.results.Decorrelation`, a fitted :class:`skcoral.CORAL`, a
        :class:`~skcoral.baselines.Baseline`, or an array.
        Minimum torsion by default.

    Returns
    -------
    Bets

    Examples
    --------
    Two factors with correlation 0.8, held equally, are little more than one bet; on uncorrelated
    factors of their own they are two, because neither of them is what the portfolio holds.

    >>> from skcoral.panels import effective_bets
    >>> from skcoral.baselines import pca
    >>> covariance = [[1.0, 0.8], [0.8, 1.0]]
    >>> round(effective_bets(covariance, [1.0, 1.0]).effective, 6)
    2.0
    >>> round(effective_bets(covariance, [1.0, 1.0], pca(covariance)).effective, 6)
    1.0
    >>> round(effective_bets(covariance, [1.0, 0.0]).effective, 3)
    1.649
    """
    sigma, scale, names = _read_covariance(covariance)
    R = check_correlation(sigma / np.outer(scale, scale))
    b = _read_exposures(exposures, names)
    T = _read_transformation(minimum_torsion(R) if T is None else T, covariance, names)
    # The same portfolio in the outputs: Z T c = Z (σ ∘ b) for all rows Z.
    try:
        c = np.linalg.solve(T, scale * b)
    except np.linalg.LinAlgError:
        raise InvalidArgumentError(
            "T has no inverse, so the portfolio cannot be expressed in its outputs."
        ) from None
    with np.errstate(over="ignore", invalid="ignore"):
        variance, total = float(b @ sigma @ b), float(c @ c)
    if not np.isfinite([variance, total]).all():
        raise InvalidArgumentError("The variance overflows: rescale the exposures.")
    shares = c * c / total if total > 0 else np.full(len(c), np.nan)
    return Bets(
        names=names,
        exposures=c,
        contributions=c * (T.T @ R @ T @ c),
        variance=variance,
        shares=shares,
        effective=float(np.exp(entr(shares).sum())),
        shared=variance - total,
    )


def _read_covariance(covariance: Any) -> tuple[Array, Array, tuple[str, ...]]:
    if isinstance(covariance, Mapping) or np.ndim(covariance) == 1:
        raise InvalidArgumentError(
            "covariance must be a square matrix; got one number for each factor. The covariance "
            "comes first: effective_bets(covariance, exposures)."
        )
    sigma, _ = square_matrix(covariance, "covariance", InvalidArgumentError)
    variances = np.diag(sigma)
    if not (np.isfinite(sigma).all() and (variances > 0).all()):
        raise InvalidArgumentError(
            "covariance must be finite with variances above 0 on its diagonal."
        )
    names = check_names(getattr(covariance, "columns", None), len(sigma))
    return sigma, np.sqrt(variances), names


def _read_exposures(exposures: Any, names: tuple[str, ...]) -> Array:
    if hasattr(exposures, "keys"):
        places = positions(exposures.keys(), names, "exposures", some=True)
        by_place = dict(zip(places, (value for _, value in exposures.items()), strict=True))
        exposures = [by_place.get(j, 0.0) for j in range(len(names))]
    b, _ = float_array(exposures, "exposures", InvalidArgumentError)
    if b.shape != (len(names),) or not np.isfinite(b).all():
        raise InvalidArgumentError(
            f"exposures must hold {len(names)} finite numbers, one per factor; got shape {b.shape}."
        )
    return b


def _read_transformation(T: Any, covariance: Any, names: tuple[str, ...]) -> Array:
    """The matrix of a result; where it and the covariance have names, these must be the same."""
    variables = getattr(T, "feature_names_in_", getattr(T, "names", None))
    if variables is not None and hasattr(covariance, "columns") and len(variables) == len(names):
        variables = tuple(str(name) for name in variables)
        if variables not in (names, tuple(f"x{j}" for j in range(len(names)))):
            raise InvalidArgumentError(
                f"The variables of T are {listing(variables)}, the factors {listing(names)}: give "
                "both in the same order."
            )
    if not isinstance(T, np.ndarray) and not hasattr(T, "columns"):  # whose T is no transpose
        T = getattr(T, "T_", getattr(T, "T", T))
    T, _ = float_array(getattr(T, "toarray", lambda: T)(), "T", InvalidArgumentError)
    if T.shape != (len(names),) * 2 or not np.isfinite(T).all():
        raise InvalidArgumentError(
            f"T must be a finite matrix of {len(names)} rows and columns, one output for each "
            f"factor; got shape {T.shape}."
        )
    return np.asarray(T)
