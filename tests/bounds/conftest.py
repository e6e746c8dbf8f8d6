"""The arithmetics, and honest results with their dual points."""

from certificates.conftest import arithmetic, many_bits

__all__ = ["arithmetic", "many_bits"]
