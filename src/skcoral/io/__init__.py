"""Tables in, tables out, models and moments as files that hold nothing that can run."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from skcoral.io.export import to_onnx
    from skcoral.io.models import load_model, load_moments, save_model, save_moments
    from skcoral.io.tables import open_table

__all__ = [
    "load_model",
    "load_moments",
    "open_table",
    "save_model",
    "save_moments",
    "to_onnx",
]

_HOMES = {"open_table": "tables", "to_onnx": "export"}


def __getattr__(name: str) -> Any:
    """Import on first use: reading a table needs no estimator, and the other way round."""
    if name in __all__:
        return getattr(import_module(f"{__name__}.{_HOMES.get(name, 'models')}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
