"""The pictures of the main view: those of :mod:`skcoral.plotting.interactive`."""

from skcoral.plotting.interactive import fidelity, frontier, heat_map, label, new_rows

__all__ = ["fidelity", "frontier", "heat_map", "label", "new_rows"]
