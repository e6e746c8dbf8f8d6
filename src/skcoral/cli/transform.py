"""``coral transform``: a model applied to new rows."""

from __future__ import annotations

from argparse import Namespace

from skcoral.cli import console
from skcoral.cli.loading import check_made, notes, open_source
from skcoral.cli.outputs import all_or_none, check_output, destination
from skcoral.cli.run import OK
from skcoral.models import load_model
from skcoral.tables.notes import Outcome
from skcoral.workflow.fit import write_outputs


def transform(options: Namespace) -> int:
    """Apply a model to new rows."""
    check_output(options.output)
    model, output = options.model, options.output
    check_made(model, "model")
    estimator = load_model(model)
    with all_or_none(options.force, output) as outputs:
        data = open_source(options).for_model(estimator)
        with destination(outputs, output) as stream:
            assert stream is not None  # "-" is an output too
            measured = data.effect_of(estimator)
            write_outputs(
                data,
                estimator,
                stream,
                output,
                keep_sources=options.keep_sources,
                drop_incomplete=options.drop_incomplete,
            )
    n_rows = data.content.n_rows - len(data.incomplete)
    done = f"{console.counted(n_rows, 'row')} transformed with {model} ({len(data.names)} columns)."
    headline = "" if measured is None else measured.headline()
    with console.beside(output):
        outcome: Outcome = "dropped" if options.drop_incomplete else "without"
        console.say_each([done, headline, *notes(data, outcome)])
        console.written([output])
    return OK
