"""Floors that hold for the population, with a stated confidence."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np

from skcoral.core.arrays import Array, Frozen
from skcoral.core.display import Drawn
from skcoral.core.tolerances import EXACT_TOL
from skcoral.core.validation import check_choice, check_count, check_number, listing
from skcoral.data.effects import rounded_down
from skcoral.estimator import CORAL
from skcoral.exceptions import ConfidenceWarning, InvalidArgumentError, warn
from skcoral.stability.raised_floors import PASSES, FloorRaiser
from skcoral.stability.resampling import Progress, Resampler
from skcoral.stability.sampling_errors import DRAWS, Draws, left_out, resampled, residual_bounds

_MOST_OUTPUTS = 400  # whose pairs are bounded one by one: 80,000 pairs take seconds
_HIGHEST = 1.0 - 1.0 / DRAWS  # beyond it there is no draw, and so no quantile


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
        Of all fidelities together, or of each on its own.
    simultaneous : bool
        Whether the confidence is that of all fidelities together.
    fidelity : ndarray of shape (k,)
        On the rows fitted, with the raised floors.
    lower : ndarray of shape (k,)
        Lower confidence bounds of the fidelities in the population, with the raised floors.
    residual_bound : ndarray of shape (k,) or None
        With the same confidence, no correlation of this output with another one is larger in the
        population, whatever the pair; None with ``method="bootstrap"`` and beyond 400 outputs.
    objective, objective_plain : float
        Residual at the raised floors and at those asked for: what the confidence costs.
    method : {"left_out", "bootstrap"}
        How it was found.
    about : str
        What counted as independent: rows, groups or blocks.
    largest_confidence, largest_floor : float or None
        Where no floor below one is confident for some output: the largest confidence that was found
        to do with floors below one, and the largest common floor with this confidence; 0 where none
        was. None where floors below one do.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from skcoral import CORAL
    >>> found = confident_floors(CORAL(rho_min=0.8), load_wine().data[:, :4])
    >>> bool((found.lower >= 0.8 - 1e-3).all()), found.about
    (True, '178 rows')
    """

    names: tuple[str, ...]
    rho_min: Array
    floors: Array
    confidence: float
    simultaneous: bool
    fidelity: Array
    lower: Array
    residual_bound: Array | None
    objective: float
    objective_plain: float
    method: str
    about: str
    largest_confidence: float | None
    largest_floor: float | None

    _pictures: ClassVar[Mapping[str, str]] = {"fidelity": "HoldoutDisplay"}

    @property
    def untouched(self) -> tuple[str, ...]:
        """Outputs for which no floor below one is confident, so that they stay as they are."""
        found = (self.floors >= 1.0) & (self.rho_min < 1.0)
        return tuple(name for name, hit in zip(self.names, found, strict=True) if hit)

    def sentence(self) -> str:
        """What is promised for the population, what it costs, and its limits, in words."""
        scope = "all fidelities" if self.simultaneous else "each fidelity (taken singly)"
        asked = self.rho_min[self.rho_min > 0.0]
        level = f"at least {asked[0]:g}" if np.ptp(asked) < 1e-12 else "at least the floors asked"
        if (self.lower < self.rho_min - 1e-4).any():
            level = f"at least {rounded_down(float(self.lower.min()), 3):.3f} (below a floor asked)"
        raised = self.floors[self.rho_min > 0.0]
        said = (
            f"With a confidence of approximately {self.confidence:.4g}, {scope} in the population "
            f"are {level}, for which the floors are raised to {_span(raised)} (estimated from "
            f"{self.about}, taken as independent). The residual is {self._residuals()}."
        )
        if self.residual_bound is not None and len(self.names) > 1:
            bound = -rounded_down(-float(self.residual_bound.max()), 2)  # rounded up
            if bound < 1.0:  # any correlation is at most one
                said += f" No correlation left is larger than {bound:.2f} in the population."
        return f"{said} {self.limits()}".rstrip()

    summary = sentence

    def limits(self) -> str:
        """What cannot be promised where no floor below one is confident; otherwise empty."""
        if not self.untouched:
            return ""
        left = "this variable is left as it is"
        if len(self.untouched) > 1:
            left = "these variables are left as they are"
        said = (
            f"No floor below one is confident for {listing(self.untouched)}: {self.about} are too "
            f"few, and {left}."
        )
        instead = []
        if self.largest_confidence:
            sure = rounded_down(self.largest_confidence, 2)
            instead.append(f"these floors with a confidence of {sure:.2f}")
        if self.largest_floor:
            floor = rounded_down(self.largest_floor, 2)
            instead.append(f"a floor of {floor:.2f} with a confidence of {self.confidence:.4g}")
        return f"{said} Possible instead: {', or '.join(instead)}." if instead else said

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

    def _residuals(self) -> str:
        """The residual at these floors, beside that at the floors asked for."""
        raised, plain = _residual(self.objective), _residual(self.objective_plain)
        return (
            f"{raised}, as with the floors asked for"
            if raised == plain
            else f"{raised} instead of {plain}"
        )


def confident_floors(
    estimator: CORAL,
    X: Any,
    *,
    confidence: float = 0.95,
    simultaneous: bool = True,
    sample_weight: Any = None,
    groups: Any = None,
    block_length: Any = None,
    method: str = "left_out",
    n_folds: int = 10,
    n_boot: int = 200,
    n_jobs: int | None = None,
    random_state: int = 0,
    callback: Progress | None = None,
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
        Probability with which the floors hold, up to 0.9995 (one in 2,000 draws).
    simultaneous : bool, default=True
        Whether it is about all fidelities together, or about each on its own.
    sample_weight : array-like of shape (n,), optional
        Weights of the rows.
    groups : array-like of shape (n,), optional
        Labels of clusters: rows of a cluster count as one observation.
    block_length : int or "auto", optional
        For rows in the order of time: the length of stretches that count as one observation.
    method : {"left_out", "bootstrap"}, default="left_out"
        Fits that leave a part of the rows out, measured there; or refits to resampled rows,
        measured on the table. The first takes a tenth of the time and covers better.
    n_folds : int, default=10
        Parts that are left out in turn.
    n_boot : int, default=200
        Resampled tables of the bootstrap.
    n_jobs : int, optional
        Processes, as in joblib. The result does not depend on it.
    random_state : int, default=0
        Seed of draws and folds.
    callback : callable, optional
        Called with the number of refits done and their largest number.

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
    >>> found = confident_floors(CORAL(rho_min=0.8), load_wine().data)
    >>> bool((found.floors > 0.8).all() and found.floors.max() < 0.95)
    True
    >>> bool(found.lower.min() > 0.79)
    True
    """
    level = check_confidence(confidence)
    check_choice("method", method, ("left_out", "bootstrap"))
    n_folds = check_count("n_folds", n_folds, minimum=2)
    n_boot = check_count("n_boot", n_boot, minimum=20, maximum=1_000_000)
    seed = check_count("random_state", random_state, minimum=0)
    sample = Resampler(
        estimator,
        X,
        sample_weight=sample_weight,
        groups=groups,
        block_length=block_length,
        n_jobs=n_jobs,
        callback=callback,
    )
    if method == "bootstrap" and n_boot * (1.0 - level) < 1.0 - 1e-9:
        raise InvalidArgumentError(
            f"{n_boot} resampled tables support a confidence of {1.0 - 1.0 / n_boot:.4g} at most; "
            f"got {level:g}. Lower it, or raise n_boot."
        )
    sample.total = PASSES * (n_folds if method == "left_out" else n_boot)
    if sample.model.rho_min is None:
        raise InvalidArgumentError("Floors are raised, and the estimator has none: give rho_min.")
    plain = sample.fit()
    asked = np.asarray(plain.result.rho_min)
    promised = (asked > 0.0) & (asked < 1.0)
    if not promised.any():
        raise InvalidArgumentError(
            "Floors are raised for confidence, and those given are 0 or 1, which are never raised: "
            "give one between them."
        )
    draws = Draws(sample.dependence, DRAWS, seed)
    errors = partial(left_out, sample, n_folds=n_folds, draws=draws)
    if method == "bootstrap":
        errors = partial(resampled, sample, n_draws=n_boot, seed=seed)
    raiser = FloorRaiser(sample, plain, errors, simultaneous=simultaneous)
    made = raiser.raised(asked, level)
    floors, fitted = made.floors, made.errors.fitted
    largest_confidence = largest_floor = residual_bound = None
    if (floors[promised] >= 1.0).any():
        largest_confidence = raiser.largest(lambda value: (asked, value), level)
        largest_floor = raiser.largest(
            lambda value: (np.where(promised, np.minimum(asked, value), asked), level),
            float(asked[promised].max()),
        )
    if callback is not None:
        callback(sample.total, sample.total)
    if made.outputs is not None and len(asked) <= _MOST_OUTPUTS:
        residual_bound = residual_bounds(made.outputs, draws, level)
    found = ConfidentFloors(
        names=plain.result.names,
        rho_min=asked,
        floors=floors,
        confidence=level,
        simultaneous=simultaneous,
        fidelity=np.where(floors < 1.0, np.tanh(fitted), 1.0),
        lower=np.where(floors < 1.0, np.tanh(fitted - made.margin), 1.0),
        residual_bound=residual_bound,
        objective=float(made.fit.result.objective),
        objective_plain=float(plain.result.objective),
        method=method,
        about=sample.dependence.noun,
        largest_confidence=largest_confidence,
        largest_floor=largest_floor,
    )
    if found.untouched:
        warn(found.limits(), ConfidenceWarning)
    return found


def check_confidence(confidence: Any) -> float:
    """Return a confidence as a number between 0 and the highest that draws can tell from one."""
    return check_number(
        "confidence", confidence, f"above 0 and at most {_HIGHEST}", lambda v: 0.0 < v <= _HIGHEST
    )


def _residual(value: float) -> str:
    return "0" if value < EXACT_TOL else f"{value:.4g}"


def _span(values: Array) -> str:
    low, high = f"{values.min():.4f}", f"{values.max():.4f}"
    return low if low == high else f"between {low} and {high}"
