"""The ``coral`` command in fresh processes that need not import the libraries again.

A server imports everything once and forks for every command; the child has the arguments, folder,
environment, limits and streams it is given, and runs the entrance of ``coral``.
"""

from __future__ import annotations

import array
import contextlib
import json
import os
import resource
import signal
import socket
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Any

_LIBRARIES = (
    "openpyxl", "pandas", "pyarrow.csv", "pyarrow.pandas_compat", "pyarrow.parquet",
    "scipy.linalg", "scipy.optimize", "scipy.special", "skcoral.certificates",
    "skcoral.cli.run", "skcoral.estimator", "skcoral.models",
    "skcoral.solvers.support", "skcoral.tables",
)  # fmt: skip


class WarmCommand:
    """Runs commands one at a time; to be closed."""

    def __init__(self) -> None:
        self._start()

    def _start(self) -> None:
        self._socket, theirs = socket.socketpair()
        self._server = subprocess.Popen(
            [sys.executable, __file__, str(theirs.fileno())],
            pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            start_new_session=True,
        )
        theirs.close()

    def close(self) -> None:
        """End the server."""
        self._socket.close()
        self._server.wait(timeout=30)

    def run(
        self,
        arguments: Sequence[Any],
        *,
        cwd: Any = None,
        env: dict[str, str] | None = None,
        stdin: Any = subprocess.DEVNULL,
        input: Any = None,
        stdout: int | None = None,
        file_size: int | None = None,
        ignore: int | None = None,
        timeout: float = 120,
        encoding: str | None = "utf-8",
    ) -> subprocess.CompletedProcess[Any]:
        """Like ``subprocess.run`` with captured output.

        ``stdout`` is a descriptor to write to instead; ``file_size`` limits the files that are
        written, as a full disk does; the signal ``ignore`` is ignored from the start, as under
        ``nohup``.
        """
        with contextlib.ExitStack() as files:
            out, err, given = (files.enter_context(tempfile.TemporaryFile()) for _ in range(3))
            if input is not None:
                given.write(input.encode(encoding) if isinstance(input, str) else input)
            given.seek(0)
            if input is None and stdin != subprocess.DEVNULL:
                given = stdin
            request = {
                "arguments": list(map(str, arguments)),
                "cwd": str(cwd or Path.cwd()),
                "env": {**os.environ, **(env or {})},
                "file_size": file_size,
                "ignore": ignore,
            }
            fds = array.array("i", [given.fileno(), stdout or out.fileno(), err.fileno()])
            data = json.dumps(request).encode()
            socket.send_fds(self._socket, [len(data).to_bytes(8, "big")], fds)
            self._socket.sendall(data)
            self._socket.settimeout(timeout)
            try:
                status = self._socket.recv(8)
            except TimeoutError:  # the next command gets a server of its own
                os.killpg(self._server.pid, signal.SIGKILL)
                self.close()
                self._start()
                raise subprocess.TimeoutExpired(request["arguments"], timeout) from None
            assert len(status) == 8, "the server of commands is gone"
            streams = []
            for file in (out, err):
                file.seek(0)
                streams.append(file.read() if encoding is None else file.read().decode(encoding))
        code = int.from_bytes(status, "big", signed=True)
        return subprocess.CompletedProcess(["coral", *request["arguments"]], code, *streams)


def _serve(connection: socket.socket) -> None:
    for name in _LIBRARIES:
        __import__(name)
    while True:
        size, fds, _, _ = socket.recv_fds(connection, 8, 3)
        if len(size) < 8:
            return
        data = b""
        while len(data) < int.from_bytes(size, "big"):
            data += connection.recv(65536)
        child = os.fork()
        if child == 0:
            _run(json.loads(data), fds, connection)
        for fd in fds:
            os.close(fd)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        connection.sendall(code.to_bytes(8, "big", signed=True))


def _run(request: dict[str, Any], fds: list[int], connection: socket.socket) -> None:
    connection.close()
    for number, fd in enumerate(fds):
        os.dup2(fd, number)
        os.close(fd)
    # that of the server has learned that its file has places to seek
    sys.stdout = os.fdopen(1, "w", encoding=sys.stdout.encoding, closefd=False)
    os.chdir(request["cwd"])
    os.environ.clear()
    os.environ.update(request["env"])
    if request["file_size"] is not None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (request["file_size"],) * 2)
    if request["ignore"] is not None:
        signal.signal(request["ignore"], signal.SIG_IGN)
    sys.argv = ["coral", *request["arguments"]]
    code: Any = 1
    try:
        from skcoral.cli import main

        code = main()
    except SystemExit as done:
        code = done.code or 0
    except BaseException:
        traceback.print_exc()
    finally:
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(OSError, ValueError):
                stream.flush()
        os._exit(code if isinstance(code, int) else 1)


if __name__ == "__main__":
    _serve(socket.socket(fileno=int(sys.argv[1])))
