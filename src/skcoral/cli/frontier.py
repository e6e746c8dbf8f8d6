"""``coral frontier``: what every floor costs."""

from __future__ import annotations

from argparse import Namespace

import numpy as np

from skcoral import api
from skcoral.cli import console
from skcoral.cli.loading import check_columns, load, notes
from skcoral.cli.outputs import all_or_none, check_ending
from skcoral.cli.run import NOT_CERTIFIED, OK
from skcoral.core.display import number, short
from skcoral.core.tolerances import OPTIMAL_GAP
from skcoral.tables.writing import output_format, table_writer


def frontier(options: Namespace) -> int:
    """Compute the curve, print it, and write it as a table and as a picture."""
    plot, csv, floors = options.plot, options.csv, options.rho_min
    check_ending(plot, (".png", ".svg", ".pdf"), "a picture")
    if csv is not None:
        output_format(csv)
    files = [path for path in (plot, csv) if path is not None]
    # The names of the files are taken before anything is computed, which may take minutes.
    with all_or_none(options.force, *files) as outputs:
        data = load(options)
        if not floors:
            check_columns(data, "the whole curve", "Name the floors to look at (--rho-min)")
        estimate = data.estimate
        with data.naming(), console.progress("Computing the curve"):
            curve = api.frontier(
                estimate,
                sorted(set(floors)) if floors else None,
                criterion=options.criterion,
                n_points=options.points,
            )
        frame = curve.to_frame()
        if csv is not None:
            with outputs.open(csv) as stream:
                writer = table_writer(stream, list(frame.columns), path=csv, like=data.table)
                writer.write([np.asarray(frame[c], dtype=np.float64) for c in frame.columns])
                writer.close()
        if plot is not None:
            from matplotlib.figure import Figure

            from skcoral.show.pictures import FrontierDisplay

            figure = Figure(figsize=(6.4, 4.4), layout="constrained")
            regular = None if estimate.deficiency is not None else estimate.R
            FrontierDisplay.from_result(curve, regular).plot(figure.add_subplot())
            with outputs.open(plot) as stream:
                figure.savefig(stream, format=plot.suffix[1:].lower(), dpi=160)
    certified = bool(np.all(curve.gap <= OPTIMAL_GAP * np.maximum(1.0, curve.objective)))
    headline, *details = curve.summary().splitlines()
    console.say(headline, "green" if certified else "red")
    console.say_each([" ".join(details), *notes(data)])
    columns = (
        (number(rho, 6) for rho in curve.rho_min),
        map(short, curve.objective),
        map(short, curve.slope),
        map(number, curve.worst_residual),
        map(number, curve.mean_fidelity),
    )
    header = ("floor", "residual", "price", "worst pair", "mean fidelity")
    console.table(header, list(zip(*columns, strict=True)))
    console.written(files)
    return OK if certified else NOT_CERTIFIED
