"""``coral fit`` for a file that holds a correlation or covariance matrix."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from skcoral import api
from skcoral._frames import judge
from skcoral.choosing import solve_for
from skcoral.cli import console
from skcoral.cli.loading import Loaded, naming
from skcoral.cli.option_values import floors_by_name, read_support
from skcoral.cli.run import UsageError
from skcoral.correlation import CorrelationEstimate, check_shrinkage, shrunk_matrix
from skcoral.measured import Measured, measure_matrix
from skcoral.results import Array, Decorrelation, Threshold
from skcoral.tables.matrices import NamedMatrix
from skcoral.tables.staging import Outputs
from skcoral.tables.writing import table_writer

if TYPE_CHECKING:
    from skcoral.cli.fit import FitOptions


@dataclass(frozen=True)
class MatrixModel:
    """What a fitted estimator tells, for a matrix: there are no rows to transform."""

    estimate_: CorrelationEstimate
    result_: Decorrelation
    threshold_: Threshold
    measured_: Measured
    rho_min: Any = None
    budget: float | None = None
    max_vif: float | None = None
    max_correlation: float | None = None
    support: Any = None
    margins: str = "none"
    margins_: None = None
    output_scale: str = "unit"
    n_samples_seen_: None = None

    @property
    def correlation_(self) -> Array:
        """The matrix that was solved for."""
        return self.estimate_.R

    @property
    def shrinkage_(self) -> float:
        """The intensity used."""
        return self.estimate_.shrinkage

    @property
    def feature_names_in_(self) -> tuple[str, ...]:
        """The variables."""
        return self.estimate_.names


def fit_matrix(loaded: Loaded, options: FitOptions) -> MatrixModel:
    """Solve for the matrix in a file."""
    given = loaded.matrix
    assert given is not None
    _refuse_rows(loaded, options)
    rho_min = floors_by_name(options.rho_min, loaded.names)
    support = read_support(options.support, loaded.names)
    table = _shrunk(given, options.shrinkage)
    with console.progress("Solving"), naming(loaded.table):
        asked: dict[str, Any] = {"rho_min": rho_min, "support": support}
        judged = judge(table, on_singular="solve")
        result = solve_for(judged, replace(options, **asked))
        threshold = api.threshold(judged)
    about = {"about": table.about, "is_about_rows": table.is_about_rows}
    result = replace(result, details={**result.details, **about})
    measured = measure_matrix(given.R, result.T, result.names)
    return MatrixModel(
        table,
        result,
        threshold,
        measured,
        rho_min=rho_min,
        budget=options.budget,
        max_vif=options.max_vif,
        max_correlation=options.max_correlation,
        support=support,
    )


def write_transformation(
    outputs: Outputs, path: str | None, model: MatrixModel, destination: Any
) -> str:
    """Write T, where an output is asked for; returns what the file holds, in words."""
    if path is None:
        return ""
    names = model.result_.names
    corner = "source"
    while corner in names:
        corner += "_"
    with destination(outputs, path) as stream:
        writer = table_writer(stream, [corner, *names], path=path)
        writer.write([list(model.feature_names_in_), *model.result_.T.T])
        writer.close()
    return (
        f"{path} holds the transformation T: standardised variables (rows) times T are the outputs "
        "(columns)."
    )


def _shrunk(given: NamedMatrix, shrinkage: str | None) -> CorrelationEstimate:
    R, intensity = given.R, 0.0
    if shrinkage is not None:
        if shrinkage == "auto":
            raise UsageError(
                "--shrinkage auto needs the rows, and the file holds a matrix.\n"
                "Give a number in (0, 1], such as --shrinkage 0.1."
            )
        intensity = check_shrinkage(_number(shrinkage))
    return shrunk_matrix(R, given.names, intensity, scale=given.scale)


def _number(text: str) -> Any:
    try:
        return float(text)
    except ValueError:
        return text


def _refuse_rows(loaded: Loaded, options: FitOptions) -> None:
    for option, given, usual in (
        ("--model", options.model, None),
        ("--margins", options.margins, "none"),
        ("--confidence", options.confidence, None),
        ("--groups", options.groups, None),
        ("--block-length", options.block_length, None),
        ("--output-scale", options.output_scale, "unit"),
        ("--keep-sources", options.layout.keep_sources, False),
        ("--suffix", options.layout.suffix, ""),
    ):
        if given != usual:
            raise UsageError(
                f"{loaded.table.label}: {option} needs rows, and the file holds a matrix.\n"
                "Leave it out, or say --no-matrix if these are rows of data."
            )
