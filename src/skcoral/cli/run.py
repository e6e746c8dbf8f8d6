"""Run a command: every failure becomes two lines on standard error and an exit status."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import sys
import warnings
from collections.abc import Sequence
from importlib import import_module
from typing import Any, NoReturn

from skcoral.cli.parser import UsageError, make_parser
from skcoral.core.display import printable
from skcoral.core.files import written_files
from skcoral.exceptions import (
    CertificateError,
    CoralError,
    InfeasibleError,
    InvalidArgumentError,
    ModelFileError,
    SingularCorrelationError,
)

_MANY = 8
_ARGUMENTS = "by|confidence|covariance|criterion|halflife|lag|min_rows|n_jobs|rho_min|step|window"
OK, BUG, USAGE, DATA, NOT_CERTIFIED, INTERRUPTED, BROKEN_PIPE = 0, 1, 2, 3, 4, 130, 141

#: What to do about errors that say only what is wrong, by kind.
_REMEDIES: dict[type[CoralError], str] = {
    InfeasibleError: "Give --budget or --max-correlation a larger number, or leave columns out.",
    InvalidArgumentError: "Try 'coral {command} --help'.",
    CertificateError: (
        "The table comes first: coral verify TABLE CERTIFICATE, with a file made by coral fit "
        "--certificate"
    ),
    ModelFileError: "Or make the model again with: coral fit --model FILE",
    CoralError: "Correct the table or choose other columns (--columns, --exclude).",
}
#: Errors that are neither about the table nor about a model file.
_WRONG_USE = tuple(_REMEDIES)[:2]
_FILE_REMEDIES = {
    FileExistsError: "Add --force to replace it, or choose another name.",
    FileNotFoundError: "Check the name and the folder.",
    PermissionError: "Choose a file or folder that you may use.",
    IsADirectoryError: "Name a file in it.",
}


def run(arguments: list[str]) -> int:
    """Run the command and turn every expected failure into two lines on standard error."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # a question mark for what the terminal cannot show
            stream.reconfigure(errors="replace")
    if not os.environ.get("CORAL_DEBUG"):
        # The output says the same: status, gap and exit status.
        warnings.simplefilter("ignore")
    for name in ("SIGTERM", "SIGHUP"):
        number = getattr(signal, name, None)
        # A signal that is ignored, as under nohup, stays ignored.
        if number is not None and signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _terminate)
    try:
        status = _call(arguments)
        sys.stdout.flush()
        return status
    except BrokenPipeError:
        # The reader has closed the pipe: discard the rest, and what Python flushes at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return BROKEN_PIPE
    except (Exception, KeyboardInterrupt) as error:
        explained = _explain(error, arguments[0] if arguments else "")
        if explained is None and os.environ.get("CORAL_DEBUG"):
            raise
        return _fail(*(explained or _unexpected(error)), as_json="--json" in arguments)


def _call(arguments: list[str]) -> int:
    """Parse the arguments and call the function of the command, in the module of its name."""
    parser = make_parser()
    try:
        options = parser.parse_args(arguments)
    except SystemExit:  # after --help
        return OK
    if options.version:
        from skcoral._version import __version__

        print(f"coral {__version__}")
    elif options.command is None:
        parser.print_help()
    else:
        name = options.command
        status: int = getattr(import_module(f"skcoral.cli.{name}"), name)(options)
        return status
    return OK


def _explain(error: BaseException, command: str) -> tuple[str, int] | None:
    """Two lines about an expected failure, and the exit status; None for a bug."""
    if isinstance(error, UsageError):
        return str(error), error.status
    if isinstance(error, KeyboardInterrupt):
        written = ", ".join(written_files())
        state = f"Written before: {written}" if written else "No output file was written or changed"
        return f"interrupted.\n{state}.", INTERRUPTED
    if isinstance(error, CoralError):
        status = USAGE if isinstance(error, _WRONG_USE) else DATA
        status = NOT_CERTIFIED if isinstance(error, CertificateError) else status
        return _two_lines(error, command), status
    if isinstance(error, ModuleNotFoundError) and not (error.name or "").startswith("skcoral"):
        install = 'Install it in a copy of the repository with: pip install ".[all]"'
        return f"this needs the package {error.name!r}, which is not installed.\n{install}", USAGE
    if isinstance(error, OSError):
        name = "the output" if error.filename is None else printable(str(error.filename))
        remedy = _FILE_REMEDIES.get(type(error), "Choose another place for the output.")
        return f"{name}: {(error.strerror or str(error)).lower()}.\n{remedy}", USAGE
    if isinstance(error, MemoryError):
        remedy = "Use fewer columns, or a file that is read in parts (.csv, .parquet)."
        return f"the table does not fit in memory.\n{remedy}", DATA
    return None


def _two_lines(error: CoralError, command: str) -> str:
    """The message in two lines: what is wrong, and what to do, in the words of the command."""
    message = in_options(str(error).strip())
    if "\n" in message:
        first, _, rest = message.partition("\n")
        return f"{first}\n{' '.join(rest.split())}"
    if isinstance(error, SingularCorrelationError):
        how = without(error.redundant) if error.relations else "Give more rows or fewer columns"
        return f"{message}\n{how}, or shrink the correlations (of rows: --covariance LedoitWolf)."
    remedy = next(r for kind, r in _REMEDIES.items() if isinstance(error, kind))
    return f"{message}\n{remedy.format(command=command)}"


def without(redundant: Sequence[str]) -> str:
    """How to leave out the columns that the others determine."""
    if not redundant or len(redundant) > _MANY:
        return "Leave out one column of each relation (--exclude NAME)"
    options = " ".join(f"--exclude {shlex.quote(name)}" for name in redundant)
    return f"Leave out what the other columns determine ({options})"


def in_options(message: str) -> str:
    """A message of the library with its arguments spelled as options."""

    def spelled(match: re.Match[str]) -> str:
        value = match[2] or match[3]
        name = match[1].removeprefix("n_").replace("_", "-")  # --jobs is n_jobs
        return f"--{name}" + (f" {value}" if value else "")

    message = re.sub(rf"^({_ARGUMENTS})(?= must )()()", spelled, message)
    message = message.replace(" must be None or ", " must be ")
    return re.sub(rf"\b({_ARGUMENTS})=(?:'(\w+)'|(['\w]))?", spelled, message)


def _fail(message: str, status: int, as_json: bool) -> int:
    lines = [printable(line) for line in message.split("\n") if line.strip()]
    sys.stdout.flush()
    sys.stderr.write("\n".join([f"coral: {lines[0]}", *lines[1:]]) + "\n")
    if as_json:
        answer = {"error": lines[0], "hint": " ".join(lines[1:]), "exit_status": status}
        sys.stdout.write(json.dumps(answer, ensure_ascii=False) + "\n")
    return status


def _terminate(number: int, frame: Any) -> NoReturn:
    """Leave through the clean-up code, so that no temporary file stays behind."""
    # A second signal must not interrupt the clean-up.
    signal.signal(number, signal.SIG_IGN)
    sys.exit(128 + number)


def _unexpected(error: BaseException) -> tuple[str, int]:
    detail = " ".join(str(error).split())[:200]
    return (
        f"unexpected error: {type(error).__name__}: {detail}\n"
        "This is a bug in coral: please report it with the output of CORAL_DEBUG=1 coral …"
    ), BUG
