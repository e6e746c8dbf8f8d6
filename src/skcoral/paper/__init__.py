"""The paper's numbers as data, their reproduction, its protocol and its figure."""

from skcoral.paper.baseline import ProtocolComparison, compare_with_protocol
from skcoral.paper.figure import draw_interactive, draw_static, wine_geometry
from skcoral.paper.numbers import TABLES, Cell, paper_numbers
from skcoral.paper.protocol import ProtocolRun, protocol_from, protocol_primal, protocol_threshold
from skcoral.paper.protocol_support import protocol_support
from skcoral.paper.reproduction import Reproduction, Row, reproduce
from skcoral.paper.verdicts import VERDICTS

__all__ = [
    "TABLES",
    "VERDICTS",
    "Cell",
    "ProtocolComparison",
    "ProtocolRun",
    "Reproduction",
    "Row",
    "compare_with_protocol",
    "draw_interactive",
    "draw_static",
    "paper_numbers",
    "protocol_from",
    "protocol_primal",
    "protocol_support",
    "protocol_threshold",
    "reproduce",
    "wine_geometry",
]
