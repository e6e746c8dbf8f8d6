"""Names of versions before 1.0 and what to write instead: one table, which version 2.0 removes."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import NoReturn, ParamSpec, TypeVar

from skcoral.exceptions import RenamedError

P = ParamSpec("P")
T = TypeVar("T")

_RANKS = "put sklearn.preprocessing.QuantileTransformer in front, as in make_pipeline(…, CORAL())."
_IMPUTER = "put an imputer of sklearn.impute in front, or leave incomplete rows out."
_RANK = (
    "leave it out; all directions count but those of rounding (1e-12 of the largest eigenvalue)."
)

_WDI = "examples/world_bank.py fetches the table with the package wbgapi; pandas reads files."
_SHRUNK = (
    "write covariance='LedoitWolf' (or 'OAS', or ShrunkCovariance(shrinkage=0.1) of "
    "sklearn.covariance for a given intensity)."
)
_CONFIDENT = (
    "raise the floors first, with skcoral.stability.confident_floors(estimator, X, …), and fit "
    "CORAL(rho_min=….floors)."
)
_STEPS = "leave it out; tol says how accurate the answer is to be."

#: Parameters that a class or function no longer takes, by its name.
PARAMETERS: dict[str, dict[str, str]] = {
    "CORAL": {
        "margins": _RANKS,
        "block_length": _CONFIDENT,
        "halflife": "give fit the weights, sample_weight=0.5 ** (age / halflife).",
        "max_iter": _STEPS,
        "missing": _IMPUTER,
        "rank_tol": _RANK,
        "shrinkage": _SHRUNK,
        "simultaneous": _CONFIDENT,
        "weight_kind": "weights compare rows (numpy.cov's aweights); repeat rows that occur twice.",
    },
    "confident_floors": {"rho_min": "the estimator has it: confident_floors(CORAL(rho_min=…), X)."},
    "threshold": {"max_iter": _STEPS, "rank_tol": _RANK},
    "decorrelate": {"rank_tol": _RANK},
    "maximize_fidelity": {"max_iter": _STEPS, "rank_tol": _RANK},
    "frontier": {"rank_tol": _RANK},
    "render": {"interactive": "leave it out; the app has interactive charts."},
    "reproduce": {"protocol": "leave it out; python benchmarks/protocol.py compares with it."},
    "rolling": {"brief": "leave it out; all windows are solved with the same effort."},
    "grouped": {"brief": "leave it out; all groups are solved with the same effort."},
}
#: Options that the command no longer takes.
OPTIONS: dict[str, str] = {
    "--interactive": "leave it out; coral app has interactive charts.",
    "--brief": "leave it out; all windows are solved with the same effort.",
    "--rank-tol": _RANK,
    "--missing": "rows with missing values are left out; fill them before to keep them.",
    "--shrinkage": "write --covariance LedoitWolf, or another estimator of sklearn.covariance.",
    "--weight-kind": "weights compare rows; repeat rows that occur twice.",
    "--block-length": "use skcoral.stability.confident_floors(…, block_length=…) in Python.",
    "--escape-formulas": "every cell is written as it was read; import such columns as text.",
    "--limit": "set CORAL_MAX_NAME=NUMBER in the environment.",
    "--suffix": "write --keep-sources, which calls the outputs NAME_d.",
    "--margins": "write the ranks of the columns to a file before, or use a pipeline in Python.",
}
#: Modules, functions and classes that are gone, by their full name.
NAMES: dict[str, str] = {
    "skcoral.margins": _RANKS,
    **{
        f"skcoral.{old}": f"it is skcoral.{new} now."
        for old, new in {
            "correlation": "data.correlation",
            "limits": "core.limits",
            "measured": "data.effects",
            "measures": "core.measures",
            "moments": "data.moments",
            "plotting": "show.pictures",
            "report": "show.report",
            "results": "core.results",
            "support": "solvers.support",
        }.items()
    },
    **dict.fromkeys(
        (f"skcoral.tables.{name}" for name in ("TableFile", "from_csv", "from_parquet")),
        "table = open_table(path) reads files and folders of any size; CORAL().fit(table.frames()) "
        "and transform_table(table, estimator, target) take it.",
    ),
    "skcoral.datasets.fetch_wdi": _WDI,
    "skcoral.datasets.load_wdi": _WDI,
    "skcoral.solvers.support.certified_bound": (
        "skcoral.certificates.check judges a result and its bound."
    ),
    "skcoral.solvers.support.support_frontier": (
        "solve the highest floor first, lower ones with warm="
    ),
    "skcoral.paper.compare_with_protocol": "python benchmarks/protocol.py compares with it.",
    "skcoral.paper.draw_interactive": "wine_geometry().plot() draws the figure with Matplotlib.",
}


def refusing_former_parameters(function: Callable[P, T]) -> Callable[P, T]:
    """Let a function refuse its former parameters with what to write instead."""
    owner = function.__qualname__.partition(".")[0]  # of a method, its class
    former = PARAMETERS.get(owner, {})

    @wraps(function)
    def checked(*args: P.args, **kwargs: P.kwargs) -> T:
        for name in former.keys() & kwargs.keys():
            raise RenamedError(f"{owner} no longer takes {name}=: {former[name]}")
        return function(*args, **kwargs)

    return checked


def refuse_name(module: str, name: str) -> NoReturn:
    """For ``__getattr__`` of a module: the error for a name that it does not have (any longer)."""
    instead = NAMES.get(f"{module}.{name}")
    if instead is None:
        raise AttributeError(f"module {module!r} has no attribute {name!r}")
    # An AttributeError would lose its message in ``from module import name``.
    raise ImportError(f"{module}.{name} is gone: {instead}", name=name)
