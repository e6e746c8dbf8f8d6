"""``coral threshold``: the highest fidelity of exact decorrelation."""

from __future__ import annotations

from typing import Any

import numpy as np

from skcoral import api
from skcoral.cli import console
from skcoral.cli.loading import constant_note, load, notes
from skcoral.cli.loading import record as record_of
from skcoral.cli.options import TableOptions
from skcoral.cli.run import NOT_CERTIFIED, OK
from skcoral.core.results import Threshold
from skcoral.core.tolerances import OPTIMAL_GAP
from skcoral.show import sentences


def threshold(options: TableOptions) -> int:
    """Compute ρ★, the largest fidelity that exact decorrelation allows."""
    data = load(options)
    judged = data.judged
    with data.naming(), console.progress("Solving") as tell:
        th = api.threshold(judged, callback=lambda *_: tell(None))
    record = describe_threshold(th, data.names)
    if options.json:
        fidelity = dict(zip(data.names, th.fidelity.tolist(), strict=True))
        console.print_json(record_of(data) | record | {"fidelity": fidelity})
    else:
        if th.least_residual == 0:
            say_threshold(record)
        else:  # no outputs are uncorrelated, and there is no ρ★
            state = "certified" if record["certified"] else "NOT certified"
            console.say(sentences.threshold(th), f" Gap {th.gap:.1e}, {state}.")
        console.say_each([*notes(data), constant_note(data)])
        rows = [
            (name, console.number(f, 6), weight_text(w))
            for name, f, w in zip(data.names, th.fidelity, th.weights, strict=True)
        ]
        console.table(("variable", "fidelity", "weight"), rows)
    return OK if record["certified"] else NOT_CERTIFIED


def describe_threshold(th: Threshold, names: tuple[str, ...]) -> dict[str, Any]:
    """The threshold with its certificate, for machines."""
    order = np.argsort(-th.weights, kind="stable")
    return {
        "value": th.value,
        "lower": th.lower,
        "upper": th.upper,
        "gap": th.gap,
        "certified": bool(th.gap <= OPTIMAL_GAP),
        "binding": [names[j] for j in order if th.weights[j] > 0],
        "weights": dict(zip(names, th.weights.tolist(), strict=True)),
    }


def say_threshold(record: dict[str, Any]) -> None:
    """Print the threshold, its bounds and the variables that bind it."""
    state = "certified" if record["certified"] else "NOT certified"
    console.say(
        console.bold(f"ρ★ = {record['value']:.6f}", "green" if record["certified"] else "red"),
        f" ({state}: {record['lower']:.9f} ≤ ρ★ ≤ {record['upper']:.9f}, gap {record['gap']:.1e}); "
        f"bound by {console.listing(record['binding'], 5)}.",
    )


def weight_text(weight: float) -> str:
    """The weight of a variable in ρ★; nothing for one that does not bind."""
    return console.number(weight, 4) if weight > 0 else ""
