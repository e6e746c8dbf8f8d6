"""``coral inspect``: what is in a table, and what is possible with it."""

from __future__ import annotations

import shlex
from argparse import Namespace
from dataclasses import asdict
from typing import Any

import numpy as np

from skcoral import baselines
from skcoral.choosing import MOST_CORRELATION, MOST_VIF, floors_within
from skcoral.cli import console
from skcoral.cli.loading import is_large, load, notes
from skcoral.cli.loading import record as record_of
from skcoral.cli.parser import arguments
from skcoral.cli.run import NOT_CERTIFIED, OK, without
from skcoral.cli.threshold import describe_threshold, say_threshold, weight_text
from skcoral.core.display import number, short, shortened
from skcoral.core.linalg import inflation_factors
from skcoral.core.lowrank import welch
from skcoral.core.results import Threshold
from skcoral.data.effects import rounded_down, strongest_pairs
from skcoral.tables.notes import left_out_note
from skcoral.workflow.dataset import Dataset

_SHOWN = 4
_LIMITS = {
    "max_correlation": f"--max-correlation {MOST_CORRELATION:g}",
    "max_vif": f"--max-vif {MOST_VIF:g}",
}
#: r²p of systems whose floors are compared in seconds: of full rank, and of lower rank.
_QUICK, _QUICK_SINGULAR = 5e7, 1e7
_QUICK_LIMITS = 3e4  # of systems whose limits are solved for in seconds: up to 31 variables
_TOO_LARGE = "Floors are not compared, which takes long for so many variables: coral frontier {}."


def inspect(options: Namespace) -> int:
    """Tell what a table holds and what decorrelation can do for it."""
    data = load(options)
    record = _overview(data)
    # Dependent columns cannot be decorrelated exactly, so that they have no threshold.
    th = None if data.estimate.deficiency is not None else data.threshold
    record |= _dependence(data) if th is None else _regular(data, th)
    record |= _floors(data, options)
    if options.json:
        console.print_json(record)
    else:
        _show(record, data, th)
    return OK if th is None or th.status == "optimal" else NOT_CERTIFIED


def _dependence(data: Dataset) -> dict[str, Any]:
    """What is possible where columns determine each other, or rows are few."""
    deficiency = data.estimate.deficiency
    assert deficiency is not None
    remedy = ""
    if not deficiency.has_few_rows:
        shrink = ", or fit with --covariance LedoitWolf" * (data.matrix is None)
        remedy = f"{without(deficiency.redundant)}{shrink}."
    reason = deficiency.explain(remedy)
    return {
        "dependent": [str(r) for r in deficiency.relations] or [reason],
        "reason": reason,
        "redundant": deficiency.redundant,
        "rank": deficiency.rank,
        "least_residual": welch(len(data.names), deficiency.rank),
        "threshold": None,
    }


def _regular(data: Dataset, th: Threshold) -> dict[str, Any]:
    """What exact decorrelation gives, by this method and by others."""
    R = data.estimate.R
    methods = {
        "CORAL at ρ★": th.fidelity,
        "ZCA-cor": baselines.zca_cor(R).fidelity,
        "ZCA": baselines.zca(R, scale=data.estimate.scale).fidelity,
        "PCA": baselines.pca(R).fidelity,
        "Cholesky": baselines.cholesky(R).fidelity,
    }
    return {
        "dependent": [],
        "redundant": [],
        "condition_number": float(np.linalg.cond(R)),
        "vif": dict(zip(data.names, inflation_factors(R).tolist(), strict=True)),
        "threshold": describe_threshold(th),
        "methods": {
            name: {"min_fidelity": float(f.min()), "mean_fidelity": float(f.mean())}
            for name, f in methods.items()
        },
    }


def _floors(data: Dataset, options: Namespace) -> dict[str, Any]:
    """What usual floors give, and the recommendation with its command."""
    p, deficiency = len(data.names), data.estimate.deficiency
    r = p if deficiency is None else deficiency.rank
    if r * r * p > (_QUICK if deficiency is None else _QUICK_SINGULAR) or is_large(data):
        how = "computes the curve" + " at the floors named (--rho-min)" * is_large(data)
        return {"floors": [], "recommended": None, "recommendation": _TOO_LARGE.format(how)}
    compared = data.floors
    floors = [{"label": choice.label, **asdict(choice)} for choice in compared.choices]
    what = "T.csv" if data.matrix is not None else "decorrelated.csv"
    best, limits, recommended = compared.recommended, {}, None
    sentence = compared.sentence()
    if best is None and (p - r) / (r * (p - 1)) <= MOST_CORRELATION**2:  # the rank allows it
        sentence += f" A floor may be found by {_LIMITS['max_correlation']} (coral fit)."
    if best is not None:
        asked = ["--rho-min", best.label, "-o", what]
        command = shlex.join(["coral", "fit", *arguments(vars(options)), *asked])
        recommended = floors[compared.choices.index(best)] | {"command": command}
        if best.floor < 1.0 and data.estimate.is_about_rows and deficiency is None:
            limits = floors_within(data.estimate) if r * r * p <= _QUICK_LIMITS else {}
    return {
        "floors": floors,
        "recommended": recommended,
        "recommendation": sentence,
        "leave_out": compared.leave_out,
        "floor_without": compared.floor_without,
        "limits": limits,
    }


def _overview(data: Dataset) -> dict[str, Any]:
    """What the file holds, column by column, and its strongest correlations."""
    used, is_matrix, record = set(data.names), data.matrix is not None, record_of(data)
    pairs = [] if is_large(data) else strongest_pairs(data.estimate.R, 5)
    return record | {
        "is_matrix": is_matrix,
        "rows": None if is_matrix else data.content.n_rows,
        "complete_rows": record["rows"],
        "columns": [
            {"name": c.name, "kind": c.kind, "missing": c.n_missing, "used": c.name in used}
            for c in data.content.columns.values()
        ],
        "strongest_pairs": [
            {"pair": [data.names[i], data.names[j]], "correlation": value} for i, j, value in pairs
        ],
    }


def _show(record: dict[str, Any], data: Dataset, th: Threshold | None) -> None:
    """Print what was read, what is possible, and last the recommendation."""
    size = f"{len(data.names)} variables, their correlation matrix"
    if data.matrix is None:
        rows = console.counted(record["rows"], "row")
        size = f"{rows}, {len(record['columns'])} columns, {len(data.names)} of them variables"
    console.say(f"{record['file']}: {size}.", "bold")
    console.say_each(_remarks(data))
    pairs = "; ".join(
        f"{' – '.join(map(shortened, item['pair']))} {item['correlation']:+.3f}"
        for item in record["strongest_pairs"][:3]
    )
    condition = "" if th is None else f"Condition number {short(record['condition_number'])}."
    console.say_each([" ".join(filter(None, [pairs and f"Strongest pairs: {pairs}.", condition]))])
    if th is None:
        console.say(f"No exact decorrelation. {record['reason']}", "red")
    else:
        _show_exact(record, th)
    _show_floors(record, data)


def _show_exact(record: dict[str, Any], th: Threshold) -> None:
    """Print ρ★, what other exact methods keep, and the variables with the highest VIF."""
    say_threshold(th)
    console.say("")
    methods = [
        (name, number(f["min_fidelity"]), number(f["mean_fidelity"]))
        for name, f in record["methods"].items()
    ]
    console.table(("exact method", "weakest", "mean fidelity"), methods)
    console.say("")
    weights = dict(zip(th.names, map(weight_text, th.weights), strict=True))
    vif = sorted(record["vif"].items(), key=lambda item: -item[1])
    rows = [(name, f"{v:.2f}", weights[name]) for name, v in vif[:_SHOWN]]
    console.table(("highest VIF", "VIF", "weight in ρ★"), rows)
    if len(vif) > _SHOWN:
        console.say(f"and {len(vif) - _SHOWN} more (--json lists all).")


def _show_floors(record: dict[str, Any], data: Dataset) -> None:
    """Print what floors give, and last the recommendation with its command."""
    console.say("")
    if record["floors"]:
        cells = [choice.cells for choice in data.floors.choices]
        console.table(list(cells[0]), [list(row.values()) for row in cells])
    best = record["recommended"]
    limits = [
        f"{rounded_down(floor, 3):g} with {_LIMITS[name]}"
        for name, floor in record.get("limits", {}).items()
        if rounded_down(floor, 3) > best["rho_min"]
    ]
    if limits:
        console.say(f"A limit instead of a floor keeps more: {', '.join(limits)}.")
    console.say(record["recommendation"], "bold")
    if best is not None and best["rho_min"] < 1.0:
        console.copyable(f"  {best['command']}")


def _remarks(data: Dataset) -> list[str]:
    """What was asked and assumed, and why the other columns are not used."""
    why = {name: data.content.columns[name].unusable(data.table) for name in data.unmentioned}
    reasons = {name: reason or "left out" for name, reason in why.items()}
    return [*notes(data), left_out_note("Not used", reasons)]
