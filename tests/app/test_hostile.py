"""Many visitors, malicious uploads, what visitors share, and connections elsewhere."""

import asyncio
import os
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import bombs
import pytest
from tornado.httpclient import HTTPClientError, HTTPRequest
from tornado.websocket import websocket_connect
from visitor import PATIENCE, Visitor, finish

from skcoral import api
from skcoral.datasets import load_wine

VISITORS = 9
BOMBS = {
    "corners.xlsx": bombs.EXCEL["corners"],
    "texts.parquet": bombs.PARQUET["long-texts"],
    "quote.csv": lambda m: b'a,b\n1,"' + b"2\n" * 4 * m,
}


def peak_memory(pid):
    return int(Path(f"/proc/{pid}/status").read_text().split("VmHWM:")[1].split()[0]) / 1024


def test_the_others_are_answered_while_three_upload_expanding_files(server):
    files = {name: make(10**6) for name, make in BOMBS.items()}
    assert max(map(len, files.values())) < 25 * 2**20
    waited, text = [], {}

    async def bring(port, name):
        visitor = Visitor(port)
        await visitor.open()
        await asyncio.wait_for(visitor.upload(name, files[name]), 120)
        text[name] = [*visitor.alerts, *visitor.errors]
        await visitor.close()

    async def visit(port, k):
        visitor = Visitor(port)
        start = time.monotonic()
        await asyncio.wait_for(visitor.open(), PATIENCE)
        for floor in (0.84 + 0.003 * k, 0.86 + 0.003 * k):
            await asyncio.wait_for(visitor.move("Floor", round(floor, 3)), PATIENCE)
        waited.append(time.monotonic() - start)
        residual = api.decorrelate(load_wine().correlation, round(floor, 3)).objective
        assert float(visitor.metrics["Residual"]) == pytest.approx(residual, rel=1e-3)
        assert visitor.errors == []
        await visitor.close()

    async def everybody(port):
        await asyncio.gather(
            *(bring(port, name) for name in files), *(visit(port, k) for k in range(VISITORS))
        )

    finish(everybody(server.port))
    if Path("/proc/self/status").exists():
        assert peak_memory(server.pid) < 2500
    with urllib.request.urlopen(f"{server.url}_stcore/health", timeout=5) as answer:
        assert answer.status == 200
    assert len(waited) == VISITORS
    for name in files:
        assert any(name in alert.replace("\\", "") for alert in text[name]), text


def test_no_connection_leaves_the_machine(server):
    async def visit(port):
        visitor = Visitor(port)
        await asyncio.wait_for(visitor.open(), PATIENCE)
        await asyncio.wait_for(visitor.move("Floor", 0.95), PATIENCE)
        await visitor.close()
        # A page of another site must not get in, and must not make the server ask around either.
        request = HTTPRequest(
            f"ws://127.0.0.1:{port}/_stcore/stream", headers={"Origin": "http://evil.example"}
        )
        with pytest.raises(HTTPClientError):
            await websocket_connect(request, subprotocols=["streamlit"])

    finish(visit(server.port))
    assert not server.connections.exists(), server.connections.read_text()


def test_the_witness_detects_connections(witness, tmp_path):
    """Without it, the test above could not fail."""
    log = tmp_path / "seen.txt"
    script = "import socket\nwith socket.socket() as s:\n    s.settimeout(0.01)\n"
    script += "    s.connect_ex(('192.0.2.1', 9))"
    environment = {**os.environ, **witness, "WITNESS": str(log)}
    subprocess.run([sys.executable, "-c", script], env=environment, check=True)
    assert "192.0.2.1" in log.read_text()


REMEMBERING = """
import streamlit as st
from skcoral.app.page import remember
st.text(remember("one key", lambda: st.query_params["who"]))
"""


def test_nothing_is_shared_between_visitors(serve_script):
    async def seen(port, *names):
        visitors = [Visitor(port) for _ in names]
        for visitor, name in zip(visitors, names, strict=True):
            await asyncio.wait_for(visitor.open(f"who={name}"), PATIENCE)
        for visitor in visitors:
            await visitor.close()
        return [visitor.texts for visitor in visitors]

    with serve_script(REMEMBERING) as running:
        assert finish(seen(running.port, "Ada", "Alan")) == [["Ada"], ["Alan"]]


def test_an_address_that_is_taken_is_reported(capsys):
    from skcoral import cli

    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert cli.main(["app", "--no-browser", "--port", str(port)]) == 2
    assert f"cannot listen on 127.0.0.1, port {port}" in capsys.readouterr().err
    assert cli.main(["app", "--no-browser", "--host", "256.0.0.1"]) == 2
    assert "--host" in capsys.readouterr().err
