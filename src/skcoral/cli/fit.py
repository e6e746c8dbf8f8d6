"""``coral fit``: from a table to a decorrelated one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np

from skcoral import certificates, words
from skcoral.cli import console
from skcoral.cli.correlations import hold
from skcoral.cli.fit_matrix import fit_matrix, write_transformation
from skcoral.cli.fit_result import Answer, as_record, tell
from skcoral.cli.loading import Loaded, dropped_sentence, load, naming, require_room, require_rows
from skcoral.cli.option_values import floors_by_name, read_support
from skcoral.cli.options import TableOptions
from skcoral.cli.outputs import check_output, destination, measure, measured_result, write
from skcoral.cli.run import NOT_CERTIFIED, OK, NotCertifiedError, UsageError
from skcoral.correlation import check_shrinkage
from skcoral.limits import current
from skcoral.measured import Measured, Measurement
from skcoral.tables.staging import Outputs
from skcoral.tables.transforming import Layout

if TYPE_CHECKING:
    import pandas as pd

#: Tables with more numbers than this are read in parts instead of being held in memory.
IN_MEMORY = 20_000_000
#: Rows beyond this are not used for the report's hold-out table.
HOLDOUT_ROWS = 200_000


@dataclass(frozen=True)
class FitOptions:
    """What ``coral fit`` was asked for."""

    table: TableOptions
    rho_min: Sequence[str] = ()
    budget: float | None = None
    max_vif: float | None = None
    max_correlation: float | None = None
    confidence: float | None = None
    groups: str | None = None
    block_length: str | None = None
    criterion: str = "squared"
    support: str | None = None
    shrinkage: str | None = None
    margins: str = "none"
    output_scale: str = "unit"
    output: str | None = None
    layout: Layout = field(default_factory=Layout)
    model: Path | None = None
    report: Path | None = None
    certificate: Path | None = None
    interactive: bool = False
    escape_formulas: bool = False
    force: bool = False
    command: str = ""


def fit(options: FitOptions, *, as_json: bool) -> int:
    """Fit the table and write what was asked for, all files together or none."""
    check_output(options.output, as_json)
    _check_report(options.report)
    _check_target(options)
    _check_confidence(options)
    if options.interactive and options.report is None:
        raise UsageError(
            "--interactive is about the report, and none is asked for.\n"
            "Add --report FILE, or leave it out."
        )
    with Outputs(force=options.force) as outputs:
        for path in (options.output, options.model, options.report, options.certificate):
            if path is not None and str(path) != "-":
                outputs.reserve(path)
        loaded = load(replace(options.table, groups=options.groups))
        X: Any = None
        dropped: list[int] = []
        known: dict[str, Any] = {}
        if loaded.matrix is not None:
            estimator: Any = fit_matrix(loaded, options)
        else:
            estimator, X, dropped, known = fitted(loaded, options)
        result = estimator.result_
        with console.progress("Checking"):
            check = certificates.check(result, estimator.correlation_)
        if not check.passed:
            raise NotCertifiedError(
                f"{loaded.table.label}: the answer failed its independent check "
                f"({'; '.join(check.problems)}), so nothing was written.\n"
                "Try --shrinkage auto or fewer columns: the columns are nearly dependent."
            )
        if options.model is not None:
            from skcoral.models.files import save_model

            save_model(estimator, outputs.staged(options.model))
        if options.certificate is not None:
            text = certificates.certificate_text(
                result, estimator.correlation_, sources=loaded.names
            )
            outputs.write_text(options.certificate, text)
        if loaded.matrix is not None:
            said = write_transformation(outputs, options.output, estimator, destination)
            answer = Answer(loaded, estimator, estimator.measured_, [], said)
            _write_report(outputs, options, answer, X, known)
        else:
            with destination(outputs, options.output) as stream:
                measured = _measured(stream, options, loaded, estimator, X)
                answer = Answer(loaded, estimator, measured, dropped, _written_as(options, result))
                _write_report(outputs, options, answer, X, known)
        outputs.commit()
    files = (options.output, options.model, options.report, options.certificate)
    written = [str(path) for path in files if path is not None]
    if as_json:
        console.machine(as_record(answer, written))
    else:
        tell(answer, written, stderr=options.output == "-")
    return OK if words.is_certified(result) else NOT_CERTIFIED


def fitted(loaded: Loaded, options: FitOptions) -> tuple[Any, Any, list[int], dict[str, Any]]:
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
    shrinkage: str | float | None = options.shrinkage
    if shrinkage is not None and shrinkage != "auto":
        try:
            shrinkage = check_shrinkage(float(shrinkage))
        except ValueError:
            raise UsageError(
                f"--shrinkage must be 'auto' or a number in (0, 1], not {options.shrinkage!r}.\n"
                "Example: --shrinkage auto"
            ) from None
    settings: dict[str, Any] = {
        "rho_min": floors_by_name(options.rho_min, loaded.names),
        "budget": options.budget,
        "max_vif": options.max_vif,
        "max_correlation": options.max_correlation,
        "confidence": options.confidence,
        "block_length": _block_length(options.block_length),
        "criterion": options.criterion,
        "support": read_support(options.support, loaded.names),
        "shrinkage": shrinkage,
        "margins": options.margins,
        "output_scale": options.output_scale,
    }
    estimator = loaded.model(**settings)
    dropped: list[int] = []
    sure = options.confidence is not None
    needs_rows = shrinkage == "auto" or options.margins != "none" or loaded.needs_rows or sure
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
    n_rows = 0
    with console.progress(f"Reading {loaded.table.label}") as tell:
        for part in loaded.rows(lambda batch: tell(batch.fraction)):
            dropped.extend(part.dropped)
            n_rows += len(part.values)
            if len(part.values):
                estimator.partial_fit(_frame(part.values, loaded.names), sample_weight=part.weights)
    require_rows(loaded, n_rows)
    with console.progress("Solving"), naming(loaded.table):
        _ = estimator.result_
    return estimator, None, dropped, {}


def _block_length(text: str | None) -> int | str | None:
    if text is None or text == "auto":
        return text
    if not text.isdecimal() or int(text) < 1:
        raise UsageError(
            f"--block-length must be 'auto' or a whole number of rows, not {text!r}.\n"
            "Example: --block-length auto"
        )
    return int(text)


def _check_confidence(options: FitOptions) -> None:
    _block_length(options.block_length)
    if options.confidence is None:
        for name, given in (
            ("--groups", options.groups),
            ("--block-length", options.block_length),
        ):
            if given is not None:
                raise UsageError(
                    f"{name} is about confidence, and none is asked for.\n"
                    "Add --confidence 0.95, or leave it out."
                )
        return
    if not 0.0 < options.confidence < 1.0:
        raise UsageError(
            f"--confidence must lie between 0 and 1, not {options.confidence:g}.\n"
            "Example: --confidence 0.95"
        )
    if not options.rho_min:
        raise UsageError(
            "--confidence raises floors, and none is given.\nExample: --rho-min 0.85 --confidence "
            f"{options.confidence:g}"
        )


def _check_target(options: FitOptions) -> None:
    given = {
        "--rho-min": options.rho_min or None,
        "--budget": options.budget,
        "--max-vif": options.max_vif,
        "--max-correlation": options.max_correlation,
    }
    named = [option for option, value in given.items() if value is not None]
    if len(named) > 1:
        raise UsageError(
            f"{named[0]} and {named[1]} exclude each other.\nWith a budget or a limit, the common "
            "fidelity is what is maximised: give one of them."
        )
    if named and named[0] != "--rho-min" and options.support is not None:
        raise UsageError(
            f"--support goes with floors (--rho-min), not with {named[0]}.\nLeave one out."
        )


def _frame(values: Any, names: Sequence[str]) -> pd.DataFrame:
    import pandas as pd

    return pd.DataFrame(values, columns=list(names))


def _measured(
    stream: BinaryIO | None, options: FitOptions, loaded: Loaded, estimator: Any, X: Any
) -> Measured:
    """Write the outputs where they are asked for, and measure them."""
    n_given = loaded.content.n_rows
    measurement = Measurement(loaded.names, estimator.result_.names)
    if stream is not None and options.output is not None:
        write(
            stream,
            options.output,
            loaded,
            estimator,
            measurement,
            layout=options.layout,
            escape_formulas=options.escape_formulas,
        )
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


def _written_as(options: FitOptions, result: Any) -> str:
    """Which units the outputs have and what they are called, where they are written."""
    if options.output is None:
        return ""
    said = f"The outputs are {words.units(result, options.output_scale)}"
    unit = options.output_scale == "unit"
    said += "; --output-scale original gives them the units of their sources." if unit else "."
    if options.layout.keep_sources:
        said += f" Each stands beside its source, as NAME{options.layout.ending}."
    elif options.layout.suffix:
        said += f" Each is called NAME{options.layout.ending}."
    return said


def _check_report(report: Path | None) -> None:
    if report is not None and report.suffix.lower() not in (".html", ".htm"):
        raise UsageError(
            f"{report}: the report is written as HTML, so its name must end in .html.\n"
            "For PDF, open the page in a browser and print it to a file."
        )


def _write_report(
    outputs: Outputs, options: FitOptions, answer: Answer, X: Any, known: dict[str, Any]
) -> None:
    if options.report is not None:
        outputs.write_text(options.report, _report(options, answer, X, known))


def _report(options: FitOptions, answer: Answer, X: Any, known: dict[str, Any]) -> str:
    from skcoral import report

    loaded = answer.loaded
    dropped = dropped_sentence(loaded.table, answer.dropped)
    notes = [note for note in answer.notes if note != dropped]  # told at the top
    rows = X
    if loaded.matrix is not None:
        rows = None
    elif X is None or len(X) > HOLDOUT_ROWS:
        rows = None
        notes.append("The table is large: no hold-out table was made.")
    elif len(X) < 4 * len(loaded.names):
        rows = None
        notes.append("No hold-out table: it needs four or more rows per variable.")
    with console.progress("Making the report"):
        facts = report.gather(
            answer.estimator,
            X=rows,
            known=known,
            measured=answer.measured,
            title=f"Decorrelation of {Path(loaded.table.label).stem}",
            file=Path(loaded.table.label).name,
            dropped=dropped,
            command=options.command,
            notes=notes,
        )
        return report.render(facts, interactive=options.interactive)
