"""``coral demo``: the Wine data from start to end, by the commands that people use."""

from __future__ import annotations

import shlex

from skcoral.choosing import compare_floors
from skcoral.cli import console
from skcoral.cli.fit import fit
from skcoral.cli.inspect import inspect
from skcoral.cli.options import DemoOptions, FitOptions, InspectOptions
from skcoral.cli.outputs import all_or_none
from skcoral.core.files import Outputs
from skcoral.datasets import load_wine


def demo(options: DemoOptions) -> int:
    """Write the Wine data, inspect them, and fit the floor that was recommended."""
    folder, wine = options.into, load_wine()
    table, made = folder / "wine.csv", folder / "decorrelated.csv"
    model, report = folder / "model.json", folder / "report.html"
    folder.mkdir(parents=True, exist_ok=True)
    with Outputs(force=options.force) as reserved:
        # A file that is in the way is refused before anything is written.
        for path in (made, model, report):
            reserved.reserve(path)
    with all_or_none(options.force, table) as outputs:
        outputs.write_text(table, wine.to_frame().to_csv(index=False))
    recommended = compare_floors(wine.correlation).recommended
    assert recommended is not None  # only singular tables can be left without one
    inspected = InspectOptions(file=str(table))
    fitted = FitOptions(
        file=str(table),
        rho_min=[f"{recommended.rho_min:g}"],
        output=str(made),
        model=model,
        report=report,
        force=True,
        json=options.json,
    )
    if not options.json:
        console.say(console.bold(f"$ {shlex.join(['coral', 'inspect', *inspected.arguments()])}"))
        inspect(inspected)
        console.say("")
        console.say(console.bold(f"$ {shlex.join(['coral', 'fit', *fitted.arguments()])}"))
    return fit(fitted)
