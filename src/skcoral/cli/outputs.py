"""Output files: names that can be written, and all of the files or none."""

from __future__ import annotations

import contextlib
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import BinaryIO, cast

from skcoral.cli.parser import UsageError
from skcoral.core.display import printable
from skcoral.core.files import Outputs
from skcoral.tables.writing import output_format


def check_output(output: str | None, *, as_json: bool = False) -> None:
    """Refuse an output that cannot be written, before anything is done."""
    if output == "-" and as_json:
        raise UsageError(
            "--json and '-o -' both write to standard output.\nWrite the table to a file instead."
        )
    if output is not None and output != "-":
        output_format(output)


def check_ending(
    path: Path | None, endings: Sequence[str], what: str, remedy: str = "Choose a name that does."
) -> None:
    """Refuse a name whose ending does not tell how ``what`` is to be written."""
    if path is not None and path.suffix.lower() not in endings:
        raise UsageError(
            f"{printable(str(path))}: {what} must end in {' or '.join(endings)}.\n{remedy}"
        )


@contextlib.contextmanager
def all_or_none(force: bool, *paths: str | Path | None) -> Iterator[Outputs]:
    """Files that are put in place together when the block ends, or not at all."""
    with Outputs(force=force) as outputs:
        for path in paths:
            if isinstance(path, Path) and str(path) == "-":
                raise UsageError(
                    "'-' is standard output, and only a table is written there (-o -).\n"
                    "Give the other outputs the names of files."
                )
            if path is not None and str(path) != "-":
                outputs.reserve(path)
        yield outputs
        outputs.commit()


@contextlib.contextmanager
def destination(outputs: Outputs, path: str | None) -> Iterator[BinaryIO | None]:
    """Open an output; what goes to standard output is kept back until all else has succeeded."""
    if path is None:
        yield None
    elif path != "-":
        with outputs.open(path) as stream:
            yield stream
    else:
        with tempfile.SpooledTemporaryFile(max_size=2**26) as spooled:
            yield cast(BinaryIO, spooled)
            spooled.seek(0)
            shutil.copyfileobj(spooled, sys.stdout.buffer)
            sys.stdout.buffer.flush()
