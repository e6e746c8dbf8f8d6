"""Correlation matrices for examples: simulated ones, Wine, World Development Indicators."""

from skcoral.datasets.bundled import Dataset, NamedCorrelation, load_wine, wdi_correlation
from skcoral.datasets.simulate import make_factor_system, make_system

__all__ = [
    "Dataset",
    "NamedCorrelation",
    "load_wine",
    "make_factor_system",
    "make_system",
    "wdi_correlation",
]
