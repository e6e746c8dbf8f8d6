"""``coral transform``: a model applied to new rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any, BinaryIO

from skcoral.cli import console
from skcoral.cli.loading import Loaded, dropped_sentence, expected_sentence, look_at, open_file
from skcoral.cli.options import TableOptions
from skcoral.cli.outputs import check_output, destination, measured_result, write
from skcoral.cli.run import OK, UsageError
from skcoral.exceptions import InvalidTableError
from skcoral.measured import Measured, Measurement
from skcoral.tables.columns import choose_columns
from skcoral.tables.staging import Outputs
from skcoral.tables.table import Table
from skcoral.tables.transforming import Layout


def transform(
    options: TableOptions,
    model: Path,
    output: str,
    *,
    layout: Layout,
    escape_formulas: bool,
    force: bool,
    as_json: bool,
) -> int:
    """Apply a model to new rows."""
    check_output(output, as_json)
    from skcoral.models.files import load_model

    if not model.is_file():
        raise UsageError(f"{model}: there is no such model file.\nMake one with: coral fit --model")
    estimator = load_model(model)
    with Outputs(force=force) as outputs:
        if output != "-":
            outputs.reserve(output)
        loaded = _for_model(open_file(options), estimator)
        with destination(outputs, output) as stream:
            assert stream is not None
            measurement = Measurement(loaded.names, estimator.result_.names)
            n_rows, dropped, measured = _transformed(
                stream, output, loaded, estimator, layout, escape_formulas, measurement
            )
        outputs.commit()
    if as_json:
        console.machine(
            {
                "file": loaded.table.label,
                "measured": None if measured is None else measured.to_dict(),
                "model": str(model),
                "rows": n_rows,
                "dropped_rows": dropped,
                "rows_outside": measurement.n_outside,
                "columns": list(loaded.names),
                "written": [output],
            }
        )
    else:
        to_stderr = output == "-"
        console.say(
            f"{console.counted(n_rows, 'row')} transformed with {model} "
            f"({len(loaded.names)} columns).",
            stderr=to_stderr,
        )
        if measured is not None:
            console.say(f"On these rows: {measured.headline()}", stderr=to_stderr)
        if measurement.n_outside:
            console.say(
                f"{console.counted(measurement.n_outside, 'row')} with values beyond those fitted: "
                "their ranks or scores stay at the ends.",
                stderr=to_stderr,
            )
        for sentence in (
            expected_sentence(n_rows - measurement.n_rows, 1, "are written"),
            dropped_sentence(loaded.table, dropped),
        ):
            if sentence:
                console.say(sentence, stderr=to_stderr)
        if not to_stderr:
            console.say(f"Written: {output}")
    return OK


def _transformed(
    stream: BinaryIO,
    path: str,
    loaded: Loaded,
    estimator: Any,
    layout: Layout,
    escape_formulas: bool,
    measurement: Measurement,
) -> tuple[int, list[int], Measured | None]:
    """Write new rows; few of them, or constant columns, leave nothing to be measured."""
    n_rows, dropped = write(
        stream,
        path,
        loaded,
        estimator,
        measurement,
        layout=layout,
        escape_formulas=escape_formulas,
    )
    if measurement.n_rows < 3:
        return n_rows, dropped, None
    try:
        return n_rows, dropped, measured_result(measurement, estimator, n_rows + len(dropped))
    except InvalidTableError:
        return n_rows, dropped, None


def _for_model(table: Table, estimator: Any) -> Loaded:
    """The columns of a table that a model was fitted on, by name."""
    content = look_at(table)
    fitted = getattr(estimator, "feature_names_in_", None)
    if fitted is None:
        names = choose_columns(table, content, include=None)
        if len(names) != estimator.n_features_in_:
            raise InvalidTableError(
                f"{table.label}: the model has {estimator.n_features_in_} columns without names, "
                f"and the table has {len(names)} columns of numbers.\n"
                "Give a table with the columns that the model was fitted on, in the same order."
            )
    else:
        wanted = [str(name) for name in fitted]
        missing = [name for name in wanted if name not in table.names]
        if missing:
            raise InvalidTableError(
                f"{table.label}: columns of the model are missing: {console.listing(missing)}.\n"
                "Give a table with all columns that the model was fitted on; order does not matter."
            )
        names = choose_columns(table, content, wanted)
    return Loaded(table, content, names)
