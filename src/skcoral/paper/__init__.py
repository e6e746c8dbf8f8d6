"""The paper's numbers as data, their reproduction, its protocol and its figure."""

from skcoral.paper.figure import wine_geometry
from skcoral.paper.numbers import TABLES, Cell, paper_numbers
from skcoral.paper.protocol import ProtocolRun, protocol_from, run_protocol
from skcoral.paper.protocol_comparison import ProtocolComparison, compare_with_protocol
from skcoral.paper.reproduction import Reproduction, Row, reproduce
from skcoral.paper.study import Study
from skcoral.paper.verdicts import VERDICTS

__all__ = [
    "TABLES",
    "VERDICTS",
    "Cell",
    "ProtocolComparison",
    "ProtocolRun",
    "Reproduction",
    "Row",
    "Study",
    "compare_with_protocol",
    "paper_numbers",
    "protocol_from",
    "reproduce",
    "run_protocol",
    "wine_geometry",
]
