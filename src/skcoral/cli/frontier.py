"""``coral frontier``: what every floor costs."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from skcoral import api
from skcoral.cli import console
from skcoral.cli.correlations import correlations
from skcoral.cli.loading import dropped_sentence, load, naming
from skcoral.cli.options import TableOptions
from skcoral.cli.run import NOT_CERTIFIED, OK, UsageError
from skcoral.results import Frontier
from skcoral.tables.staging import Outputs
from skcoral.tables.writing import output_format, table_writer
from skcoral.words import CRITERIA

_PICTURES = (".png", ".svg", ".pdf")


def frontier(
    options: TableOptions,
    *,
    criterion: str,
    floors: list[float] | None,
    n_points: int,
    plot: Path | None,
    csv: Path | None,
    force: bool,
    as_json: bool,
) -> int:
    """Compute the curve, print it, and write it as a table and as a picture."""
    if plot is not None and plot.suffix.lower() not in _PICTURES:
        raise UsageError(
            f"{plot}: a picture must end in {', '.join(_PICTURES)}.\nExample: --plot frontier.png"
        )
    if csv is not None:
        output_format(csv)
    with Outputs(force=force) as outputs:
        for path in (plot, csv):
            if path is not None:
                outputs.reserve(path)
        loaded = load(options)
        found = correlations(loaded)
        with naming(loaded.table), console.progress("Following the curve") as tell:
            solved = found.solvable()
            singular = getattr(solved, "deficiency", None) is not None
            R = None if singular else solved.R
            curve = api.frontier(
                solved,
                sorted(set(floors)) if floors else None,
                criterion=criterion,
                n_points=n_points,
                callback=lambda *_: tell(None),
            )
        frame = curve.to_frame()
        if csv is not None:
            with outputs.open(csv) as stream:
                writer = table_writer(stream, [str(c) for c in frame.columns], path=csv)
                writer.write([np.asarray(frame[c], dtype=np.float64) for c in frame.columns])
                writer.close()
        if plot is not None:
            from matplotlib.figure import Figure

            from skcoral.plotting import FrontierDisplay

            figure = Figure(figsize=(6.4, 4.4), layout="constrained")
            FrontierDisplay.from_result(curve, R).plot(figure.add_subplot())
            with outputs.open(plot) as stream:
                figure.savefig(stream, format=plot.suffix[1:].lower(), dpi=160)
        outputs.commit()
    written = [str(p) for p in (plot, csv) if p is not None]
    certified = bool(np.all(curve.gap <= 1e-7 * np.maximum(1.0, curve.objective)))
    if as_json:
        console.machine(
            {
                "file": loaded.table.label,
                "rows": found.n_rows,
                "dropped_rows": found.dropped,
                "notes": loaded.notes,
                "constant": list(loaded.constant),
                "criterion": criterion,
                "threshold": curve.threshold,
                "certified": certified,
                "points": [
                    dict(zip(map(str, frame.columns), row, strict=True))
                    for row in frame.to_numpy().tolist()
                ],
                "written": written,
            }
        )
    else:
        notes = [
            *loaded.notes,
            loaded.constant_sentence,
            dropped_sentence(loaded.table, found.dropped),
        ]
        # dependent variables leave some residual whatever the floor; the whole curve shows how much
        least = "zero"
        if singular:
            least = "at its least" if floors else f"{curve.objective.min():.6g}, its least"
        _tell(curve, criterion, certified, least, [note for note in notes if note])
        if written:
            console.say(f"Written: {', '.join(written)}")
    return OK if certified else NOT_CERTIFIED


def _tell(curve: Frontier, criterion: str, certified: bool, least: str, notes: list[str]) -> None:
    state = "all points certified" if certified else "NOT all points certified"
    console.say(
        console.bold(f"ρ★ = {curve.threshold:.6f}", "green" if certified else "red"),
        f"; up to it the residual is {least}. Residual: {CRITERIA[criterion]}; {state}.",
    )
    for note in notes:
        console.say(note)
    rows = [
        (
            console.number(rho, 6),
            console.short(objective),
            console.short(slope),
            console.number(worst),
            console.number(mean),
        )
        for rho, objective, slope, worst, mean in zip(
            curve.rho_min,
            curve.objective,
            curve.slope,
            curve.worst_residual,
            curve.mean_fidelity,
            strict=True,
        )
    ]
    console.table(("floor", "residual", "price", "worst pair", "mean fidelity"), rows)
