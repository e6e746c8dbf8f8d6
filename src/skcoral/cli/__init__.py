"""The ``coral`` command: parse, call, print."""

from __future__ import annotations

import sys
from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns the exit status.

    0 done, 2 wrong use, 3 bad data, 4 feasible but not certified, 130 interrupted.
    """
    from skcoral.cli.run import run

    return run(sys.argv[1:] if arguments is None else list(arguments))
