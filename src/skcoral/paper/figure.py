"""The paper's Figure 1 for three variables of the Wine data."""

from __future__ import annotations

import numpy as np

from skcoral.api import decorrelate
from skcoral.datasets import load_wine
from skcoral.show.pictures.geometry import GeometryDisplay

#: The three variables of Wine that bind its threshold the most by the paper's subset bound.
WINE_TRIPLE = ("total_phenols", "flavanoids", "od280/od315_of_diluted_wines")


def wine_geometry(rho_min: float = 0.9) -> GeometryDisplay:
    """Compute Figure 1 for the three Wine variables of the paper's strongest subset bound.

    Examples
    --------
    >>> from skcoral.paper import wine_geometry
    >>> wine_geometry(0.9).names
    ('total_phenols', 'flavanoids', 'od280/od315_of_diluted_wines')
    """
    wine = load_wine()
    chosen = [wine.names.index(name) for name in WINE_TRIPLE]
    R = wine.correlation[np.ix_(chosen, chosen)]
    return GeometryDisplay(R, decorrelate(R, rho_min).T, rho_min, names=WINE_TRIPLE)
