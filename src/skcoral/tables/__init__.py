"""Tables in and out: one reader of batches, one writer of files, one description of columns.

:mod:`skcoral.tables.dask` needs the ``dask`` extra, the readers need ``tables``.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from skcoral.tables.reading import open_table
    from skcoral.tables.table_file import TableFile, from_csv, from_parquet

__all__ = ["TableFile", "from_csv", "from_parquet", "open_table"]


def __getattr__(name: str) -> Any:
    """Import on first use: reading a table needs no estimator."""
    if name in __all__:
        home = "reading" if name == "open_table" else "table_file"
        return getattr(import_module(f"{__name__}.{home}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
