"""``coral demo``: the Wine data from start to end."""

from __future__ import annotations

import numpy as np

from skcoral.cli import console
from skcoral.cli.options import DemoOptions
from skcoral.cli.outputs import all_or_none
from skcoral.cli.run import NOT_CERTIFIED, OK

_DEMO_FLOOR = 0.85


def demo(options: DemoOptions) -> int:
    """Decorrelate the Wine data, compare with the classical methods, and leave the files."""
    from skcoral.datasets import load_wine
    from skcoral.estimator import CORAL
    from skcoral.models import save_model
    from skcoral.show import report, sentences
    from skcoral.show.pictures.fidelity import baseline_fidelities
    from skcoral.tables.writing import table_writer

    folder = options.into
    files = {
        name: folder / name
        for name in ("wine.csv", "decorrelated.csv", "model.json", "report.html")
    }
    folder.mkdir(parents=True, exist_ok=True)
    with all_or_none(options.force, *files.values()) as outputs:
        wine = load_wine()
        X = wine.to_frame()
        estimator = CORAL(rho_min=_DEMO_FLOOR).fit(X)
        result, th = estimator.result_, estimator.threshold_
        tables = {"wine.csv": wine.data, "decorrelated.csv": np.asarray(estimator.transform(X))}
        for name, values in tables.items():
            with outputs.open(files[name]) as stream:
                writer = table_writer(stream, wine.names, path=name)
                writer.write(list(values.T))
                writer.close()
        save_model(estimator, outputs.staged(files["model.json"]))
        commands = (
            f"coral inspect {files['wine.csv']}\n"
            f"coral fit {files['wine.csv']} --rho-min {_DEMO_FLOOR} -o out.csv --report report.html"
        )
        with console.progress("Making the report"):
            facts = report.gather(
                estimator,
                X=X,
                title="Decorrelation of Wine",
                file="wine.csv",
                command=commands,
            )
        outputs.write_text(files["report.html"], report.render(facts))
    others = {"ρ★": th.fidelity, **baseline_fidelities(estimator.correlation_)}
    if options.json:
        console.print_json(
            {
                "threshold": {"value": th.value, "lower": th.lower, "upper": th.upper},
                "rho_min": _DEMO_FLOOR,
                "measured": estimator.measured_.to_dict(),
                "objective": result.objective,
                "lower_bound": result.lower_bound,
                "certified": result.is_certified,
                "names": list(wine.names),
                "fidelity": {"CORAL": result.fidelity} | others,
                "written": [str(path) for path in files.values()],
            }
        )
        return OK if result.is_certified else NOT_CERTIFIED
    console.say(f"Wine: {len(wine.data)} wines, {len(wine.names)} measurements ({wine.source}).")
    console.say(console.bold(estimator.measured_.headline(), "green"))
    console.say(sentences.certificate(result))
    console.say(sentences.threshold(th))
    console.say("")
    rows = [
        (name, *(console.number(f[j]) for f in (result.fidelity, *others.values())))
        for j, name in enumerate(wine.names)
    ]
    weakest = ("weakest", *(console.number(f.min()) for f in (result.fidelity, *others.values())))
    console.table(("fidelity", f"floor {_DEMO_FLOOR}", *others), [*rows, weakest])
    console.say("")
    console.say(sentences.beside_zca(th.fidelity, others["ZCA-cor"]))
    console.say(f"Written to {folder}: {', '.join(files)}")
    console.say("Go on with:")
    for line in commands.splitlines():
        console.copyable(f"  {line}")
    return OK if result.is_certified else NOT_CERTIFIED
