"""The ``coral`` command: parse, call, print."""

from __future__ import annotations

import sys
from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns the exit status.

    0 done, 2 wrong use, 3 bad data, 4 feasible but not certified, 130 interrupted.
    """
    try:
        import rich  # noqa: F401
        import typer  # noqa: F401
    except ModuleNotFoundError as missing:
        sys.stderr.write(
            f"coral: the command line needs the package {missing.name!r}, which is not installed.\n"
            'Install it in a copy of the repository with: pip install ".[cli]"\n'
        )
        return 2
    from skcoral.cli.run import run

    return run(sys.argv[1:] if arguments is None else list(arguments))
