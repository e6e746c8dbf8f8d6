"""The app in this process, without a server: what a visitor sees as text."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from streamlit.components.v2 import manifest_scanner
from streamlit.testing.v1 import AppTest

from skcoral.app.server import APP
from skcoral.app.settings import Settings

SERVE = """
import sys
from pathlib import Path
from skcoral.app.server import serve
serve(Path(sys.argv[1]), "127.0.0.1", int(sys.argv[2]), headless=True)
"""
#: Writes every address that is looked up or connected to into a file.
WITNESS = """
import os, sys
def seen(event, arguments):
    if event in ("socket.connect", "socket.sendto", "socket.sendmsg"):
        address = arguments[1]
        host = address[0] if isinstance(address, tuple) else "127.0.0.1"
    elif event in ("socket.getaddrinfo", "socket.gethostbyname", "socket.gethostbyaddr"):
        host = arguments[0]
    else:
        return
    if str(host) not in ("None", "127.0.0.1", "::1", "localhost", ""):
        with open(os.environ["WITNESS"], "a") as log:
            log.write(f"{event} {host}\\n")
sys.addaudithook(seen)
"""


@pytest.fixture(scope="session", autouse=True)
def _no_components_of_others() -> Iterator[None]:
    """Streamlit reads what every installed package says of itself, each time an app is opened."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(manifest_scanner, "scan_component_manifests", list)
        yield


@pytest.fixture
def open_app() -> Callable[..., AppTest]:
    """Open the app with some settings; whatever happens must be told in words."""

    def opened(tab: str | None = None, **settings: Any) -> AppTest:
        at = AppTest.from_file(str(APP), default_timeout=60)
        at.session_state["settings"] = Settings(**settings)
        if tab is not None:
            at.session_state["tab"] = tab
        return calm(at.run())

    return opened


@pytest.fixture
def bring(open_app) -> Callable[..., AppTest]:
    """Upload a file, and look at it with some settings."""

    def brought(name: str, data: bytes, tab: str | None = None, **settings: Any) -> AppTest:
        at = open_app(tab)
        at.file_uploader(key="file").set_value((name, data, "application/octet-stream"))
        at.run()
        if settings:
            at.session_state["settings"] = Settings(**settings)
            at.run()
        return calm(at)

    return brought


def calm(at: AppTest) -> AppTest:
    """Assert that no traceback is shown."""
    assert not at.exception, [e.value for e in at.exception]
    return at


@pytest.fixture
def metric() -> Callable[[AppTest, str], float]:
    """A number of the main view."""

    def value(at: AppTest, label: str) -> float:
        return float(next(m.value for m in at.metric if m.label == label))

    return value


@pytest.fixture
def slider() -> Callable[[AppTest, str], Any]:
    """A slider by the beginning of its label."""

    def by_label(at: AppTest, beginning: str) -> Any:
        return next(s for s in at.slider if s.label.startswith(beginning))

    return by_label


@dataclass(frozen=True)
class Server:
    """A running ``coral app``: where it listens, what it is, and where it could leave files.

    ``connections`` is the file that tells of connections to other machines, if there are any.
    """

    port: int
    pid: int
    folder: Path
    connections: Path

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/"


@pytest.fixture(scope="session")
def server(tmp_path_factory, witness) -> Iterator[Server]:
    """The app as people start it, in an empty folder and with an empty home."""
    coral = [str(Path(sys.executable).with_name("coral")), "app", "--no-browser", "--port"]
    with _served(coral, tmp_path_factory, witness) as running:
        yield running


@pytest.fixture(scope="session")
def witness(tmp_path_factory) -> dict[str, str]:
    """Variables with which Python writes into a file what it connects to."""
    folder = tmp_path_factory.mktemp("witness")
    (folder / "sitecustomize.py").write_text(WITNESS)
    path = os.pathsep.join(filter(None, [str(folder), os.environ.get("PYTHONPATH")]))
    return {"PYTHONPATH": path, "WITNESS": str(folder / "seen.txt")}


@pytest.fixture(scope="session")
def serve_script(tmp_path_factory, witness) -> Callable[[str], Any]:
    """Serve another script with the options of the app; to be used in a ``with`` statement."""

    def serve(text: str) -> Any:
        script = tmp_path_factory.mktemp("script") / "script.py"
        script.write_text(text)
        run = [sys.executable, "-c", SERVE, str(script)]
        return _served(run, tmp_path_factory, witness)

    return serve


@contextmanager
def _served(command: list[str], tmp_path_factory, witness: dict[str, str]) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("served")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    homes = dict.fromkeys(("HOME", "TMPDIR"), str(folder))
    log = tmp_path_factory.mktemp("log") / "server.txt"
    with log.open("w") as output:
        process = subprocess.Popen(
            [*command, str(port)],
            cwd=folder,
            env={**os.environ, **homes, **witness},
            stdout=output,
            stderr=output,
        )
        try:
            _wait_for(process, port, log)
            yield Server(port, process.pid, folder, Path(witness["WITNESS"]))
        finally:
            process.terminate()
            process.wait(timeout=30)


def _wait_for(process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    deadline = time.monotonic() + 90
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise RuntimeError(f"the server stopped: {log.read_text()}")
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/_stcore/health", timeout=5):
                return
        except OSError:
            time.sleep(0.2)
    raise TimeoutError(f"no server after 90 s: {log.read_text()}")
