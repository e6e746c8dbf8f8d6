"""``coral fit``: from a table to a decorrelated one."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np

from skcoral import certificates, words
from skcoral.choosing import check_target
from skcoral.cli import console
from skcoral.cli.correlations import hold, read_rows
from skcoral.cli.fit_matrix import fit_matrix, write_transformation
from skcoral.cli.fit_result import FitResult
from skcoral.cli.loading import Loaded, load, naming, require_room
from skcoral.cli.option_values import (
    floors_by_name,
    read_block_length,
    read_shrinkage,
    read_support,
)
from skcoral.cli.options import FitOptions
from skcoral.cli.outputs import (
    all_or_none,
    check_output,
    destination,
    measure,
    measured_result,
    write,
)
from skcoral.cli.run import NOT_CERTIFIED, OK, NotCertifiedError, UsageError
from skcoral.limits import current
from skcoral.measured import Measured, Measurement

if TYPE_CHECKING:
    import pandas as pd

#: Tables with more numbers than this are read in parts instead of being held in memory.
IN_MEMORY = 20_000_000
#: Rows beyond this are not used for the report's hold-out table.
HOLDOUT_ROWS = 200_000


def fit(options: FitOptions) -> int:
    """Fit the table and write what was asked for, all files together or none."""
    _check(options)
    files = (options.output, options.model, options.report, options.certificate)
    with all_or_none(options.force, *files) as outputs:
        loaded = load(options, labels=[options.groups])
        settings = _settings(options, loaded.names)
        X: Any = None
        dropped: list[int] = []
        known: dict[str, Any] = {}
        if loaded.matrix is not None:
            estimator = fit_matrix(loaded, options, settings)
        else:
            estimator, X, dropped, known = _fit_rows(loaded, options, settings)
        result = estimator.result_
        with console.progress("Checking"):
            check = certificates.check(result, estimator.correlation_)
        if not check.passed:
            raise NotCertifiedError(
                f"{loaded.table.label}: the result failed its independent check "
                f"({'; '.join(check.problems)}), so nothing was written.\n"
                "Try --shrinkage auto or fewer columns: the columns are nearly dependent."
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
            if loaded.matrix is not None:
                layout = write_transformation(stream, options.output, estimator)
                fitted = FitResult(loaded, estimator, estimator.measured_, [], layout)
            else:
                measured = _measured(stream, options, loaded, estimator, X)
                fitted = FitResult(loaded, estimator, measured, dropped, _layout(options, result))
            if options.report is not None:
                outputs.write_text(options.report, _report(options, fitted, X, known))
    written = [str(path) for path in files if path is not None]
    if options.json:
        console.machine(fitted.record(written))
    else:
        fitted.show(written, stderr=options.output == "-")
    return OK if words.is_certified(result) else NOT_CERTIFIED


def _settings(options: FitOptions, names: Sequence[str]) -> dict[str, Any]:
    """What is asked for, as the settings of :class:`skcoral.CORAL`."""
    return {
        "rho_min": floors_by_name(options.rho_min, names),
        "budget": options.budget,
        "max_vif": options.max_vif,
        "max_correlation": options.max_correlation,
        "confidence": options.confidence,
        "block_length": read_block_length(options.block_length),
        "criterion": options.criterion,
        "support": read_support(options.support, names),
        "shrinkage": read_shrinkage(options.shrinkage),
        "margins": options.margins,
        "output_scale": options.output_scale,
    }


def _fit_rows(
    loaded: Loaded, options: FitOptions, settings: dict[str, Any]
) -> tuple[Any, Any, list[int], dict[str, Any]]:
    """Fit the rows of a table.

    Returns
    -------
    estimator : CORAL
    X : DataFrame or None
        The rows, if they are held in memory.
    dropped : list of int
        The rows left out.
    known : dict
        Weights and groups of the rows, as ``fit`` takes them.
    """
    estimator = loaded.model(**settings)
    needs_rows = (
        loaded.needs_rows
        or options.shrinkage == "auto"
        or options.margins != "none"
        or options.confidence is not None
    )
    if needs_rows:
        in_parts = (
            "Without --margins, --confidence, --covariance, --missing em and --shrinkage auto, "
            "long tables are read in parts."
        )
        require_room(loaded, "" if loaded.is_wide else in_parts)
    few = min(IN_MEMORY, current().cells)
    if needs_rows or loaded.content.n_rows * len(loaded.names) <= few:
        held = hold(loaded, options.groups)
        X = _frame(held.values, loaded.names)
        known: dict[str, Any] = {}
        if held.weights is not None:
            known["sample_weight"] = held.weights
        if options.groups is not None:
            known["groups"] = np.array(held.labels, dtype=object)
        with console.progress("Solving"), naming(loaded.table):
            estimator.fit(X, **known)
        return estimator, X, held.dropped, known
    dropped: list[int] = []
    for part in read_rows(loaded, dropped):
        estimator.partial_fit(_frame(part.values, loaded.names), sample_weight=part.weights)
    with console.progress("Solving"), naming(loaded.table):
        _ = estimator.result_
    return estimator, None, dropped, {}


def _frame(values: Any, names: Sequence[str]) -> pd.DataFrame:
    import pandas as pd

    return pd.DataFrame(values, columns=list(names))


def _check(options: FitOptions) -> None:
    """Refuse options that contradict each other, before anything is read."""
    check_output(options.output, options.json)
    check_target(options, spelled=lambda name: f"--{name.replace('_', '-')}")
    read_block_length(options.block_length)
    report, confidence = options.report, options.confidence
    if report is not None and report.suffix.lower() not in (".html", ".htm"):
        raise UsageError(
            f"{report}: the report is written as HTML, so its name must end in .html.\n"
            "For PDF, open the page in a browser and print it to a file."
        )
    for option, given, subject, needs, example in (
        ("--interactive", options.interactive, "the report", report, "--report FILE"),
        ("--groups", options.groups, "confidence", confidence, "--confidence 0.95"),
        ("--block-length", options.block_length, "confidence", confidence, "--confidence 0.95"),
    ):
        if given and needs is None:
            raise UsageError(
                f"{option} is about {subject}, and none is asked for.\n"
                f"Add {example}, or leave it out."
            )
    if confidence is not None and not 0.0 < confidence < 1.0:
        raise UsageError(
            f"--confidence must lie between 0 and 1, not {confidence:g}.\n"
            "Example: --confidence 0.95"
        )
    if confidence is not None and not options.rho_min:
        raise UsageError(
            "--confidence raises floors, and none is given.\n"
            f"Example: --rho-min 0.85 --confidence {confidence:g}"
        )


def _measured(
    stream: BinaryIO | None, options: FitOptions, loaded: Loaded, estimator: Any, X: Any
) -> Measured:
    """Write the outputs where they are asked for, and measure them."""
    n_given = loaded.content.n_rows
    measurement = Measurement(loaded.names, estimator.result_.names)
    if stream is not None and options.output is not None:
        write(stream, options.output, loaded, estimator, measurement, options)
    elif X is None and loaded.weights is None:
        # the moments of the rows that were read tell the same, without reading them again
        return replace(estimator.measured_, rows_given=n_given)
    else:
        with console.progress("Measuring"):
            batches = [X.to_numpy()] if X is not None else (part.values for part in loaded.rows())
            for rows in batches:
                measure(measurement, estimator, _frame(rows, loaded.names))
    if loaded.missing == "em" and not estimator.measured_.rows_used:  # no complete row
        return replace(estimator.measured_, rows_given=n_given)
    return measured_result(measurement, estimator, n_given)


def _layout(options: FitOptions, result: Any) -> str:
    """Which units the outputs have and what they are called, where they are written."""
    if options.output is None:
        return ""
    said = f"The outputs are {words.units(result, options.output_scale)}"
    unit = options.output_scale == "unit"
    said += "; --output-scale original gives them the units of their sources." if unit else "."
    if options.keep_sources:
        said += f" Each stands beside its source, as NAME{options.layout.ending}."
    elif options.suffix:
        said += f" Each is called NAME{options.layout.ending}."
    return said


def _report(options: FitOptions, fitted: FitResult, X: Any, known: dict[str, Any]) -> str:
    from skcoral import report

    loaded = fitted.loaded
    dropped = loaded.dropped_note(fitted.dropped)
    notes = [note for note in fitted.notes if note != dropped]  # told at the top
    if loaded.matrix is None and (X is None or len(X) > HOLDOUT_ROWS):
        X = None
        notes.append("The table is large: no hold-out table was made.")
    elif X is not None and len(X) < 4 * len(loaded.names):
        X = None
        notes.append("No hold-out table: it needs four or more rows per variable.")
    with console.progress("Making the report"):
        facts = report.gather(
            fitted.estimator,
            X=X,
            known=known,
            measured=fitted.measured,
            title=f"Decorrelation of {Path(loaded.table.label).stem}",
            file=Path(loaded.table.label).name,
            dropped=dropped,
            command=shlex.join(["coral", *sys.argv[1:]]),
            notes=notes,
        )
        return report.render(facts, interactive=options.interactive)
