"""``coral fit``: from a table to a decorrelated one."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from typing import Any

from skcoral.choosing import check_target
from skcoral.cli import console
from skcoral.cli.fit_result import FitAnswer
from skcoral.cli.loading import load
from skcoral.cli.option_values import floors_by_name, read_support
from skcoral.cli.options import FitOptions
from skcoral.cli.outputs import all_or_none, check_ending, check_output, destination
from skcoral.cli.run import NOT_CERTIFIED, OK, NotCertifiedError, UsageError
from skcoral.models import save_model
from skcoral.workflow.opening import check_rows

#: Columns that a report may have: it compares all pairs of them, twice, and draws a curve.
_MOST_REPORTED = 10_000


def fit(options: FitOptions) -> int:
    """Fit the table and write what was asked for, all files together or none."""
    _check(options)
    files = (options.output, options.model, options.report, options.certificate)
    with all_or_none(options.force, *files) as outputs:
        data = load(
            options,
            target=options.target,
            labels=tuple(filter(None, [options.groups])),
            in_memory=options.confidence is not None,
            dense=options.support is not None,
        )
        if data.matrix is not None:
            check_rows(
                data.table.label,
                model=options.model,
                confidence=options.confidence,
                output_scale=options.output_scale != "unit",
                keep_sources=options.keep_sources,
                drop_incomplete=options.drop_incomplete,
            )
        if options.report is not None and len(data.names) > _MOST_REPORTED:
            raise UsageError(
                f"{data.table.label}: a report compares all pairs of columns, and takes up to "
                f"{_MOST_REPORTED:,} of them; there are {len(data.names):,}.\n"
                "Leave --report out, or choose fewer columns (--columns)."
            )
        fitted = data.fit(_settings(options, data.names), groups=options.groups)
        if not fitted.check.passed:
            raise NotCertifiedError(
                f"{data.table.label}: the result failed its independent check "
                f"({'; '.join(fitted.check.problems)}), so nothing was written.\n"
                "Try --covariance LedoitWolf or fewer columns: the columns are nearly dependent."
            )
        if options.model is not None:
            save_model(fitted.model, outputs.staged(options.model))
        if options.certificate is not None:
            outputs.write_text(options.certificate, fitted.certificate())
        answer = FitAnswer(fitted, options)
        with destination(outputs, options.output) as stream:
            if stream is not None and options.output is not None:
                layout = {
                    "keep_sources": options.keep_sources,
                    "drop_incomplete": options.drop_incomplete,
                }
                fitted.write(stream, options.output, **layout)
            if options.report is not None:
                command = shlex.join(["coral", *sys.argv[1:]])
                page = fitted.report(command=command, notes=answer.notes)
                outputs.write_text(options.report, page)
    written = [str(path) for path in files if path is not None]
    if options.json:
        console.print_json(answer.record(written))
    else:
        answer.show(written, stderr=options.output == "-")
    return OK if fitted.model.result_.is_certified else NOT_CERTIFIED


def _settings(options: FitOptions, names: Sequence[str]) -> dict[str, Any]:
    """What is asked for, as the settings of :class:`skcoral.CORAL`."""
    targets = ("budget", "max_vif", "max_correlation", "confidence")
    as_given = (*targets, "criterion", "output_scale")
    return {name: getattr(options, name) for name in as_given} | {
        "rho_min": floors_by_name(options.rho_min, names),
        "support": read_support(options.support, names),
    }


def _check(options: FitOptions) -> None:
    """Refuse options that contradict each other, before anything is read."""
    check_output(options.output, options.json)
    check_target(options, spelled=lambda name: f"--{name.replace('_', '-')}")
    how = "For PDF, open the page in a browser and print it to a file."
    check_ending(options.report, (".html", ".htm"), "the report", how)
    if options.groups is not None and options.confidence is None and options.report is None:
        raise UsageError(
            "--groups goes with --confidence or --report: groups say which rows are not "
            "independent.\nAdd --confidence 0.95 or --report report.html, or leave --groups out."
        )
