"""One self-contained HTML page about a fitted transformation: no network and no script.

:func:`gather` collects the numbers and :func:`render` fills the templates with them; the sentences
are those of :mod:`skcoral.show.sentences`.
"""

from skcoral.show.report.facts import ReportFacts, gather
from skcoral.show.report.page import render

__all__ = ["ReportFacts", "gather", "render"]
