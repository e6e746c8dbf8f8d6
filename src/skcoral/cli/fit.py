"""``coral fit``: from a table to a decorrelated one."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, BinaryIO

from skcoral import certificates
from skcoral.choosing import check_target
from skcoral.cli import console
from skcoral.cli.fit_result import FitResult
from skcoral.cli.loading import (
    Held,
    Loaded,
    hold,
    load,
    naming,
    read_rows,
    refuse_row_options,
    require_room,
)
from skcoral.cli.option_values import (
    floors_by_name,
    read_support,
)
from skcoral.cli.options import FitOptions
from skcoral.cli.outputs import (
    OutputMeasurement,
    all_or_none,
    check_ending,
    check_output,
    destination,
)
from skcoral.cli.run import NOT_CERTIFIED, OK, NotCertifiedError, UsageError
from skcoral.core.display import shortened
from skcoral.core.limits import current
from skcoral.core.results import Array
from skcoral.data.correlation import given_matrix
from skcoral.data.effects import Measured
from skcoral.data.moments import Moments
from skcoral.estimator.rows import named_rows
from skcoral.show import sentences as words
from skcoral.tables.table import labels_of
from skcoral.tables.writing import write_matrix

#: Tables with more numbers than this are read in parts instead of being held in memory.
IN_MEMORY = 20_000_000
#: Labels that a column must have to be suggested as clusters: confidence from fewer is coarse.
_FEWEST_GROUPS = 10


def fit(options: FitOptions) -> int:
    """Fit the table and write what was asked for, all files together or none."""
    _check(options)
    files = (options.output, options.model, options.report, options.certificate)
    with all_or_none(options.force, *files) as outputs:
        loaded = load(options, labels=[options.groups], target=options.target)
        settings = _settings(options, loaded.names)
        estimator = loaded.model(**settings)
        held: Held | None = None
        dropped: list[int] = []
        if loaded.matrix is not None:
            _fit_matrix(estimator, loaded, options)
        else:
            held, dropped = _fit_rows(estimator, loaded, options)
        result = estimator.result_
        with console.progress("Checking"):
            check = certificates.check(result, estimator.correlation_)
        if not check.passed:
            raise NotCertifiedError(
                f"{loaded.table.label}: the result failed its independent check "
                f"({'; '.join(check.problems)}), so nothing was written.\n"
                "Try --covariance LedoitWolf or fewer columns: the columns are nearly dependent."
            )
        if options.model is not None:
            from skcoral.models import save_model

            save_model(estimator, outputs.staged(options.model))
        if options.certificate is not None:
            text = certificates.certificate_text(
                result, estimator.correlation_, sources=loaded.names
            )
            outputs.write_text(options.certificate, text)
        with destination(outputs, options.output) as stream:
            measured = _write_and_measure(stream, options, loaded, estimator)
            fitted = FitResult(
                loaded,
                estimator,
                measured,
                dropped,
                _layout(options, loaded, result),
                _advice_on_groups(options, loaded),
            )
            if options.report is not None:
                outputs.write_text(options.report, _report(options, fitted, held))
    written = [str(path) for path in files if path is not None]
    if options.json:
        console.print_json(fitted.record(written))
    else:
        fitted.show(written, stderr=options.output == "-")
    return OK if words.is_certified(result) else NOT_CERTIFIED


def _settings(options: FitOptions, names: Sequence[str]) -> dict[str, Any]:
    """What is asked for, as the settings of :class:`skcoral.CORAL`."""
    targets = ("budget", "max_vif", "max_correlation", "confidence")
    as_given = (*targets, "criterion", "output_scale")
    return {name: getattr(options, name) for name in as_given} | {
        "rho_min": floors_by_name(options.rho_min, names),
        "support": read_support(options.support, names),
    }


def _fit_rows(estimator: Any, loaded: Loaded, options: FitOptions) -> tuple[Held | None, list[int]]:
    """Fit the rows of a table; returns those held in memory, and where those left out stand."""
    needs_rows = loaded.is_wide or not hasattr(estimator, "partial_fit")
    if needs_rows:
        in_parts = "Without --confidence and --covariance, long tables are read in parts."
        require_room(loaded, "" if loaded.is_wide else in_parts)
    few = min(IN_MEMORY, current().cells)
    if needs_rows or loaded.content.n_rows * len(loaded.names) <= few:
        held = hold(loaded, options.groups)
        with console.progress("Solving"), naming(loaded.table):
            estimator.fit(named_rows(held.values, loaded.names), **held.known)
        return held, held.dropped
    dropped: list[int] = []
    for part in read_rows(loaded, dropped):
        estimator.partial_fit(named_rows(part.values, loaded.names), sample_weight=part.weights)
    with console.progress("Solving"), naming(loaded.table):
        _ = estimator.result_
    return None, dropped


def _fit_matrix(estimator: Any, loaded: Loaded, options: FitOptions) -> None:
    """Solve for the matrix in a file; the estimator has then seen no rows."""
    given = loaded.matrix
    assert given is not None
    refuse_row_options(
        loaded.table.label,
        {
            "--model": options.model is not None,
            "--confidence": options.confidence is not None,
            "--output-scale": options.output_scale != "unit",
            "--keep-sources": options.keep_sources,
        },
    )
    table = given_matrix(given.R, given.names, scale=given.scale)
    with console.progress("Solving"), naming(loaded.table):
        estimator._fit_estimate(table, Moments(given.names), measured_on=given.R)


def _check(options: FitOptions) -> None:
    """Refuse options that contradict each other, before anything is read."""
    check_output(options.output, options.json)
    check_target(options, spelled=lambda name: f"--{name.replace('_', '-')}")
    how = "For PDF, open the page in a browser and print it to a file."
    check_ending(options.report, (".html", ".htm"), "the report", how)
    if options.groups is not None and options.confidence is None:
        raise UsageError(
            "--groups requires --confidence: groups say which rows are not independent.\n"
            "Add --confidence 0.95, or leave --groups out."
        )


def _write_and_measure(
    stream: BinaryIO | None, options: FitOptions, loaded: Loaded, estimator: Any
) -> Measured:
    """Write the outputs where they are asked for, and measure them."""
    path, own = options.output, estimator.measured_
    if loaded.matrix is not None:
        if stream is not None and path is not None:
            write_matrix(stream, path, loaded.names, estimator.result_.names, estimator.T_)
        return own
    measurement = OutputMeasurement(estimator, loaded)
    if stream is not None and path is not None:
        measurement.write(stream, path, options)
    elif options.weights is not None:  # the estimator has measured weighted rows
        with console.progress("Measuring"):
            for part in loaded.rows():
                measurement.add_rows(named_rows(part.values, loaded.names))
    return measurement.measured() or replace(own, rows_given=loaded.content.n_rows)


def _layout(options: FitOptions, loaded: Loaded, result: Any) -> str:
    """What the output file holds, where there is one: units and names of the outputs, or T."""
    if options.output is None:
        return ""
    if loaded.matrix is not None:
        return (
            f"{options.output} holds the transformation T: standardised variables (rows) times T "
            "are the outputs (columns)."
        )
    said = f"The outputs are {words.units(result, options.output_scale)}"
    unit = options.output_scale == "unit"
    said += "; --output-scale original gives them the units of their sources." if unit else "."
    beside = " Each stands beside its source, as NAME_d."
    return said + beside if options.keep_sources else said


def _advice_on_groups(options: FitOptions, loaded: Loaded) -> str:
    """Suggest clusters where confidence is asked for and a text column repeats its labels."""
    if options.confidence is None or options.groups is not None:
        return ""
    repeated: dict[str, int] = {}
    for column in loaded.content.columns:
        if column.kind == "text" and column.name and column.name != loaded.target:
            labels = [label for label in labels_of(loaded.table.cells(column.name)) if label]
            if _FEWEST_GROUPS <= len(set(labels)) <= len(labels) / 2:
                repeated[column.name] = len(set(labels))
    if not repeated:
        return ""
    name = max(repeated, key=repeated.__getitem__)
    return (
        f"{shortened(name)} has {repeated[name]} labels that repeat. If rows with the same label "
        f"are not independent, add --groups {shlex.quote(name)}."
    )


def _report(options: FitOptions, fitted: FitResult, held: Held | None) -> str:
    from skcoral.show import report

    loaded = fitted.loaded
    dropped = loaded.dropped_note(fitted.dropped)
    notes = [note for note in fitted.notes if note != dropped]  # told at the top
    if loaded.matrix is None and held is None:
        notes.append("The table is large: no hold-out table was made.")
    y, why = _outcome(loaded, held)
    with console.progress("Making the report"):
        facts = report.gather(
            fitted.estimator,
            X=None if held is None else named_rows(held.values, loaded.names),
            known=None if held is None else held.known,
            y=y,
            outcome=loaded.target or "",
            measured=fitted.measured,
            title=f"Decorrelation of {Path(loaded.table.label).stem}",
            file=Path(loaded.table.label).name,
            dropped=dropped,
            command=shlex.join(["coral", *sys.argv[1:]]),
            notes=[*notes, why],
        )
        return report.render(facts)


def _outcome(loaded: Loaded, held: Held | None) -> tuple[Array | None, str]:
    """The outcome of the rows held, for the report; or none, and a sentence that says why."""
    if loaded.target is None:
        return None, ""
    if loaded.matrix is not None:
        why = "the file holds a matrix and no rows"
    else:
        why = loaded.content.column(loaded.target).unusable(loaded.table)
        why = why and f"the column is no number that varies ({why})"
        if held is not None and not why:
            return held.outcome, ""
    return None, f"No regression of {loaded.target}: {why or 'the table is large'}."
