"""Many rows: files larger than memory (:func:`from_parquet`, :func:`from_csv`) and clusters.

:mod:`skcoral.scale.dask` needs the ``dask`` extra, the readers need ``tables``.
"""

from skcoral.scale import dask
from skcoral.scale.files import TableFile, from_csv, from_parquet

__all__ = ["TableFile", "dask", "from_csv", "from_parquet"]
