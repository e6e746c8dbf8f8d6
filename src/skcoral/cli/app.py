"""``coral app``: serve the web app on this machine."""

from __future__ import annotations

import socket
from argparse import Namespace

from skcoral.cli import console
from skcoral.cli.parser import UsageError
from skcoral.cli.run import OK


def app(options: Namespace) -> int:
    """Serve the web app until it is stopped, on this machine only unless told otherwise."""
    from skcoral.app.server import APP, serve

    _check_port(options.host, options.port)
    address = f"http://{options.host}:{options.port}"
    with console.beside("-"):
        console.say(f"coral app on {address} (stop with Ctrl-C)")
    serve(APP, options.host, options.port, headless=options.no_browser)
    return OK


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
