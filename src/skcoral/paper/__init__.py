"""The paper's numbers as data, their reproduction, and its protocol."""

from skcoral.paper.numbers import TABLES, Cell, paper_numbers
from skcoral.paper.protocol import ProtocolRun, protocol_from, run_protocol
from skcoral.paper.reproduction import Reproduction, Row, reproduce
from skcoral.paper.study import Study
from skcoral.paper.verdicts import VERDICTS

__all__ = [
    "TABLES",
    "VERDICTS",
    "Cell",
    "ProtocolRun",
    "Reproduction",
    "Row",
    "Study",
    "paper_numbers",
    "protocol_from",
    "reproduce",
    "run_protocol",
]
