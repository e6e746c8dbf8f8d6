"""Which settings of the transformer go together."""

from __future__ import annotations

from typing import Any

from skcoral.choosing import check_target
from skcoral.core.validation import (
    check_choice,
    check_random_state,
)
from skcoral.data.covariances import check_covariance
from skcoral.exceptions import InvalidArgumentError

_CHOICES = {
    "criterion": ("squared", "worst", "absolute"),
    "on_singular": ("solve", "raise"),
    "output_scale": ("unit", "original"),
}


def check_settings(estimator: Any) -> None:
    """Raise an error where settings are unknown or contradict each other."""
    for name, choices in _CHOICES.items():
        check_choice(name, getattr(estimator, name), choices)
    check_random_state(estimator.random_state)
    check_covariance(estimator.covariance)
    _check_together(estimator)
    check_target(estimator)
    if estimator.anchors is not None and estimator.output_scale == "original":
        raise InvalidArgumentError(
            "Composites have no mean and standard deviation of their own to return to: use "
            "output_scale='unit' with anchors."
        )


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


def check_batches(estimator: Any) -> None:
    """Raise an error where moments are not enough for these settings."""
    try:
        learns_in_batches(estimator)
    except AttributeError as error:
        raise InvalidArgumentError(str(error)) from None
