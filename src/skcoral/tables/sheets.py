"""Further sheets of a workbook: fidelity, correlations, and what outputs are made of."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from skcoral._lowrank import LowRankTransform
from skcoral.measured import Measured
from skcoral.results import Decorrelation

#: Title, header and columns.
Sheet = tuple[str, list[str], list[Any]]
_MOST_COLUMNS = 500


def explaining_sheets(
    result: Decorrelation, measured: Measured, sources: Sequence[str]
) -> list[Sheet]:
    """The sheets that go with a table of outputs: of a result, measured on the rows written."""
    names = list(result.names)
    columns: dict[str, Any] = {
        "variable": names,
        "fidelity": measured.fidelity,
        "floor": result.rho_min,
        "price": result.prices,
        "largest residual": measured.residual,
    }
    if len(sources) == len(names):
        columns |= {"VIF before": measured.vif_before, "VIF after": measured.vif}
    sheets: list[Sheet] = [("fidelity", list(columns), list(columns.values()))]
    if max(len(names), len(sources)) > _MOST_COLUMNS:
        return sheets
    for title, matrix, rows in (
        ("correlations before", measured.before, list(sources)),
        ("correlations after", measured.after, names),
    ):
        if matrix is not None:
            sheets.append((title, ["variable", *rows], [rows, *matrix.T]))
    T = result.T.toarray() if isinstance(result.T, LowRankTransform) else result.T
    return [*sheets, ("made of", ["standardised source", *names], [list(sources), *T.T])]
