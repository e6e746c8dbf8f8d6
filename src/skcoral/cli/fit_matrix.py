"""``coral fit`` for a file that holds a correlation or covariance matrix."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, BinaryIO

from skcoral import api
from skcoral._frames import judge
from skcoral.choosing import solve_for
from skcoral.cli import console
from skcoral.cli.correlations import estimate_matrix
from skcoral.cli.loading import Loaded, naming, refuse_row_options
from skcoral.cli.options import FitOptions
from skcoral.estimator.attributes import with_details
from skcoral.measured import measure_matrix
from skcoral.moments import Moments
from skcoral.tables.writing import write_matrix


def fit_matrix(loaded: Loaded, options: FitOptions, settings: dict[str, Any]) -> Any:
    """Solve for the matrix in a file; returns a fitted CORAL that has seen no rows."""
    given = loaded.matrix
    assert given is not None
    refuse_row_options(
        loaded.table.label,
        {
            "--model": options.model is not None,
            "--margins": options.margins != "none",
            "--confidence": options.confidence is not None,
            "--output-scale": options.output_scale != "unit",
            "--keep-sources": options.keep_sources,
            "--suffix": bool(options.suffix),
        },
    )
    table = estimate_matrix(given, settings["shrinkage"])
    estimator = loaded.model(**settings)
    with console.progress("Solving"), naming(loaded.table):
        judged = judge(table, on_singular="solve")
        result = solve_for(judged, estimator)
        threshold = api.threshold(judged)
    result = with_details(result, about=table.about, is_about_rows=table.is_about_rows)
    result = replace(result, on_rows=measure_matrix(given.R, result.T, result.names))
    return estimator._restore(
        estimate=table,
        result=result,
        threshold=threshold,
        moments=Moments(given.names),
        has_names=True,
    )


def write_transformation(stream: BinaryIO | None, path: str | None, estimator: Any) -> str:
    """Write T, where an output is asked for; returns what the file holds, in words."""
    if stream is None or path is None:
        return ""
    result = estimator.result_
    write_matrix(stream, path, estimator.estimate_.names, result.names, result.T)
    return (
        f"{path} holds the transformation T: standardised variables (rows) times T are the outputs "
        "(columns)."
    )
