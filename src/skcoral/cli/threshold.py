"""``coral threshold``: the highest fidelity of exact decorrelation."""

from __future__ import annotations

from argparse import Namespace
from typing import Any

from skcoral.cli import console
from skcoral.cli.loading import load, notes
from skcoral.cli.loading import record as record_of
from skcoral.cli.run import NOT_CERTIFIED, OK
from skcoral.core.display import number
from skcoral.core.results import Threshold


def threshold(options: Namespace) -> int:
    """Compute ρ★, the largest fidelity that exact decorrelation allows."""
    data = load(options)
    th = data.threshold
    if options.json:
        fidelity = dict(zip(data.names, th.fidelity.tolist(), strict=True))
        console.print_json(record_of(data) | describe_threshold(th) | {"fidelity": fidelity})
    else:
        say_threshold(th)
        console.say_each(notes(data))
        rows = [
            (name, number(f, 6), weight_text(w))
            for name, f, w in zip(data.names, th.fidelity, th.weights, strict=True)
        ]
        console.table(("variable", "fidelity", "weight"), rows)
    return OK if th.status == "optimal" else NOT_CERTIFIED


def describe_threshold(th: Threshold) -> dict[str, Any]:
    """The threshold with its certificate, for machines."""
    return {
        "value": th.value,
        "lower": th.lower,
        "upper": th.upper,
        "gap": th.gap,
        "certified": th.status == "optimal",
        "binding": list(th.binding),
        "weights": dict(zip(th.names, th.weights.tolist(), strict=True)),
    }


def say_threshold(th: Threshold) -> None:
    """Print the threshold and its bounds, and the variables that bind it."""
    headline, *details = th.summary().splitlines()
    console.say(headline, "green" if th.status == "optimal" else "red")
    console.say_each(details)


def weight_text(weight: float) -> str:
    """The weight of a variable in ρ★; nothing for one that does not bind."""
    return number(weight, 4) if weight > 0 else ""
