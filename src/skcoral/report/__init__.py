"""One self-contained HTML page about a fitted transformation: no network, no script unless asked.

:func:`gather` collects the numbers, :func:`render` turns them into a page, and :mod:`.words` says
in sentences what they mean.
"""

from skcoral.report.facts import ReportFacts, gather
from skcoral.report.page import render

__all__ = ["ReportFacts", "gather", "render"]
