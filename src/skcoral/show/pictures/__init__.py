"""Pictures of results: each display holds numbers, and draws them when asked.

Every display has ``from_result`` and ``from_estimator`` to gather its numbers, keeps them as
attributes, and draws them with ``plot(ax=None)``, which returns the display. Matplotlib is imported
when something is drawn; no global setting of it is changed.
"""

from skcoral.show.pictures.fidelity import FidelityDisplay, HoldoutDisplay, WindowsDisplay
from skcoral.show.pictures.frontier import FrontierDisplay
from skcoral.show.pictures.matrices import CorrelationDisplay, TransformDisplay

__all__ = [
    "CorrelationDisplay",
    "FidelityDisplay",
    "FrontierDisplay",
    "HoldoutDisplay",
    "TransformDisplay",
    "WindowsDisplay",
]
