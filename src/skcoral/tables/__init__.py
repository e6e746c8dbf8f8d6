"""Tables in and out: one reader of batches, one writer of files, one description of columns.

Reading and writing need the ``tables`` extra.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from skcoral.tables.reading import open_table
    from skcoral.tables.table import Table
    from skcoral.tables.transforming import transform_table

__all__ = ["Table", "open_table", "transform_table"]
_HOMES = {"Table": "table", "open_table": "reading", "transform_table": "transforming"}


def __getattr__(name: str) -> Any:
    """Import on first use: reading a table needs no estimator."""
    if name in _HOMES:
        return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
