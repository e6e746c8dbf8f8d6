"""Correlation systems to try things on: simulated ones, Wine, World Development Indicators."""

from skcoral.datasets.bundled import Dataset, NamedCorrelation, load_wine, wdi_correlation
from skcoral.datasets.simulate import (
    make_ar_system,
    make_block_system,
    make_factor_system,
    make_near_singular_system,
    make_spectrum_system,
    make_system,
    make_toeplitz_system,
)

__all__ = [
    "Dataset",
    "NamedCorrelation",
    "load_wine",
    "make_ar_system",
    "make_block_system",
    "make_factor_system",
    "make_near_singular_system",
    "make_spectrum_system",
    "make_system",
    "make_toeplitz_system",
    "wdi_correlation",
]
