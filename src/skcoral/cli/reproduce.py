"""``coral reproduce``: the tables of the paper, recomputed."""

from __future__ import annotations

from pathlib import Path

from skcoral.cli import console
from skcoral.cli.run import NOT_CERTIFIED, OK, UsageError


def reproduce(table: str, *, output: Path | None, force: bool, as_json: bool) -> int:
    """Recompute the tables of the paper and show both numbers side by side."""
    from skcoral import paper
    from skcoral.tables.staging import Outputs

    if table.isdigit() and 1 <= int(table) <= len(paper.TABLES):
        table = paper.TABLES[int(table) - 1]
    if output is not None and output.suffix.lower() not in (".md", ".html"):
        raise UsageError(f"{output}: the comparison is written as .md or .html.\nUse one of them.")
    with Outputs(force=force) as outputs:
        if output is not None:
            outputs.reserve(output)
        with console.progress("Recomputing the paper's numbers"):
            comparison = paper.reproduce(table)
        if output is not None:
            html = output.suffix.lower() == ".html"
            outputs.write_text(output, comparison.to_html() if html else comparison.to_markdown())
        outputs.commit()
    status = NOT_CERTIFIED if comparison.counts.get("unexplained") else OK
    if as_json:
        fields = ("table", "row", "column", "paper", "ours", "difference", "verdict", "gap", "why")
        console.machine(
            {
                "counts": comparison.counts,
                "seconds": comparison.seconds,
                "cells": [{name: getattr(row, name) for name in fields} for row in comparison.rows],
                "written": [] if output is None else [str(output)],
            }
        )
        return status
    for label in dict.fromkeys(row.table for row in comparison.rows):
        rows = [row for row in comparison.rows if row.table == label]
        console.table(
            (label, "paper", "ours", "verdict"),
            [(f"{row.row}, {row.column}", row.paper, _ours(row.ours), row.verdict) for row in rows],
        )
        console.say("")
    counts = ", ".join(f"{count} {verdict}" for verdict, count in comparison.counts.items())
    console.say(f"{len(comparison.rows)} cells: {counts}; {comparison.seconds:.1f} s.")
    if output is not None:
        console.say(f"Written: {output}")
    return status


def _ours(value: float | str) -> str:
    return value if isinstance(value, str) else f"{value:.6g}"
