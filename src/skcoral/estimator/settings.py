"""Which settings of the transformer go together."""

from __future__ import annotations

from typing import Any

import numpy as np

from skcoral._requirements import checked_weights
from skcoral._validation import (
    check_choice,
    check_positive,
    check_random_state,
)
from skcoral.choosing import check_target
from skcoral.covariances import check_covariance
from skcoral.exceptions import InvalidArgumentError
from skcoral.moments import WEIGHT_KINDS

_CHOICES = {
    "criterion": ("squared", "worst", "absolute"),
    "weight_kind": WEIGHT_KINDS,
    "on_singular": ("solve", "raise"),
    "output_scale": ("unit", "original"),
}


def check_settings(estimator: Any) -> None:
    """Raise an error where settings are unknown or contradict each other."""
    for name, choices in _CHOICES.items():
        check_choice(name, getattr(estimator, name), choices)
    check_random_state(estimator.random_state)
    if estimator.halflife is not None:
        check_positive("halflife", estimator.halflife)
        if estimator.weight_kind == "frequency":
            raise InvalidArgumentError(
                "With a halflife, weights compare rows and count none: use weight_kind='auto' or "
                "'reliability'."
            )
    check_covariance(estimator.covariance)
    _check_together(estimator)
    check_target(estimator)
    if estimator.anchors is not None and estimator.output_scale == "original":
        raise InvalidArgumentError(
            "Composites have no mean and standard deviation of their own to return to: use "
            "output_scale='unit' with anchors."
        )


def faded(halflife: float | None, n: int, sample_weight: Any) -> Any:
    """Weights of ``n`` rows in the order of time, where the last one counts whole.

    Examples
    --------
    >>> faded(1.0, 3, None)
    array([0.25, 0.5 , 1.  ])
    """
    if halflife is None:
        return sample_weight
    age = np.arange(n - 1, -1, -1)
    weights = 0.5 ** (age / halflife)
    weights[weights < 1e-30] = 0.0  # far below the rounding of what they are added to
    given = checked_weights(sample_weight, n)
    return weights if given is None else weights * given


def _check_together(estimator: Any) -> None:
    """Settings about other matrices and about the population that exclude each other."""
    if estimator.confidence is not None and (
        estimator.rho_min is None or estimator.budget is not None
    ):
        raise InvalidArgumentError(
            "confidence= raises floors, and none is given: give rho_min= (and no budget)."
        )


def learns_in_batches(estimator: Any) -> bool:
    """Whether moments are enough for these settings; an AttributeError says why they are not."""
    need_rows = {
        "covariance": estimator.covariance is not None,
        "confidence": estimator.confidence is not None,
    }
    named = [f"{n}={getattr(estimator, n)!r}" for n, needed in need_rows.items() if needed]
    if not named:
        return True
    raise AttributeError(
        f"Batches leave means and co-moments only: with {' and '.join(named)} all rows are needed "
        "at once. Use fit with a table, or other settings."
    )


def require_batches(estimator: Any) -> None:
    """Raise an error where moments are not enough for these settings."""
    try:
        learns_in_batches(estimator)
    except AttributeError as error:
        raise InvalidArgumentError(str(error)) from None
