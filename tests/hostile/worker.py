"""Reads files with little memory left and tells what came of each; run as a script."""

import contextlib
import io
import json
import resource
import sys
import time
import warnings
from pathlib import Path

from skcoral import cli
from skcoral.app.sources import read_file, sheets
from skcoral.exceptions import CoralError

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
        sheets(data, path.name)
        read_file(data, path.name, key="k")
    except CoralError as error:
        return 3, str(error)
    return 0, ""


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
                code, told = read(path)
            except BaseException as error:
                code, told = -1, f"{type(error).__name__}: {error}"
            peak = (status("VmHWM") - before) / MB
            seconds = time.process_time() - start
            print(json.dumps([path.name, read.__name__, code, told, peak, seconds]), flush=True)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main(int(sys.argv[1]) * MB, sys.argv[2])
