"""``coral reproduce``: the tables of the paper, recomputed."""

from __future__ import annotations

import itertools
from argparse import Namespace
from operator import attrgetter

from skcoral.cli import console
from skcoral.cli.outputs import all_or_none, check_ending
from skcoral.cli.run import NOT_CERTIFIED, OK
from skcoral.core.validation import whole_number


def reproduce(options: Namespace) -> int:
    """Recompute the tables of the paper and show both numbers side by side."""
    from skcoral import paper

    table, output = options.table, options.output
    number = whole_number(table)  # tables have labels, and numbers in the order of the paper
    if number is not None and 1 <= number <= len(paper.TABLES):
        table = paper.TABLES[number - 1]
    check_ending(output, (".md",), "the comparison")
    with all_or_none(options.force, output) as outputs:
        with console.progress("Recomputing the paper's numbers"):
            comparison = paper.reproduce(table)
        if output is not None:
            outputs.write_text(output, comparison.to_markdown())
    status = NOT_CERTIFIED if comparison.counts.get("unexplained") else OK
    for label, rows in itertools.groupby(comparison.rows, attrgetter("table")):
        cells = []
        for row in rows:
            ours = row.ours if isinstance(row.ours, str) else f"{row.ours:.6g}"
            cells.append((f"{row.row}, {row.column}", row.paper, ours, row.verdict))
        console.table((label, "paper", "ours", "verdict"), cells)
        console.say("")
    console.say(f"{comparison.verdicts}; {comparison.seconds:.1f} s.")
    console.written(filter(None, [output]))
    return status
