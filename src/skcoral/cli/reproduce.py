"""``coral reproduce``: the tables of the paper, recomputed."""

from __future__ import annotations

from argparse import Namespace

from skcoral.cli import console
from skcoral.cli.outputs import all_or_none, check_ending
from skcoral.cli.run import NOT_CERTIFIED, OK
from skcoral.core.validation import whole_number


def reproduce(options: Namespace) -> int:
    """Recompute the tables of the paper and show both numbers side by side."""
    from skcoral import paper

    table, output = options.table, options.output
    number = whole_number(table)
    if number is not None and 1 <= number <= len(paper.TABLES):
        table = paper.TABLES[number - 1]
    check_ending(output, (".md",), "the comparison")
    with all_or_none(options.force, output) as outputs:
        with console.progress("Recomputing the paper's numbers"):
            comparison = paper.reproduce(table)
        if output is not None:
            outputs.write_text(output, comparison.to_markdown())
    status = NOT_CERTIFIED if comparison.counts.get("unexplained") else OK
    for label in dict.fromkeys(row.table for row in comparison.rows):
        rows = [row for row in comparison.rows if row.table == label]
        console.table(
            (label, "paper", "ours", "verdict"),
            [
                (
                    f"{row.row}, {row.column}",
                    row.paper,
                    row.ours if isinstance(row.ours, str) else f"{row.ours:.6g}",
                    row.verdict,
                )
                for row in rows
            ],
        )
        console.say("")
    console.say(f"{comparison.verdicts}; {comparison.seconds:.1f} s.")
    console.written(filter(None, [output]))
    return status
