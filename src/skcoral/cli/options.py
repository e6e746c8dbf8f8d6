"""Options that several commands share: those of the table, and how to ask and write."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import Annotated, Any, Literal, get_type_hints

import typer


@dataclass(frozen=True)
class TableOptions:
    """Which table, and how to read it.

    ``matrix`` says whether the file holds a correlation or covariance matrix; None recognises it.
    ``groups`` is a column of labels, and so no variable. ``covariance`` and ``missing`` say how
    correlations are estimated from the rows.
    """

    file: str
    columns: Sequence[str] = ()
    exclude: Sequence[str] = ()
    include: Sequence[str] = ()
    weights: str | None = None
    weight_kind: str = "auto"
    matrix: bool | None = None
    separator: str | None = None
    decimal: str | None = None
    encoding: str | None = None
    sheet: str | None = None
    na: Sequence[str] = ()
    groups: str | None = None
    covariance: str | None = None
    missing: str = "drop"

    def arguments(self) -> list[str]:
        """The file and the options that differ from their defaults, as they are typed.

        Examples
        --------
        >>> TableOptions("a.csv", exclude=("id",), decimal=",").arguments()
        ['a.csv', '--exclude', 'id', '--decimal', ',']
        """
        told = [self.file]
        for option in fields(self)[1:]:
            value = getattr(self, option.name)
            if value == option.default:
                continue
            name = f"--{option.name.replace('_', '-')}"
            if isinstance(value, bool):
                told.append("--matrix" if value else "--no-matrix")
            elif isinstance(value, str):
                told += [name, "tab" if value == "\t" else value]
            else:
                told += [part for item in value for part in (name, item)]
        return told


Json = Annotated[bool, typer.Option("--json", help="Answer as JSON, for machines.")]
Force = Annotated[bool, typer.Option("--force", help="Replace output files that exist.")]
RhoMin = Annotated[
    list[str] | None,
    typer.Option(
        "--rho-min",
        metavar="FLOOR",
        help="Fidelity that every output keeps, or name=FLOOR for one; repeatable [exact, at ρ★].",
    ),
]
EscapeFormulas = Annotated[
    bool,
    typer.Option("--escape-formulas", help="CSV: apostrophe before text that begins a formula."),
]
Support = Annotated[
    str | None,
    typer.Option(
        metavar="FILE|NUMBER",
        help="Allowed coefficients: a file of 0 and 1, or where |correlation| > NUMBER.",
    ),
]
Shrinkage = Annotated[
    str | None,
    typer.Option(metavar="auto|NUMBER", help="Shrink the correlations towards the identity."),
]
KeepSources = Annotated[
    bool, typer.Option("--keep-sources", help="Write each output beside its source, as NAME_d.")
]
Suffix = Annotated[
    str, typer.Option(metavar="TEXT", help="Add to the names of the outputs, such as _d.")
]
MaxVif = Annotated[
    float | None,
    typer.Option(help="Largest VIF allowed in the outputs: the highest floor that reaches it."),
]
MaxCorrelation = Annotated[
    float | None,
    typer.Option(help="Largest |correlation| allowed in the outputs: the highest floor for it."),
]
CriterionOption = Annotated[
    Literal["squared", "worst", "absolute"],
    typer.Option(help="How residual correlation is measured."),
]

Confidence = Annotated[
    float | None,
    typer.Option(
        metavar="LEVEL", help="Raise the floors so that the population keeps them, such as 0.95."
    ),
]
Groups = Annotated[
    str | None,
    typer.Option(metavar="COLUMN", help="Clusters: rows of one count as one observation."),
]
BlockLength = Annotated[
    str | None,
    typer.Option(metavar="N|auto", help="Rows in time: N neighbours count as one observation."),
]
_FILE = Annotated[str, typer.Argument(metavar="FILE", help="The table; '-' is standard input.")]
_COLUMNS: dict[str, tuple[Any, Any]] = {
    "columns": (
        Annotated[
            list[str] | None,
            typer.Option(
                "--columns", metavar="NAMES", help="Variables, by comma or repeated [all numeric]."
            ),
        ],
        None,
    ),
    "exclude": (
        Annotated[
            list[str] | None,
            typer.Option("--exclude", metavar="NAMES", help="Columns that are not variables."),
        ],
        None,
    ),
    "include": (
        Annotated[
            list[str] | None,
            typer.Option(
                "--include", metavar="NAMES", help="Variables although they look like ids or years."
            ),
        ],
        None,
    ),
    "weights": (
        Annotated[
            str | None, typer.Option(metavar="NAME", help="Column of row weights (survey weights).")
        ],
        None,
    ),
    "weight_kind": (
        Annotated[
            Literal["auto", "frequency", "reliability"],
            typer.Option(help="Weights count equal rows, or compare rows [whole numbers count]."),
        ],
        "auto",
    ),
    "matrix": (
        Annotated[
            bool | None,
            typer.Option(
                "--matrix/--no-matrix",
                help="The file holds a correlation or covariance matrix [recognised].",
            ),
        ],
        None,
    ),
}
_ESTIMATING: dict[str, tuple[Any, Any]] = {
    "covariance": (
        Annotated[
            str | None,
            typer.Option(
                metavar="NAME", help="Correlations by an estimator of scikit-learn: LedoitWolf, …"
            ),
        ],
        None,
    ),
    "missing": (
        Annotated[
            Literal["drop", "em"],
            typer.Option(help="Leave out incomplete rows, or estimate in spite of them (EM)."),
        ],
        "drop",
    ),
}
_READING: dict[str, tuple[Any, Any]] = {
    "separator": (
        Annotated[
            str | None,
            typer.Option(
                metavar="CHAR", help="Between the cells of a text file (';', tab, …) [recognised]."
            ),
        ],
        None,
    ),
    "decimal": (
        Annotated[
            str | None,
            typer.Option(metavar="CHAR", help="Decimal mark [recognised]."),
        ],
        None,
    ),
    "encoding": (
        Annotated[
            str | None,
            typer.Option(metavar="NAME", help="Encoding of a text file [recognised]."),
        ],
        None,
    ),
    "sheet": (
        Annotated[
            str | None,
            typer.Option(metavar="NAME", help="Sheet of an Excel file [first with a table]."),
        ],
        None,
    ),
    "na": (
        Annotated[
            list[str] | None,
            typer.Option(
                "--na", metavar="MARK", help="One more mark for a missing value, such as -999."
            ),
        ],
        None,
    ),
}


def takes_table(function: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the table's options; the function gets them together as ``table``."""
    return _with_options(function, _COLUMNS | _ESTIMATING | _READING)


def takes_windows(function: Callable[..., Any]) -> Callable[..., Any]:
    """The same without the choice of how correlations are estimated."""
    return _with_options(function, _COLUMNS | _READING)


def takes_rows(function: Callable[..., Any]) -> Callable[..., Any]:
    """The same without the choice of columns."""
    return _with_options(function, _READING)


def _with_options(
    function: Callable[..., Any], options: dict[str, tuple[Any, Any]]
) -> Callable[..., Any]:
    hints = get_type_hints(function, include_extras=True)
    own = [p for p in inspect.signature(function).parameters.values() if p.name != "table"]
    keyword = inspect.Parameter.KEYWORD_ONLY
    first = inspect.Parameter("file", keyword, annotation=_FILE)
    shared = [
        inspect.Parameter(name, keyword, default=default, annotation=kind)
        for name, (kind, default) in options.items()
    ]
    last = [p for p in own if p.name in ("force", "json")]
    front = [p for p in own if p not in last]
    parameters = [
        first,
        *(p.replace(kind=keyword, annotation=hints[p.name]) for p in front),
        *shared,
        *(p.replace(kind=keyword, annotation=hints[p.name]) for p in last),
    ]

    def command(**given: Any) -> Any:
        chosen: dict[str, Any] = {name: given.pop(name) for name in ("file", *options)}
        for name in _MANY:
            chosen[name] = chosen.get(name) or ()
        table = TableOptions(**chosen)
        return function(table=table, **given)

    command.__name__, command.__doc__ = function.__name__, function.__doc__
    command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    command.__annotations__ = {p.name: p.annotation for p in parameters}
    return command


_MANY = ("columns", "exclude", "include", "na")
