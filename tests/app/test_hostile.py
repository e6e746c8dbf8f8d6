"""Malicious uploads do not affect other visitors, and the app opens no connection elsewhere."""

import asyncio
import os
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

VISITORS = 6
BOMBS = {
    "corners.xlsx": bombs.EXCEL["corners"],
    "texts.parquet": bombs.PARQUET["long-texts"],
    "quote.csv": lambda m: b'a,b\n1,"' + b"2\n" * 4 * m,
}


@pytest.mark.parametrize("text", ["1 0\n0 1", "1 0 0\n0 1 0\n0 0 1", "1 1e-300\n1e-300 1"])
@pytest.mark.parametrize("mode", ["floor", "budget", "worst", "support"])
def test_a_pasted_identity_in_every_mode(open_app, text, mode):
    at = open_app(source="paste", mode=mode)
    at.text_area(key="pasted").set_value(text).run()
    assert not at.exception, [e.value for e in at.exception]
    assert not at.error, [e.value for e in at.error]


@pytest.mark.parametrize("floor", ["0.999999", "0.9999999999", "1", "0.85"])
def test_supports_with_one_high_floor(open_app, floor):
    at = open_app(source="simulated", size="6", mode="support", own=f"x1:{floor}")
    assert not at.exception, [e.value for e in at.exception]
    assert not at.error, [e.value for e in at.error]


def peak_memory(pid):
    return int(Path(f"/proc/{pid}/status").read_text().split("VmHWM:")[1].split()[0]) / 1024


def test_the_others_are_answered_while_three_upload_expanding_files(server):
    files = {name: make(10**6) for name, make in BOMBS.items()}
    assert max(map(len, files.values())) < 25 * 2**20
    waited, told = [], {}

    async def bring(port, name):
        visitor = Visitor(port)
        await visitor.open("source=upload")
        await asyncio.wait_for(visitor.upload(name, files[name]), 120)
        told[name] = [*visitor.alerts, *visitor.errors]
        await visitor.close()

    async def visit(port, k):
        visitor = Visitor(port)
        start = time.monotonic()
        await asyncio.wait_for(visitor.open("source=wine&floor=0.85"), PATIENCE)
        for i in range(2):
            await asyncio.wait_for(
                visitor.move("Floor", round(0.84 + 0.003 * k + 0.02 * i, 3)), PATIENCE
            )
        waited.append(time.monotonic() - start)
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
        assert any(name in alert.replace("\\", "") for alert in told[name]), told


def test_no_connection_leaves_the_machine(server):
    async def visit(port):
        visitor = Visitor(port)
        await asyncio.wait_for(visitor.open("source=wine&floor=0.9"), PATIENCE)
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
