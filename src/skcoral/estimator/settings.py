"""Which settings of the transformer go together."""

from __future__ import annotations

from typing import Any

from skcoral._validation import check_choice, check_rank_tol
from skcoral.choosing import check_target
from skcoral.correlation import check_shrinkage
from skcoral.exceptions import InvalidArgumentError
from skcoral.margins import MARGINS
from skcoral.moments import WEIGHT_KINDS


def check_settings(estimator: Any) -> None:
    """Raise an error where settings are unknown or contradict each other."""
    check_choice("criterion", estimator.criterion, ("squared", "worst", "absolute"))
    check_choice("margins", estimator.margins, MARGINS)
    check_choice("weight_kind", estimator.weight_kind, WEIGHT_KINDS)
    check_choice("on_singular", estimator.on_singular, ("solve", "raise"))
    check_rank_tol(estimator.rank_tol)
    check_choice("output_scale", estimator.output_scale, ("unit", "original"))
    if estimator.shrinkage != "auto":
        check_shrinkage(estimator.shrinkage)
    check_target(estimator)
    if estimator.anchors is not None and estimator.output_scale == "original":
        raise InvalidArgumentError(
            "Composites have no mean and standard deviation of their own to return to: use "
            "output_scale='unit' with anchors."
        )


def learns_in_batches(estimator: Any) -> bool:
    """Whether moments are enough for these settings; an AttributeError says why they are not."""
    if estimator.margins == "none" and estimator.shrinkage != "auto":
        return True
    raise AttributeError(
        "Batches leave means and co-moments only: with "
        f"margins={estimator.margins!r} and shrinkage={estimator.shrinkage!r} all rows are needed "
        "at once. Use fit with a table, or margins='none' with a number for shrinkage."
    )


def require_batches(estimator: Any) -> None:
    """Raise an error where moments are not enough for these settings."""
    try:
        learns_in_batches(estimator)
    except AttributeError as error:
        raise InvalidArgumentError(str(error)) from None
