"""Several visitors at once over real connections, speaking the app's own protocol."""

import asyncio
import json
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from tornado.httpclient import HTTPRequest
from tornado.websocket import websocket_connect

from skcoral import api
from skcoral.datasets import load_wine

VISITORS, MOVES = 20, 3
# What a visitor puts up with when twenty move their sliders at the same moment and the machine is
# busy with other things as well; a quiet one answers within two seconds.
PATIENCE = 30.0


def finish(work):
    """Run a coroutine to its end, in a thread: a browser may hold this one's event loop."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, work).result()


class Visitor:
    """One connection; sees texts and sliders, and can move a slider."""

    def __init__(self, port):
        self.port = port
        self.sliders = {}
        self.states = {}
        self.metrics = {}
        self.errors = []
        self.texts = []

    async def open(self, query=""):
        """Connect and let the page run once."""
        request = HTTPRequest(
            f"ws://127.0.0.1:{self.port}/_stcore/stream",
            headers={"Origin": f"http://127.0.0.1:{self.port}"},
        )
        self.connection = await websocket_connect(
            request, subprotocols=["streamlit"], max_message_size=50_000_000
        )
        await self._run(query=query)

    async def move(self, beginning, value):
        """Move a slider and wait for the page."""
        label = next(label for label in self.sliders if label.startswith(beginning))
        widget, fragment = self.sliders[label]
        self.states[widget] = value
        await self._run(fragment=fragment)

    async def close(self):
        """Leave, and wait until the other side has noticed."""
        self.connection.close()
        while await self.connection.read_message() is not None:
            pass

    async def _run(self, *, query="", fragment=""):
        message = BackMsg()
        message.rerun_script.query_string = query
        message.rerun_script.fragment_id = fragment
        for widget, value in self.states.items():
            state = message.rerun_script.widget_states.widgets.add()
            state.id = widget
            state.double_array_value.data.append(value)
        await self.connection.write_message(message.SerializeToString(), binary=True)
        while True:
            data = await self.connection.read_message()
            if data is None:
                raise ConnectionError("the server hung up")
            answer = ForwardMsg()
            answer.ParseFromString(data)
            kind = answer.WhichOneof("type")
            if kind == "script_finished":
                return
            if kind == "delta" and answer.delta.HasField("new_element"):
                self._see(answer.delta)

    def _see(self, delta):
        element = delta.new_element
        kind = element.WhichOneof("type")
        if kind == "slider":
            self.sliders[element.slider.label] = (element.slider.id, delta.fragment_id)
            self.states.setdefault(element.slider.id, element.slider.default[0])
        elif kind == "text":
            self.texts.append(element.text.body)
        elif kind == "metric":
            self.metrics[element.metric.label] = element.metric.body
        elif kind == "exception":
            self.errors.append(element.exception.message)


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
from skcoral.app.memory import remember
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
