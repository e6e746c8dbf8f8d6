"""Several visitors at once over real connections, speaking the app's own protocol."""

import asyncio
import json
import sys
import time

import pytest
from visitor import PATIENCE, Visitor, finish

from skcoral import api
from skcoral.datasets import load_wine

VISITORS, MOVES = 20, 1


def test_twenty_visitors_are_answered(server, artifacts):
    opened, moved = [], []
    seen = {}

    async def visit(k):
        visitor = Visitor(server.port)
        start = time.monotonic()
        await asyncio.wait_for(visitor.open("source=wine&floor=0.85"), PATIENCE)
        opened.append(time.monotonic() - start)
        for i in range(MOVES):
            floor = round(0.83 + 0.002 * k + 0.05 * i, 3)
            start = time.monotonic()
            await asyncio.wait_for(visitor.move("Floor", floor), PATIENCE)
            moved.append(time.monotonic() - start)
        seen[floor] = visitor.metrics["Residual"]
        assert visitor.errors == []
        await visitor.close()

    async def everybody():
        await asyncio.gather(*(visit(k) for k in range(VISITORS)))

    finish(everybody())
    assert len(moved) == VISITORS * MOVES
    R = load_wine().correlation
    for floor, residual in seen.items():
        assert float(residual) == pytest.approx(api.decorrelate(R, floor).objective, rel=1e-3)
    figures = {
        "visitors": VISITORS,
        "seconds to open, median": sorted(opened)[len(opened) // 2],
        "seconds to open, longest": max(opened),
        "seconds to move, median": sorted(moved)[len(moved) // 2],
        "seconds to move, longest": max(moved),
    }
    (artifacts / "load.json").write_text(json.dumps(figures, indent=1))


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads processor time from /proc")
@pytest.mark.parametrize(
    ("query", "limit"),
    [
        ("source=wine&floor=0.95", 0.15),
        ("source=simulated&size=30&floor=0.99", 0.15),
        ("source=simulated&size=60&floor=0.99", 0.5),
    ],
)
def test_a_move_takes_little_server_time(server, query, limit):
    moves = 10

    async def visit():
        visitor = Visitor(server.port)
        await asyncio.wait_for(visitor.open(query), PATIENCE)
        start = server.cpu_seconds()
        for i in range(moves):
            await asyncio.wait_for(visitor.move("Floor", round(0.9601 + 0.003 * i, 4)), PATIENCE)
        used = server.cpu_seconds() - start
        await visitor.close()
        return used / moves

    # Processor time of the whole server, so that other work on the machine does not count.
    assert finish(visit()) < limit


REMEMBERING = """
import streamlit as st
from skcoral.app.cache import remember
for public in (True, False):
    st.text(remember("one key", lambda: st.query_params["who"], public=public))
"""


def test_only_examples_are_shared_between_visitors(serve_script):
    async def seen(port, *names):
        visitors = [Visitor(port) for _ in names]
        for visitor, name in zip(visitors, names, strict=True):
            await asyncio.wait_for(visitor.open(f"who={name}"), PATIENCE)
        for visitor in visitors:
            await visitor.close()
        return [visitor.texts for visitor in visitors]

    with serve_script(REMEMBERING) as running:
        found = finish(seen(running.port, "Ada", "Alan"))
    assert found == [["Ada", "Ada"], ["Ada", "Alan"]]
