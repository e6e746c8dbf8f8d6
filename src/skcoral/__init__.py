"""Decorrelate variables and keep what each of them means.

CORAL, Constrained Oblique Rotation with Anchored Loadings: every output keeps at least a declared
correlation with its own source, and the residual correlation is the least possible under that
promise, with a certificate that anyone can re-check.
"""

from typing import TYPE_CHECKING, Any

from skcoral._version import __version__

if TYPE_CHECKING:
    from skcoral.api import decorrelate, frontier, maximize_fidelity, threshold
    from skcoral.estimator import CORAL

__all__ = [
    "CORAL",
    "__version__",
    "decorrelate",
    "frontier",
    "maximize_fidelity",
    "threshold",
]


def __getattr__(name: str) -> Any:
    """Import on first use, so that `coral --help` and `import skcoral` stay light."""
    if name == "CORAL":
        from skcoral.estimator import CORAL

        return CORAL
    if name in __all__:
        from skcoral import api

        return getattr(api, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
