"""``coral app``: serve the web app on this machine."""

from __future__ import annotations

import importlib.util
import os
import socket
import sys
from argparse import Namespace
from pathlib import Path

from skcoral.cli import console
from skcoral.cli.parser import UsageError


def web_app(options: Namespace) -> int:
    """Start the web app in this process's place, on this machine only unless told otherwise."""
    if importlib.util.find_spec("streamlit") is None:
        raise UsageError(
            "the web app needs the package 'streamlit', which is not installed.\n"
            'Install it in a copy of the repository with: pip install ".[app]"'
        )
    _check_port(options.host, options.port)
    command = app_command(options)
    address = f"http://{options.host}:{options.port}"
    console.say(f"coral app on {address} (stop with Ctrl-C)", stderr=True)
    sys.stdout.flush()
    os.execv(command[0], command)


def _check_port(host: str, port: int) -> None:
    """Refuse an address that cannot be listened on, before the server is started."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        with socket.socket(family, socket.SOCK_STREAM) as trial:
            trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            trial.bind((host, port))
    except OSError as error:
        raise UsageError(
            f"the app cannot listen on {host}, port {port} ({error.strerror or error}).\n"
            "Name another one: --port takes a number, --host an address of this machine."
        ) from error


def app_command(options: Namespace) -> list[str]:
    """The command that serves the app: bound to one address, usage statistics off."""
    from skcoral import app

    return [
        sys.executable,
        "-m",
        "skcoral.app.server",
        "run",
        str(Path(app.__path__[0]) / "main.py"),
        f"--server.address={options.host}",
        f"--server.port={options.port}",
        f"--server.headless={str(options.no_browser).lower()}",
        *app.SERVER_OPTIONS,
    ]
