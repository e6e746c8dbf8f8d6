"""``coral fit`` and ``coral transform``: from a table to a decorrelated one."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np

from skcoral import certificates
from skcoral.cli import console
from skcoral.cli.asking import floors_by_name, read_support
from skcoral.cli.loading import (
    Loaded,
    TableOptions,
    dropped_sentence,
    load,
    look_at,
    naming,
    open_file,
    require_rows,
)
from skcoral.cli.running import NOT_CERTIFIED, OK, NotCertifiedError, UsageError
from skcoral.correlation import check_shrinkage
from skcoral.exceptions import InvalidTableError
from skcoral.io.columns import choose_columns
from skcoral.io.tables import Table
from skcoral.io.transforming import write_transformed
from skcoral.io.writing import Outputs, output_format
from skcoral.report import words
from skcoral.results import Array

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
    criterion: str = "squared"
    support: str | None = None
    shrinkage: str | None = None
    correlation: str = "pearson"
    output_scale: str = "unit"
    output: str | None = None
    model: Path | None = None
    report: Path | None = None
    interactive: bool = False
    force: bool = False
    command: str = ""


def fit(options: FitOptions, *, as_json: bool) -> int:
    """Fit the table and write what was asked for, all files together or none."""
    _check_output(options.output, as_json)
    if options.rho_min and options.budget is not None:
        raise UsageError(
            "--rho-min and --budget exclude each other.\nWith a budget, the common fidelity is "
            "what is maximised: give one of the two."
        )
    if options.interactive and options.report is None:
        raise UsageError(
            "--interactive is about the report, and none is asked for.\n"
            "Add --report FILE, or leave it out."
        )
    with Outputs(force=options.force) as outputs:
        for path in (options.output, options.model, options.report):
            if path is not None and str(path) != "-":
                outputs.reserve(path)
        loaded = load(options.table)
        estimator, X, dropped = _fitted(loaded, options)
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
            from skcoral.io.models import save_model

            save_model(estimator, outputs.staged(options.model))
        if options.report is not None:
            outputs.write_text(options.report, _report(options, loaded, estimator, X, dropped))
        if options.output is not None:
            with _destination(outputs, options.output) as stream:
                _write(stream, options.output, loaded, estimator)
        outputs.commit()
    written = [str(p) for p in (options.output, options.model, options.report) if p is not None]
    if as_json:
        console.machine(_answer(loaded, estimator, dropped, written))
    else:
        _tell(loaded, estimator, dropped, written, stderr=options.output == "-")
    return OK if words.is_certified(result) else NOT_CERTIFIED


def transform(
    options: TableOptions, model: Path, output: str, *, force: bool, as_json: bool
) -> int:
    """Apply a model to new rows."""
    _check_output(output, as_json)
    from skcoral.io.models import load_model

    if not model.is_file():
        raise UsageError(f"{model}: there is no such model file.\nMake one with: coral fit --model")
    estimator = load_model(model)
    with Outputs(force=force) as outputs:
        if output != "-":
            outputs.reserve(output)
        loaded = _for_model(open_file(options), estimator)
        with _destination(outputs, output) as stream:
            n_rows, dropped = _write(stream, output, loaded, estimator)
        outputs.commit()
    if as_json:
        console.machine(
            {
                "file": loaded.table.label,
                "model": str(model),
                "rows": n_rows,
                "dropped_rows": dropped,
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
        if dropped:
            console.say(dropped_sentence(loaded.table, dropped), stderr=to_stderr)
        if not to_stderr:
            console.say(f"Written: {output}")
    return OK


def _fitted(loaded: Loaded, options: FitOptions) -> tuple[Any, Any, list[int]]:
    """The fitted estimator, the rows if they are held in memory, and the rows left out."""
    from skcoral.estimator import CORAL

    shrinkage: str | float | None = options.shrinkage
    if shrinkage is not None and shrinkage != "auto":
        try:
            shrinkage = check_shrinkage(float(shrinkage))
        except ValueError:
            raise UsageError(
                f"--shrinkage must be 'auto' or a number in (0, 1], not {options.shrinkage!r}.\n"
                "Example: --shrinkage auto"
            ) from None
    estimator = CORAL(
        floors_by_name(options.rho_min, loaded.names),
        budget=options.budget,
        criterion=options.criterion,
        support=read_support(options.support, loaded),
        shrinkage=shrinkage,
        correlation=options.correlation,
        output_scale=options.output_scale,
    )
    needs_rows = shrinkage == "auto" or options.correlation != "pearson"
    dropped: list[int] = []
    if needs_rows or loaded.content.n_rows * len(loaded.names) <= IN_MEMORY:
        values: list[Array] = []
        weights: list[Array] = []
        with console.progress(f"Reading {loaded.table.label}") as tell:
            for part in loaded.rows(lambda batch: tell(batch.fraction)):
                # The numbers only: the cells that they were made of take ten times the room.
                values.append(part.values)
                if part.weights is not None:
                    weights.append(part.weights)
                dropped.extend(part.dropped)
        X = _frame(np.concatenate(values), loaded.names)
        del values
        require_rows(loaded, len(X))
        with console.progress("Solving"), naming(loaded.table):
            estimator.fit(X, sample_weight=np.concatenate(weights) if weights else None)
        return estimator, X, dropped
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
    return estimator, None, dropped


def _frame(values: Any, names: Sequence[str]) -> pd.DataFrame:
    import pandas as pd

    return pd.DataFrame(values, columns=list(names))


def _for_model(table: Table, estimator: Any) -> Loaded:
    """The columns of a table that a model was fitted on, by name."""
    content = look_at(table)
    fitted = getattr(estimator, "feature_names_in_", None)
    if fitted is None:
        names = choose_columns(table, content)
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


def _write(stream: BinaryIO, path: str, loaded: Loaded, estimator: Any) -> tuple[int, list[int]]:
    with console.progress("Writing") as tell:
        return write_transformed(
            stream,
            path,
            loaded.table,
            loaded.names,
            estimator,
            on_batch=lambda batch: tell(batch.fraction),
        )


def _check_output(output: str | None, as_json: bool) -> None:
    if output == "-" and as_json:
        raise UsageError(
            "--json and '-o -' both want standard output.\nWrite the table to a file instead."
        )
    if output is not None and output != "-":
        output_format(output)


@contextlib.contextmanager
def _destination(outputs: Outputs, path: str) -> Iterator[BinaryIO]:
    if path != "-":
        with outputs.open(path) as stream:
            yield stream
        return
    yield sys.stdout.buffer
    sys.stdout.buffer.flush()


def _report(options: FitOptions, loaded: Loaded, estimator: Any, X: Any, dropped: list[int]) -> str:
    from skcoral import report

    notes = [dropped_sentence(loaded.table, dropped)] if dropped else []
    if loaded.passed_through:
        notes.append(loaded.passed_through_sentence)
    rows = X
    if X is None or len(X) > HOLDOUT_ROWS:
        rows = None
        notes.append("The table is large: no hold-out table was made.")
    elif loaded.weights is not None or len(X) < 4 * len(loaded.names):
        rows = None
        notes.append("No hold-out table: it needs unweighted rows, four or more per variable.")
    with console.progress("Making the report"):
        facts = report.gather(
            estimator,
            X=rows,
            title=Path(loaded.table.label).name,
            command=options.command,
            notes=notes,
        )
        return report.render(facts, interactive=options.interactive)


def _answer(
    loaded: Loaded, estimator: Any, dropped: list[int], written: list[str]
) -> dict[str, Any]:
    result, th = estimator.result_, estimator.threshold_

    def by_name(values: Any) -> dict[str, float]:
        return dict(zip(result.names, np.asarray(values).tolist(), strict=True))

    return {
        "file": loaded.table.label,
        "rows": int(estimator.n_samples_seen_),
        "dropped_rows": dropped,
        "passed_through": list(loaded.passed_through),
        "constant": list(loaded.constant),
        "guarantee": words.guarantee(result),
        "status": result.status,
        "certified": words.is_certified(result),
        "criterion": result.criterion,
        "objective": result.objective,
        "lower_bound": result.lower_bound,
        "gap": result.gap,
        "min_fidelity": result.min_fidelity,
        "mean_fidelity": result.mean_fidelity,
        "threshold": {"value": th.value, "lower": th.lower, "upper": th.upper},
        "shrinkage": float(estimator.shrinkage_),
        "fidelity": by_name(result.fidelity),
        "rho_min": by_name(result.rho_min),
        "prices": by_name(result.prices),
        "written": written,
    }


def _tell(
    loaded: Loaded, estimator: Any, dropped: list[int], written: list[str], *, stderr: bool
) -> None:
    result = estimator.result_
    certified = words.is_certified(result)
    console.say(
        console.bold(words.guarantee(result), "green" if certified else "yellow"), stderr=stderr
    )
    console.say(f"{words.certificate(result).capitalize()}.", stderr=stderr)
    console.say(words.threshold(estimator.threshold_), stderr=stderr)
    console.say("", stderr=stderr)
    residual = np.abs(result.correlation - np.diag(np.diag(result.correlation))).max(axis=1)
    console.table(
        ("variable", "fidelity", "floor", "price", "residual"),
        [
            (
                name,
                console.number(result.fidelity[j]),
                console.number(result.rho_min[j]),
                console.short(result.prices[j]),
                console.number(residual[j]),
            )
            for j, name in enumerate(result.names)
        ],
        stderr=stderr,
    )
    console.say("", stderr=stderr)
    console.say(f"{estimator.n_samples_seen_} rows fitted.", stderr=stderr)
    if loaded.passed_through:
        console.say(loaded.passed_through_sentence, stderr=stderr)
    if dropped:
        console.say(dropped_sentence(loaded.table, dropped), stderr=stderr)
    if written and written != ["-"]:
        console.say(f"Written: {', '.join(p for p in written if p != '-')}", stderr=stderr)
