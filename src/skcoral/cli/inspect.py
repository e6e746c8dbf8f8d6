"""``coral inspect`` and ``coral threshold``: what is in a table, and what is possible with it."""

from __future__ import annotations

import shlex
from dataclasses import asdict
from typing import Any

import numpy as np

from skcoral import api, baselines, measures
from skcoral._lowrank import FactoredCorrelation, strongest_pairs
from skcoral._validation import check_correlation
from skcoral.choosing import compare_floors
from skcoral.cli import console
from skcoral.cli.correlations import Correlations, correlations
from skcoral.cli.loading import Loaded, dropped_sentence, load, naming
from skcoral.cli.options import TableOptions
from skcoral.cli.run import NOT_CERTIFIED, OK, without
from skcoral.exceptions import InvalidTableError, SingularCorrelationError
from skcoral.frames.point import welch
from skcoral.measured import rounded_down, shortened, vif_text
from skcoral.results import Array, Threshold

_CERTIFIED_GAP = 1e-7
_SHOWN = 4
#: r²p of systems whose floors are compared while somebody waits: of full rank, and of lower rank.
_QUICK, _QUICK_SINGULAR = 5e7, 1e7
_TOO_LARGE = "So many variables take a while: coral frontier compares floors."


def inspect(options: TableOptions, *, as_json: bool) -> int:
    """Tell what a table holds and what decorrelation can do for it."""
    loaded = load(options)
    found = correlations(loaded)
    answer = _overview(loaded, found)
    answer["strongest_pairs"] = _strongest(found.R, loaded.names)
    with console.progress("Solving"):
        answer |= _possible(found, loaded.names)
        answer |= _floors(found, loaded, options)
    if as_json:
        console.machine(answer)
    else:
        _show(answer, loaded, found.dropped)
    certified = answer["threshold"] is None or answer["threshold"]["certified"]
    return OK if certified else NOT_CERTIFIED


def _possible(found: Correlations, names: tuple[str, ...]) -> dict[str, Any]:
    """What decorrelation can do for the correlations found, or why it can do nothing."""
    try:
        solved = found.solvable()
        deficiency = getattr(solved, "deficiency", None)
        if deficiency is not None:
            return {
                "dependent": deficiency.relations or [deficiency.told()],
                "redundant": deficiency.redundant,
                "rank": deficiency.rank,
                "least_residual": welch(len(names), deficiency.rank),
                "threshold": None,
            }
        check_correlation(found.R, names)  # dependent variables are named
        th = api.threshold(solved)
    except (SingularCorrelationError, InvalidTableError) as error:
        told = str(error).replace("shrinkage='auto'", "--shrinkage auto")
        return {
            "dependent": list(getattr(error, "relations", [])) or [told],
            "redundant": list(getattr(error, "redundant", [])),
            "threshold": None,
        }
    R = solved.R
    return {
        "dependent": [],
        "redundant": [],
        "condition_number": measures.condition_number(R),
        "vif": dict(zip(names, measures.vif(R).tolist(), strict=True)),
        "threshold": describe_threshold(th, names),
        "methods": _methods(R, th, found.scale),
    }


def _floors(found: Correlations, loaded: Loaded, options: TableOptions) -> dict[str, Any]:
    """What usual floors give, with the command for each, and the recommendation."""
    p = len(loaded.names)
    try:
        solved = found.solvable()
        deficiency = getattr(solved, "deficiency", None)
        r = p if deficiency is None else deficiency.rank
        if r * r * p > (_QUICK if deficiency is None else _QUICK_SINGULAR):
            return {"floors": [], "recommendation": _TOO_LARGE}
        compared = compare_floors(solved)
    except (SingularCorrelationError, InvalidTableError):
        return {"floors": [], "recommendation": ""}
    what = "T.csv" if loaded.matrix is not None else "decorrelated.csv"
    floors = []
    for choice in compared.choices:
        floor = [] if choice.rho_min is None else ["--rho-min", f"{choice.rho_min:g}"]
        command = shlex.join(["coral", "fit", *options.arguments(), *floor, "-o", what])
        floors.append(asdict(choice) | {"label": choice.label, "command": command})
    best = compared.recommended
    return {
        "floors": floors,
        "recommended": None if best is None else floors[compared.choices.index(best)],
        "recommendation": compared.sentence(),
    }


def threshold(options: TableOptions, *, as_json: bool) -> int:
    """Compute ρ★, the largest fidelity that exact decorrelation allows."""
    loaded = load(options)
    found = correlations(loaded)
    with naming(loaded.table), console.progress("Solving") as tell:
        th = api.threshold(found.solvable(), callback=lambda *_: tell(None))
    answer = describe_threshold(th, loaded.names)
    if as_json:
        fidelity = dict(zip(loaded.names, th.fidelity.tolist(), strict=True))
        console.machine(
            {
                "file": loaded.table.label,
                "rows": found.n_rows,
                "dropped_rows": found.dropped,
                "constant": list(loaded.constant),
                "notes": loaded.notes,
            }
            | answer
            | {"fidelity": fidelity}
        )
    else:
        _say_threshold(answer)
        for sentence in (
            *loaded.notes,
            loaded.constant_sentence,
            dropped_sentence(loaded.table, found.dropped),
        ):
            if sentence:
                console.say(sentence)
        rows = [
            (name, console.number(f, 6), console.number(w, 4) if w > 0 else "")
            for name, f, w in zip(loaded.names, th.fidelity, th.weights, strict=True)
        ]
        console.table(("variable", "fidelity", "weight"), rows)
    return OK if answer["certified"] else NOT_CERTIFIED


def describe_threshold(th: Threshold, names: tuple[str, ...]) -> dict[str, Any]:
    """The threshold with its certificate, for machines."""
    order = np.argsort(-th.weights, kind="stable")
    return {
        "value": th.value,
        "lower": th.lower,
        "upper": th.upper,
        "gap": th.gap,
        "certified": bool(th.gap <= _CERTIFIED_GAP),
        "binding": [names[j] for j in order if th.weights[j] > 0],
        "weights": dict(zip(names, th.weights.tolist(), strict=True)),
    }


def _overview(loaded: Loaded, found: Correlations) -> dict[str, Any]:
    content = loaded.content
    used = set(loaded.names)
    return {
        "file": loaded.table.label,
        "is_matrix": loaded.matrix is not None,
        "rows": None if loaded.matrix is not None else content.n_rows,
        "complete_rows": found.n_rows,
        "dropped_rows": found.dropped,
        "notes": loaded.notes,
        "columns": [
            {"name": c.name, "kind": c.kind, "missing": c.n_missing, "used": c.name in used}
            for c in content.columns
        ],
        "constant": list(loaded.constant),
    }


def _strongest(R: Any, names: tuple[str, ...], limit: int = 5) -> list[dict[str, Any]]:
    if isinstance(R, FactoredCorrelation):
        return [
            {"pair": [names[i], names[j]], "correlation": value}
            for i, j, value in strongest_pairs(R, limit)
        ]
    i, j = np.triu_indices(len(R), 1)
    order = np.argsort(-np.abs(R[i, j]), kind="stable")[:limit]
    return [
        {"pair": [names[i[k]], names[j[k]]], "correlation": float(R[i[k], j[k]])} for k in order
    ]


def _methods(R: Array, th: Threshold, scale: Array) -> dict[str, dict[str, float]]:
    others = {
        "CORAL at ρ★": th.fidelity,
        "ZCA-cor": baselines.zca_cor(R).fidelity,
        "ZCA": baselines.zca(R, scale=scale).fidelity,
        "PCA": baselines.pca(R).fidelity,
        "Cholesky": baselines.cholesky(R).fidelity,
    }
    return {
        name: {"min_fidelity": float(f.min()), "mean_fidelity": float(f.mean())}
        for name, f in others.items()
    }


def _show(answer: dict[str, Any], loaded: Loaded, dropped: list[int]) -> None:
    used = len(loaded.names)
    size = f": {used} variables, their correlation matrix."
    if loaded.matrix is None:
        size = (
            f": {console.counted(answer['rows'], 'row')}, {len(answer['columns'])} columns, "
            f"{used} of them variables."
        )
    console.say(console.bold(answer["file"]), size)
    for sentence in _remarks(answer, loaded, dropped):
        console.say(sentence)
    pairs = "; ".join(
        f"{' – '.join(map(shortened, item['pair']))} {item['correlation']:+.3f}"
        for item in answer["strongest_pairs"][:3]
    )
    console.say(f"Strongest pairs: {pairs}.")
    if answer["threshold"] is None:
        console.say(
            console.bold("No exact decorrelation: ", "red"), "; ".join(answer["dependent"][:3])
        )
        if "rank" in answer:
            console.say(
                f"Rank {answer['rank']} of {used}: no outputs have a sum of squared correlations "
                f"below {answer['least_residual']:.6g}. coral fit finds the least for your floors."
            )
        if answer["complete_rows"] is None or answer["complete_rows"] > used:
            console.say(f"{without(answer['redundant'])}, or fit with --shrinkage auto.")
        _show_floors(answer)
        return
    console.say(f"Condition number {console.short(answer['condition_number'])}.")
    _say_threshold(answer["threshold"])
    console.say("")
    console.table(
        ("method, residual zero", "weakest", "mean fidelity"),
        [
            (name, console.number(f["min_fidelity"]), console.number(f["mean_fidelity"]))
            for name, f in answer["methods"].items()
        ],
    )
    vif = sorted(answer["vif"].items(), key=lambda item: -item[1])
    console.say("")
    console.table(
        ("highest VIF", "VIF", "weight in ρ★"),
        [
            (name, f"{v:.2f}", _weight(answer["threshold"]["weights"][name]))
            for name, v in vif[:_SHOWN]
        ],
    )
    if len(vif) > _SHOWN:
        console.say(f"and {len(vif) - _SHOWN} more (--json lists all).")
    _show_floors(answer)


def _show_floors(answer: dict[str, Any]) -> None:
    """The table of floors, and the recommendation with its command as the last words."""
    console.say("")
    if answer["floors"]:
        console.say("What usual floors give, and the command for each:")
        row = "{:<7}{:>11}{:>13}{:>9}".format
        console.copyable(row("floor", "largest |r|", "largest VIF", "weakest"))
        for c in answer["floors"]:
            figures = console.number(c["largest_correlation"], 2), vif_text(c["largest_vif"])
            kept = console.number(rounded_down(c["min_fidelity"], 3), 3)
            console.copyable(row(c["label"], *figures, kept))
            console.copyable(f"  {c['command']}")
    if answer["recommendation"]:
        console.say(console.bold(answer["recommendation"]))
    if answer.get("recommended"):
        console.copyable(f"  {answer['recommended']['command']}")


def _remarks(answer: dict[str, Any], loaded: Loaded, dropped: list[int]) -> list[str]:
    if loaded.matrix is not None:
        return loaded.notes
    kinds = {
        "text": "text",
        "mixed": "not only numbers",
        "empty": "no values",
        "number": "left out",
    }
    unused = [
        f"{shortened(column['name'])} ({kinds[column['kind']]})"
        if column["name"]
        else "the row labels"
        for column in answer["columns"]
        if not column["used"]
        and column["name"] not in loaded.constant
        and column["name"] not in loaded.doubtful
    ]
    remarks = loaded.notes
    if unused:
        remarks.append(f"Not used: {console.listing(unused)}.")
    if dropped:
        remarks.append(dropped_sentence(loaded.table, dropped))
    if loaded.constant:
        remarks.append(loaded.constant_sentence)
    return remarks


def _say_threshold(answer: dict[str, Any]) -> None:
    state = "certified" if answer["certified"] else "NOT certified"
    console.say(
        console.bold(f"ρ★ = {answer['value']:.6f}", "green" if answer["certified"] else "red"),
        f" ({state}: {answer['lower']:.9f} ≤ ρ★ ≤ {answer['upper']:.9f}, gap {answer['gap']:.1e}); "
        f"bound by {console.listing(answer['binding'], 5)}.",
    )


def _weight(value: float) -> str:
    return console.number(value, 4) if value > 0 else ""
