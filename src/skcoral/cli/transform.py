"""``coral transform``: a model applied to new rows."""

from __future__ import annotations

from typing import Any

from skcoral.cli import console
from skcoral.cli.loading import Loaded, look_at, open_file
from skcoral.cli.options import TableOptions, TransformOptions
from skcoral.cli.outputs import OutputMeasurement, all_or_none, check_output, destination
from skcoral.cli.run import OK, UsageError
from skcoral.core.display import printable
from skcoral.exceptions import InvalidTableError
from skcoral.tables.columns import select_variables
from skcoral.tables.table import Table


def transform(options: TransformOptions) -> int:
    """Apply a model to new rows."""
    check_output(options.output, options.json)
    from skcoral.models import load_model

    model, output = options.model, options.output
    if not model.is_file():
        raise UsageError(
            f"{printable(str(model))}: there is no such model file.\n"
            "Make one with: coral fit --model"
        )
    estimator = load_model(model)
    with all_or_none(options.force, output) as outputs:
        loaded = _for_model(open_file(options), estimator)
        measurement = OutputMeasurement(estimator, loaded)
        with destination(outputs, output) as stream:
            assert stream is not None  # "-" is an output too
            n_rows, dropped = measurement.write(stream, output, options)
    measured = measurement.measured()
    if options.json:
        console.print_json(
            {
                "file": loaded.table.label,
                "measured": None if measured is None else measured.to_dict(),
                "model": str(model),
                "rows": n_rows,
                "dropped_rows": dropped,
                "columns": list(loaded.names),
                "notes": loaded.notes,
                "written": [output],
            }
        )
        return OK
    told = [
        f"{console.counted(n_rows, 'row')} transformed with {model} ({len(loaded.names)} columns).",
        measured.headline() if measured is not None else "",
        *loaded.notes,
        loaded.dropped_note(dropped),
    ]
    console.say_each(told, stderr=output == "-")
    console.written([output])
    return OK


def _for_model(table: Table, estimator: Any) -> Loaded:
    """The columns of a table that a model was fitted on, by name."""
    content = look_at(table)
    fitted = getattr(estimator, "feature_names_in_", None)
    wanted = None if fitted is None else [str(name) for name in fitted]
    missing = [name for name in wanted or () if name not in table.names]
    if missing:
        raise InvalidTableError(
            f"{table.label}: columns of the model are missing: {console.listing(missing)}.\n"
            "Give a table with all columns that the model was fitted on; order does not matter."
        )
    chosen = select_variables(table, content, wanted, include=None, may_be_constant=True)
    if len(chosen.variables) != estimator.n_features_in_:
        raise InvalidTableError(
            f"{table.label}: the model has {estimator.n_features_in_} columns without names, "
            f"and the table has {len(chosen.variables)} columns of numbers.\n"
            "Give a table with the columns that the model was fitted on, in the same order."
        )
    return Loaded(table, content, chosen.variables, TableOptions(file=table.label))
