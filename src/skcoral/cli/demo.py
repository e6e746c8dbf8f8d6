"""``coral demo``: the Wine data from start to end, by the commands that people use."""

from __future__ import annotations

import shlex
from argparse import Namespace

from skcoral.choosing import compare_floors
from skcoral.cli import console
from skcoral.cli.fit import fit
from skcoral.cli.inspect import inspect
from skcoral.cli.outputs import all_or_none
from skcoral.cli.parser import make_parser
from skcoral.core.files import Outputs
from skcoral.datasets import load_wine


def demo(options: Namespace) -> int:
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
    inspected = ["inspect", str(table)]
    files = ["-o", made, "--model", model, "--report", report]
    fitted = ["fit", str(table), "--rho-min", f"{recommended.rho_min:g}", *map(str, files)]
    parser = make_parser()
    console.copyable(f"$ {shlex.join(['coral', *inspected])}")
    inspect(parser.parse_args(inspected))
    console.say("")
    console.copyable(f"$ {shlex.join(['coral', *fitted])}")
    return fit(parser.parse_args([*fitted, "--force"]))
