"""Floors that hold for the population, with a stated confidence."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from skcoral.core.arrays import Array, Frozen
from skcoral.core.display import Drawn, short
from skcoral.core.tolerances import EXACT_TOL
from skcoral.core.validation import check_count, check_number, listing
from skcoral.data.effects import rounded_down
from skcoral.estimator import CORAL
from skcoral.exceptions import ConfidenceWarning, InvalidArgumentError, warn
from skcoral.stability.resampling import Fitted, Resampler
from skcoral.stability.sampling_errors import (
    DRAWS,
    HIGHEST,
    Draws,
    Errors,
    fidelity_on,
    fisher,
    left_out,
    residual_bounds,
)

_MOST_OUTPUTS = 400  # whose 80,000 pairs are bounded in seconds; those of 4,000 take 100 times that
_MOST_CONFIDENT = 1.0 - 1.0 / DRAWS  # beyond it there is no draw, and so no quantile
# Two or three passes meet nearly all floors, and further ones only tighten them (of 40 tables, one
# took seven); after eight the floors stay where they are, and `lower` says what is confident.
_MOST_PASSES = 8
# A floor is raised by this many margins, so that the next pass, whose margin differs a little,
# finds it met (at 1.2, each floor would be raised a fifth more than it needs); one that was raised
# by more than the second number is lowered again.
_AIM, _LOOSE = 1.02, 1.1


@dataclass(frozen=True, repr=False)
class ConfidentFloors(Drawn, Frozen):
    """Raised floors, and what holds for the population with them.

    Attributes
    ----------
    names : tuple of str
        The outputs.
    rho_min : ndarray of shape (k,)
        The floors that were asked for, meant for the population.
    floors : ndarray of shape (k,)
        The floors to fit with: raised by the uncertainty of each. One where no floor below one is
        confident; those that were not asked for (zero) are not raised.
    confidence : float
        Of all fidelities together.
    fidelity : ndarray of shape (k,)
        On the rows fitted, with the raised floors.
    lower : ndarray of shape (k,)
        Lower confidence bounds of the fidelities in the population, with the raised floors.
    residual_bound : ndarray of shape (k,) or None
        With the same confidence, no correlation of this output with another one is larger in the
        population, whatever the pair; None beyond 400 outputs.
    objective, objective_plain : float
        Residual at the raised floors and at those asked for: what the confidence costs.
    about : str
        What counted as independent: rows, groups or blocks.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from skcoral import CORAL
    >>> report = confident_floors(CORAL(rho_min=0.8), load_wine().data[:, :4])
    >>> bool((report.lower >= 0.8 - 1e-3).all()), report.about
    (True, '178 rows')
    """

    names: tuple[str, ...]
    rho_min: Array
    floors: Array
    confidence: float
    fidelity: Array
    lower: Array
    residual_bound: Array | None
    objective: float
    objective_plain: float
    about: str

    _pictures: ClassVar[Mapping[str, str]] = {"fidelity": "HoldoutDisplay"}

    @property
    def untouched(self) -> tuple[str, ...]:
        """Outputs for which no floor below one is confident, so that they stay as they are."""
        raised_to_one = (self.floors >= 1.0) & (self.rho_min < 1.0)
        return tuple(n for n, hit in zip(self.names, raised_to_one, strict=True) if hit)

    def sentence(self) -> str:
        """What is promised for the population, what it costs, and its limits, in words."""
        asked = self.rho_min[self.rho_min > 0.0]
        level = (
            f"at least {asked[0]:g}" if np.ptp(asked) < 1e-12 else "at least the floors asked for"
        )
        if (self.lower < self.rho_min - 1e-4).any():
            level = (
                f"at least {rounded_down(float(self.lower.min()), 3):.3f} (below a floor asked for)"
            )
        raised = [f"{end(self.floors[self.rho_min > 0.0]):.4f}" for end in (np.min, np.max)]
        span = raised[0] if raised[0] == raised[1] else f"between {raised[0]} and {raised[1]}"
        left, plain = (short(value, EXACT_TOL) for value in (self.objective, self.objective_plain))
        cost = f"{left}, as with" if left == plain else f"{left}, and {plain} with"
        promise = (
            f"With a confidence of approximately {self.confidence:.4g}, all fidelities in the "
            f"population are {level}, for which the floors are raised to {span} (estimated from "
            f"{self.about}, taken as independent). The residual is {cost} the floors asked for."
        )
        if self.residual_bound is not None and len(self.names) > 1:
            bound = -rounded_down(-float(self.residual_bound.max()), 2)  # rounded up
            if bound < 1.0:  # any correlation is at most one
                promise += f" No correlation left is larger than {bound:.2f} in the population."
        return f"{promise} {self.limits()}".rstrip()

    summary = sentence

    def limits(self) -> str:
        """What cannot be promised where no floor below one is confident; otherwise empty."""
        if not self.untouched:
            return ""
        return (
            f"Left unchanged, because no floor below one is confident: {listing(self.untouched)} "
            f"({self.about} are too few). A lower confidence or lower floors may do."
        )

    def _table(self) -> tuple[str, tuple[str, ...], dict[str, Array]]:
        columns = {
            "floor": self.rho_min,
            "raised": self.floors,
            "fidelity": self.fidelity,
            "lower": self.lower,
        }
        if self.residual_bound is not None:
            columns["residual_bound"] = self.residual_bound
        return "variable", self.names, columns


def confident_floors(
    estimator: CORAL,
    X: Any,
    *,
    confidence: float = 0.95,
    sample_weight: Any = None,
    groups: Any = None,
    block_length: Any = None,
    n_folds: int = 10,
    random_state: int = 0,
) -> ConfidentFloors:
    """Raise floors so that the fidelities in the population keep those asked for.

    A floor is met on the rows fitted and, about half of the time or less, missed in the population
    that they come from. Each floor is raised by its optimism (what fidelity loses on rows left out
    of the fit) and by a quantile of its sampling error, both on Fisher's scale, so that with the
    confidence given no fidelity in the population is below its floor.

    Parameters
    ----------
    estimator : CORAL
        Its ``rho_min`` are the floors for the population; the other settings are kept.
    X : array-like of shape (n, p)
        The rows.
    confidence : float, default=0.95
        Probability with which all floors hold, up to 0.9995 (one in 2,000 draws).
    sample_weight : array-like of shape (n,), optional
        Weights of the rows.
    groups : array-like of shape (n,), optional
        Labels of clusters: rows of a cluster count as one observation.
    block_length : int or "auto", optional
        For rows in the order of time: the length of stretches that count as one observation;
        "auto" by the rule of Politis and White (2004).
    n_folds : int, default=10
        Parts that are left out in turn.
    random_state : int, default=0
        Seed of draws and folds.

    Returns
    -------
    ConfidentFloors

    Warns
    -----
    ConfidenceWarning
        For some variables no floor below one is confident.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from skcoral import CORAL
    >>> from skcoral.stability import confident_floors
    >>> report = confident_floors(CORAL(rho_min=0.8), load_wine().data)
    >>> bool((report.floors > 0.8).all() and report.floors.max() < 0.95)
    True
    >>> bool(report.lower.min() > 0.79)
    True
    """
    level = check_confidence(confidence)
    n_folds = check_count("n_folds", n_folds, minimum=2)
    seed = check_count("random_state", random_state, minimum=0)
    sample = Resampler(
        estimator, X, sample_weight=sample_weight, groups=groups, block_length=block_length
    )
    plain = sample.fit()
    asked = np.asarray(plain.result.rho_min)
    if sample.model.rho_min is None or not ((asked > 0.0) & (asked < 1.0)).any():
        raise InvalidArgumentError(
            "Floors are raised for confidence: give rho_min, with a floor between 0 and 1."
        )
    # the same draws in every pass: floors converge, and the answer depends on the seed alone
    draws = Draws(sample.dependence, DRAWS, seed)
    floors, fit, errors, margin = _raised(sample, plain, asked, level, n_folds, draws)
    few = len(asked) <= _MOST_OUTPUTS
    report = ConfidentFloors(
        names=plain.result.names,
        rho_min=asked,
        floors=floors,
        confidence=level,
        fidelity=np.where(floors < 1.0, np.tanh(errors.fitted), 1.0),
        lower=np.where(floors < 1.0, np.tanh(errors.fitted - margin), 1.0),
        residual_bound=residual_bounds(errors.outputs, draws, level) if few else None,
        objective=float(fit.result.objective),
        objective_plain=float(plain.result.objective),
        about=sample.dependence.noun,
    )
    if report.untouched:
        warn(report.limits(), ConfidenceWarning)
    return report


def _raised(
    sample: Resampler, plain: Fitted, asked: Array, level: float, n_folds: int, draws: Draws
) -> tuple[Array, Fitted, Errors, Array]:
    """Raise floors, pass by pass, until their confidence bounds meet those asked for.

    Returns the floors, the fit at them, its errors, and the margin that these ask for.
    """
    target, k, n = fisher(asked), len(asked), sample.dependence.n_effective
    free = (asked > 0.0) & (asked < 1.0)  # floors that are promised and still below one
    # first guess: two and a half standard errors of normal rows, and an optimism of p / 2n
    margin = np.full(k, 2.5 * np.sqrt((1.0 + k / n) / n) + k / (2.0 * n))
    floors = np.where(free, np.minimum(np.tanh(target + margin), HIGHEST), asked)
    fit, missed = sample.fit(floors=floors, warm=plain.result), np.zeros(k)
    for _ in range(_MOST_PASSES):
        # a raised floor changes the fit, and with it the errors: measure, compare, raise again
        errors = left_out(sample, fit, floors, n_folds=n_folds, draws=draws)
        used = margin
        margin = np.where(free, errors.margin(level, free), margin)
        met, tight = errors.fitted >= target + margin, used < _LOOSE * margin
        if (met & tight)[free].all():
            break
        # a floor that holds for another matrix than the rows' own may be missed by the rows
        missed = np.maximum(fisher(floors) - errors.fitted, missed)
        floors = np.where(free, np.tanh(target + _AIM * margin + missed), floors)
        # an unchanged variable meets every floor
        floors[free & (floors > HIGHEST)] = 1.0
        free = free & (floors < 1.0)
        fit = sample.fit(floors=floors, warm=fit.result)
        errors = replace(errors, fitted=fisher(fidelity_on(fit, sample)))
        if not free.any():
            break
    return floors, fit, errors, margin


def check_confidence(confidence: Any) -> float:
    """Return a confidence as a number between 0 and the highest that draws can tell from one."""
    return check_number(
        "confidence",
        confidence,
        f"above 0 and at most {_MOST_CONFIDENT}",
        lambda v: 0.0 < v <= _MOST_CONFIDENT,
    )
