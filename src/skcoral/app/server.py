"""The server of the app: Streamlit without its requests to other machines.

Streamlit looks up the external address of the machine at a web service, for its greeting and for
every request whose origin it does not know. The app needs none of that: visitors use the
address that the server listens on.
"""

from __future__ import annotations

from pathlib import Path

from streamlit import net_util
from streamlit.web import cli

#: The script of the app.
APP = Path(__file__).with_name("main.py")
#: Options of the server that the app needs, as ``streamlit run`` takes them.
OPTIONS = (
    "--browser.gatherUsageStats=false",
    "--client.showErrorDetails=none",
    "--client.toolbarMode=viewer",
    "--runner.postScriptGC=false",  # takes as long as everything else together
    "--server.fileWatcherType=none",
    "--server.maxUploadSize=25",
    "--theme.light.primaryColor=#1c74a8",
    "--theme.dark.primaryColor=#4aa8dc",
    "--theme.dark.backgroundColor=#14181d",  # paper and wash of the pictures and the report
    "--theme.dark.secondaryBackgroundColor=#1c2229",
)
_ANYWHERE = ("0.0.0.0", "::")


def serve(script: Path, host: str, port: int, *, headless: bool) -> None:
    """Serve a script on one address until the process is stopped."""
    net_util.get_external_ip = lambda: None
    if host not in _ANYWHERE:
        # Finding the address in the local network opens a socket towards the outside.
        net_util.get_internal_ip = lambda: None
    address = (f"--server.address={host}", f"--server.port={port}")
    shown = f"--server.headless={str(headless).lower()}"
    cli.main(["run", str(script), *address, shown, *OPTIONS], prog_name="streamlit")
