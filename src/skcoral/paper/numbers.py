"""The numbers that the paper prints, one cell each, exactly as printed."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from functools import cache
from importlib.resources import files
from types import MappingProxyType
from typing import Any

#: The paper's tables in its order, then the figures of its text: label → title.
TITLES = {
    "rho-star": "Fidelity benchmarks and bounds under exact decorrelation",
    "dense-frontiers": "Frontiers of the three dense simulated systems",
    "real-primal": "Frontiers of the two empirical datasets",
    "dual-real": "Common fidelity under squared-correlation budgets",
    "support-frontier": "Frontier under the support restriction, p = 18",
    "support-floors": "Supported residuals without a fidelity requirement",
    "sparse-pca-ablation": "Sparse PCA at varying sparsity",
    "final-diagnostics": "Diagnostics at ρ_min = 0.99",
    "sparse-pca-app": "Sparse PCA matched to the support's density",
    "text": "Figures in the text",
    "timings": "Timings",
}
TABLES = tuple(TITLES)


@dataclass(frozen=True)
class Cell:
    """One number of the paper: where it stands, what it is, and its printed digits.

    Attributes
    ----------
    table : str
        Label of the table, or "text", or "timings".
    row, column : str
        Where in the table, or in which section of the text and what.
    printed : str
        As the paper prints it.
    quantity : str
        The recipe in `skcoral.paper.quantities` that computes it.
    args : mapping
        What the recipe needs to know: system, floor, budget and the like.

    Examples
    --------
    >>> cell = paper_numbers()[0]
    >>> cell.table, cell.printed
    ('rho-star', '...')
    """

    table: str
    row: str
    column: str
    printed: str
    quantity: str
    args: Mapping[str, Any] = field(default_factory=dict)

    @property
    def value(self) -> float | None:
        """The printed number; None where the paper prints words."""
        try:
            return float(Decimal(self.printed))
        except InvalidOperation:
            return None

    @property
    def unit(self) -> float:
        """One unit of the last printed digit; NaN where the paper prints words."""
        if self.value is None:
            return math.nan
        return float(Decimal(1).scaleb(int(Decimal(self.printed).as_tuple().exponent)))

    def has_digits_of(self, ours: float | str) -> bool:
        """Whether ``ours``, rounded as the paper rounds, is what the paper prints."""
        if self.value is None or isinstance(ours, str):
            return self.printed == ours
        # The sliver is for a printed value that is itself rounded from binary.
        return abs(ours - self.value) <= 0.5 * self.unit * (1 + 1e-9)


@cache
def paper_numbers() -> tuple[Cell, ...]:
    """Return every cell of the paper, in its order.

    Examples
    --------
    >>> from skcoral.paper import paper_numbers
    >>> cell = paper_numbers()[2]
    >>> cell.table, cell.row, cell.column, cell.printed
    ('rho-star', 'Synthetic p=6', 'CORAL', '0.9718')
    """
    entries = json.loads(files("skcoral.paper").joinpath("numbers.json").read_text("utf-8"))
    place = ("table", "row", "column", "printed", "quantity")
    return tuple(
        Cell(
            **{key: entry.pop(key) for key in place},
            args=MappingProxyType(entry),  # what is left
        )
        for entry in entries
    )
