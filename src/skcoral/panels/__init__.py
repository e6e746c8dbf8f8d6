"""Panels: rolling and expanding windows, groups, and effective bets of portfolios.

Each row is transformed by the model of its own window or group, and every window is solved and
certified like a table of its own.
"""

from skcoral.baselines import minimum_torsion
from skcoral.panels.bets import Bets, effective_bets
from skcoral.panels.results import Panel
from skcoral.panels.rolling import grouped, rolling

__all__ = ["Bets", "Panel", "effective_bets", "grouped", "minimum_torsion", "rolling"]
