"""``coral fit``: from a table to a decorrelated one."""

from __future__ import annotations

import shlex
import sys
from argparse import Namespace
from collections.abc import Sequence
from typing import Any

import numpy as np

from skcoral.cli import console
from skcoral.cli.loading import check_columns, floors_by_name, load, notes, read_support, record
from skcoral.cli.outputs import all_or_none, check_ending, check_output, destination
from skcoral.cli.parser import UsageError, spelled
from skcoral.cli.run import NOT_CERTIFIED, OK
from skcoral.cli.threshold import describe_threshold
from skcoral.core.display import number, shortened
from skcoral.core.validation import listing
from skcoral.estimator.settings import check_target
from skcoral.models import save_model
from skcoral.show import sentences
from skcoral.tables.notes import Outcome
from skcoral.workflow.dataset import Dataset
from skcoral.workflow.fit import Fit
from skcoral.workflow.opening import check_options

_LAYOUT = ("keep_sources", "drop_incomplete")
_LONGEST_TABLE = 60  # variables that are listed one by one


def fit(options: Namespace) -> int:
    """Fit the table and write what was asked for, all files together or none."""
    _check(options)
    files = (options.output, options.model, options.report, options.certificate)
    with all_or_none(options.force, *files) as outputs:
        data = load(
            options,
            labels=tuple(filter(None, [options.groups])),
            in_memory=options.confidence is not None,
            dense=options.support is not None,
        )
        _check_size(options, data)
        fitted = data.fit(_settings(options, data.names), groups=options.groups)
        if not fitted.check.passed:
            shrink = "--covariance LedoitWolf or " * (data.matrix is None)
            raise UsageError(
                f"{data.table.label}: the result failed its independent check "
                f"({'; '.join(fitted.check.problems)}), so nothing was written.\n"
                f"Try {shrink}fewer columns: the columns are nearly dependent.",
                NOT_CERTIFIED,
            )
        remarks = _remarks(fitted, options)
        if options.model is not None:
            save_model(fitted.model, outputs.staged(options.model))
        if options.certificate is not None:
            outputs.write_text(options.certificate, fitted.certificate())
        with destination(outputs, options.output) as stream:
            if stream is not None:
                layout = {name: getattr(options, name) for name in _LAYOUT}
                fitted.write(stream, options.output, **layout)
            # The report comes last: it takes longest, and what is written to "-" waits for it.
            if options.report is not None:
                command = shlex.join(["coral", *sys.argv[1:]])
                outputs.write_text(options.report, fitted.report(command=command, notes=remarks))
    written = [str(path) for path in files if path is not None]
    if options.json:
        console.print_json(_record(fitted, remarks, written))
    else:
        with console.beside(options.output):
            _show(fitted, options, remarks, written)
    return OK if fitted.model.result_.is_certified else NOT_CERTIFIED


def _settings(options: Namespace, names: Sequence[str]) -> dict[str, Any]:
    """What is asked for, as the settings of :class:`skcoral.CORAL`."""
    targets = ("budget", "max_vif", "max_correlation", "confidence")
    as_given = (*targets, "criterion", "output_scale")
    return {name: getattr(options, name) for name in as_given} | {
        "rho_min": floors_by_name(options.rho_min, names),
        "support": read_support(options.support),
    }


def _check(options: Namespace) -> None:
    """Refuse options that contradict each other, before anything is read."""
    check_output(options.output, as_json=options.json)
    check_target(options, spelled=spelled)
    how = "For PDF, open the page in a browser and print it to a file."
    check_ending(options.report, (".html", ".htm"), "the report", how)
    if options.groups is not None and options.confidence is None and options.report is None:
        raise UsageError(
            "--groups goes with --confidence or --report: groups say which rows are not "
            "independent.\nAdd --confidence 0.95 or --report report.html, or leave --groups out."
        )


def _check_size(options: Namespace, data: Dataset) -> None:
    """Refuse what needs rows, for a matrix, and a report on very many columns."""
    if data.matrix is not None:
        check_options(
            data.table.label,
            model=options.model,
            confidence=options.confidence,
            output_scale=options.output_scale != "unit",
            keep_sources=options.keep_sources,
            drop_incomplete=options.drop_incomplete,
        )
    if options.report is not None:
        check_columns(data, "a report", "Leave --report out")


def _remarks(fitted: Fit, options: Namespace) -> list[str]:
    """What was left out or assumed: said next to the answer and in the report."""
    data, model = fitted.data, fitted.model
    outcome: Outcome = "unused" if options.output is None else "empty"
    remarks = notes(data, "dropped" if options.drop_incomplete else outcome)
    passed = [shortened(name) or "the row labels" for name in data.unmentioned]
    if passed:
        remarks.append(f"Columns left as they were: {listing(passed, quote='')}.")
    remarks += [model.result_.notes.rounding, sentences.unfloored(model.result_, model.rho_min)]
    groups = data.suggested_groups if options.confidence and not options.groups else None
    if groups is not None:
        remarks.append(sentences.clusters(groups, f"add --groups {shlex.quote(groups[0])}"))
    if options.output is not None:
        remarks.append(_layout(fitted, options))
    return [sentence for sentence in remarks if sentence]


def _layout(fitted: Fit, options: Namespace) -> str:
    """What the output file holds: units and names of the outputs, or T."""
    if fitted.data.matrix is not None:
        return (
            f"{options.output} holds the transformation T: standardised variables (rows) times "
            "T are the outputs (columns)."
        )
    units = f"The outputs are {sentences.units(fitted.model)}"
    if options.output_scale == "unit":
        units += "; --output-scale original gives them the units of their sources"
    beside = " Each stands beside its source, as NAME_d." * options.keep_sources
    return f"{units}.{beside}"


def _record(fitted: Fit, remarks: list[str], written: list[str]) -> dict[str, Any]:
    """The result for machines."""
    data, model, measured = fitted.data, fitted.model, fitted.measured
    result = model.result_
    # of dependent columns it takes as long as the fit itself: coral threshold gives it
    th = None if result.deficiency else describe_threshold(model.threshold_)
    sure = getattr(model, "confidence_", None)
    confidence = sure and {"sentence": sure.sentence(), **sure.to_frame().to_dict()}
    bounded = sentences.minimises_residual(result)

    def by_name(values: Any) -> dict[str, float]:
        return dict(zip(result.names, np.asarray(values).tolist(), strict=True))

    return {
        **record(data),
        "measured": measured.to_dict(),
        "headline": measured.headline(),
        "certificate": {
            "sentence": sentences.certificate(result),
            "goal": sentences.goal(result),
            "about": result.notes.about,
            "is_about_rows": result.notes.is_about_rows,
            "min_fidelity": result.min_fidelity,
        },
        "notes": remarks,
        "passed_through": [] if data.matrix is not None else list(data.passed_through),
        "criterion": result.criterion,
        "objective": result.objective,
        "lower_bound": result.lower_bound if bounded else None,
        "gap": result.gap if bounded else None,
        "rank": result.rank,
        "status": result.status,
        "status_is_about": sentences.aim(result),
        "certified": result.is_certified,
        "threshold": th,
        "confidence": confidence,
        "fidelity": by_name(measured.fidelity),
        "rho_min": by_name(result.rho_min),
        "prices": by_name(result.prices) if bounded else None,
        "written": written,
    }


def _show(fitted: Fit, options: Namespace, remarks: list[str], written: list[str]) -> None:
    """Print measured figures first, then what is proved, then the details."""
    model, measured = fitted.model, fitted.measured
    result = model.result_
    good = result.is_certified and result.notes.is_about_rows and not measured.rises
    console.say(measured.headline(), "green" if good else "yellow")
    threshold = sentences.rank(result)
    if not result.deficiency:
        threshold = sentences.threshold(model.threshold_, result)
    console.say_each((*sentences.proved(result), *remarks, threshold))
    console.say("")
    columns = {
        "weighted fidelity" if measured.weighted else "fidelity": map(number, measured.fidelity),
        "floor": map(number, result.rho_min),
        "price": map(sentences.price, result.prices),
        "residual": map(number, measured.residual),
    }
    if not sentences.minimises_residual(result):
        del columns["price"]
    rows = list(zip(result.names, *columns.values(), strict=True))
    # Of many variables, those with the weakest fidelity are what the reader looks for.
    n_more = len(rows) - _LONGEST_TABLE
    if n_more > 0:
        weakest = np.argsort(measured.fidelity, kind="stable")[:_LONGEST_TABLE]
        rows = [rows[j] for j in weakest]
    console.table(("variable", *columns), rows)
    if n_more > 0:
        console.say(f"and {n_more:,} more, none weaker (--json lists all).")
    console.written(written)
    if options.output is None:
        what = "The outputs were not written" if written else "Nothing was written"
        console.say(f"{what}: -o FILE writes the outputs.")
