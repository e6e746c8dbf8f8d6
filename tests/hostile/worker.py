"""Reads files with little memory left and tells what came of each; run as a script."""

import contextlib
import io
import json
import resource
import sys
import time
import warnings
from dataclasses import fields, replace
from pathlib import Path

from skcoral import cli
from skcoral.app import sources as app_sources
from skcoral.core import limits
from skcoral.core.limits import Limits, use
from skcoral.exceptions import CoralError
from skcoral.tables import delimited

MB = 2**20


def status(field):
    text = Path("/proc/self/status").read_text()
    return int(text.split(f"{field}:")[1].split()[0]) * 1024


def by_command(path):
    errors = io.StringIO()
    with contextlib.redirect_stderr(errors), contextlib.redirect_stdout(io.StringIO()):
        code = cli.main(["inspect", str(path)])
    return code, errors.getvalue()


def by_app(path):
    data = path.read_bytes()
    try:
        app_sources.sheets(data, path.name)
        app_sources.read_file(data, path.name, key="k")
    except CoralError as error:
        return 3, str(error)
    return 0, ""


def scale(size):
    """Multiply what an input may have, and the constants beside it; returns the limits."""
    amounts = [f.name for f in fields(Limits) if f.name != "seconds"]

    def scaled(given):
        return replace(given, **{k: int(size * getattr(given, k)) for k in amounts})

    app_sources.VISITOR = scaled(app_sources.VISITOR)
    constants = {
        limits: ["_HARMLESS"],
        Limits: ["sheet_cells", "workbook_memory", "record_bytes"],
        delimited: ["FIRST", "_MOST_BLANK"],
    }
    for module, names in constants.items():
        for name in names:
            setattr(module, name, int(size * getattr(module, name)))
    return scaled(Limits())


def main(room, good):
    # Everything that is loaded once, before the room is measured.
    for read in (by_command, by_app):
        read(Path(good))
    limit = status("VmSize") + room
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    for path in (Path(line.rstrip("\n")) for line in sys.stdin):
        for read in (by_command, by_app):
            Path("/proc/self/clear_refs").write_text("5")
            before, start = status("VmRSS"), time.process_time()
            try:
                code, message = read(path)
            except BaseException as error:
                code, message = -1, f"{type(error).__name__}: {error}"
            peak = (status("VmHWM") - before) / MB
            seconds = time.process_time() - start
            print(json.dumps([path.name, read.__name__, code, message, peak, seconds]), flush=True)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    with use(scale(float(sys.argv[1]))):
        main(int(sys.argv[2]) * MB, sys.argv[3])
