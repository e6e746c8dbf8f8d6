"""Tables in and out: one reader of batches, one writer of files, one description of columns.

Reading and writing need the ``tables`` extra.
"""

from skcoral.tables.reading import open_table
from skcoral.tables.table import Table

__all__ = ["Table", "open_table"]
