"""Write the comparison with the paper to a folder: ``python -m skcoral.paper -o folder``."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from skcoral.exceptions import CoralError
from skcoral.paper.numbers import TABLES
from skcoral.paper.reproduction import reproduce


def main(arguments: list[str] | None = None) -> int:
    """Parse the command line, write Markdown and HTML (and the figure), return the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m skcoral.paper", description="Recompute every number of the paper."
    )
    parser.add_argument("-o", "--output", type=Path, required=True, help="folder to write to")
    parser.add_argument("--table", default="all", choices=("all", *TABLES))
    parser.add_argument(
        "--protocol", action="store_true", help="also run the paper's own protocol (minutes)"
    )
    parser.add_argument("--starts", type=int, default=100, help="random starts (default: 100)")
    parser.add_argument("--figure", action="store_true", help="also draw Figure 1 for Wine")
    options = parser.parse_args(arguments)
    try:
        options.output.mkdir(parents=True, exist_ok=True)
        result = reproduce(options.table, protocol=options.protocol, n_starts=options.starts)
        (options.output / "reproduction.md").write_text(result.to_markdown(), "utf-8")
        (options.output / "reproduction.html").write_text(result.to_html(), "utf-8")
        if options.figure:
            _write_figure(options.output)
    except (CoralError, OSError) as error:
        sys.stderr.write(f"{error}\n")
        return 1
    sys.stdout.write(f"{result!r}\n")
    return 0


def _write_figure(folder: Path) -> None:
    from skcoral.paper.figure import draw_interactive, draw_static, wine_geometry

    geometry = wine_geometry()
    draw_static(geometry).savefig(folder / "figure1.png", dpi=150)
    draw_interactive(geometry).write_html(folder / "figure1.html", include_plotlyjs=True)


if __name__ == "__main__":
    sys.exit(main())
