"""The settings of a transformer: judged together, and as the question that they ask."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from skcoral import api
from skcoral.core.criteria import CRITERIA
from skcoral.core.results import Decorrelation
from skcoral.core.validation import check_budget, check_choice, check_random_state
from skcoral.data.correlation import check_covariance
from skcoral.exceptions import InvalidArgumentError

_TARGETS = ("rho_min", "budget", "max_vif", "max_correlation")
_SETTINGS = ("pair_weights", "anchors", "tol", "on_singular")
_CHOICES = {
    "criterion": CRITERIA,
    "on_singular": ("solve", "raise"),
    "output_scale": ("unit", "original"),
}


def check_settings(estimator: Any) -> None:
    """Raise an error where settings are unknown or contradict each other."""
    for name, choices in _CHOICES.items():
        check_choice(name, getattr(estimator, name), choices)
    check_random_state(estimator.random_state)
    check_covariance(estimator.covariance)
    if estimator.confidence is not None and (
        estimator.rho_min is None or estimator.budget is not None
    ):
        raise InvalidArgumentError(
            "confidence= raises floors, and none is given: give rho_min= (and no budget or limit)."
        )
    check_target(estimator)
    if estimator.anchors is not None and estimator.output_scale == "original":
        raise InvalidArgumentError(
            "Composites have no mean and standard deviation of their own to return to: use "
            "output_scale='unit' with anchors."
        )


def learns_in_batches(estimator: Any) -> bool:
    """Whether moments are enough for these settings; an AttributeError says why they are not."""
    settings = ((name, getattr(estimator, name)) for name in ("covariance", "confidence"))
    named = [f"{name}={value!r}" for name, value in settings if value is not None]
    if not named:
        return True
    raise AttributeError(
        f"Batches leave means and co-moments only: with {' and '.join(named)} all rows are needed "
        "at once. Use fit with a table, or other settings."
    )


def check_target(asked: Any, spelled: Callable[[str], str] = str) -> None:
    """Raise an error where more than one of floors, budget and limits is asked for.

    ``spelled`` tells how the reader writes the name of an argument.
    """
    known = [name for name in _TARGETS if hasattr(asked, name)]  # windows have no budget
    targets = [spelled(name) for name in known if getattr(asked, name) is not None]
    floors, *others, last = map(spelled, known)
    if len(targets) > 1:
        raise InvalidArgumentError(
            f"Give one of {', '.join([floors, *others])} and {last}, not both {targets[0]} and "
            f"{targets[1]}: without floors, the common floor is what is maximised."
        )
    if targets and targets[0] != floors and getattr(asked, "support", None) is not None:
        raise InvalidArgumentError(
            f"A support goes with floors ({floors}), not with {targets[0]}: drop one of them."
        )
    if targets == [last] and asked.criterion == "absolute":
        raise InvalidArgumentError(
            f"{last} limits the largest residual correlation, which is criterion='worst': leave "
            "the criterion out."
        )
    if targets == [others[-1]] and asked.criterion in ("worst", "absolute"):
        raise InvalidArgumentError(
            f"{others[-1]} limits the VIFs, and no criterion of residual correlation is minimised: "
            f"leave criterion={asked.criterion!r} out."
        )


def solve_for(
    R: Any, asked: Any, *, floors: Any = None, warm: Decorrelation | None = None
) -> Decorrelation:
    """Solve for floors, a budget or a limit, whichever the settings have: those of a ``CORAL``.

    The settings are those that ``check_settings`` accepted. ``floors`` replace theirs; ``warm`` is
    the answer to a neighbouring problem.
    """
    settings = {name: getattr(asked, name) for name in _SETTINGS}
    floors = asked.rho_min if floors is None else floors
    criterion, budget = asked.criterion, asked.budget
    if asked.max_vif is not None:
        criterion, budget = "vif", asked.max_vif
    elif asked.max_correlation is not None:
        criterion = "worst"
        budget = check_budget(asked.max_correlation, "The largest correlation", most=1.0)
    if floors is None and budget is not None:
        return api.maximize_fidelity(R, budget, criterion=criterion, **settings)
    return api.decorrelate(
        R,
        floors,
        criterion=criterion,
        support=asked.support,
        random_state=asked.random_state,
        warm=warm,
        **settings,
    )
