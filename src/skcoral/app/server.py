"""The server of the app: Streamlit without its requests to other machines.

Streamlit looks up the external address of the machine at a web service, for its greeting and for
every request whose origin it does not know. The app needs none of that: visitors use the
address that the server listens on.
"""

from __future__ import annotations

import sys

_ANYWHERE = ("0.0.0.0", "::")


def main() -> None:
    """Run Streamlit's command with its own arguments."""
    from streamlit import net_util
    from streamlit.web import cli

    net_util.get_external_ip = lambda: None
    if not any(f"--server.address={address}" in sys.argv for address in _ANYWHERE):
        # Finding the address in the local network opens a socket towards the outside.
        net_util.get_internal_ip = lambda: None
    cli.main(prog_name="streamlit")


if __name__ == "__main__":
    main()
