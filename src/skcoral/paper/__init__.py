"""The paper's numbers as data, and their reproduction."""

from skcoral.paper.numbers import TABLES, Cell, paper_numbers
from skcoral.paper.reproduction import Reproduction, Row, reproduce
from skcoral.paper.verdicts import VERDICTS

__all__ = ["TABLES", "VERDICTS", "Cell", "Reproduction", "Row", "paper_numbers", "reproduce"]
