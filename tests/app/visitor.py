"""A visitor over a real connection, speaking the app's own protocol."""

import asyncio
from concurrent.futures import ThreadPoolExecutor

from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.Common_pb2 import UploadedFileInfo
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from tornado.httpclient import AsyncHTTPClient, HTTPRequest
from tornado.websocket import websocket_connect

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
        self.alerts = []
        self.session = ""
        self.file = None
        self.places = []
        self.uploader = ""

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
        if self.file is not None:
            state = message.rerun_script.widget_states.widgets.add()
            state.id = self.uploader
            state.file_uploader_state_value.uploaded_file_info.append(self.file)
        await self.connection.write_message(message.SerializeToString(), binary=True)
        await self._listen()

    async def upload(self, name, data):
        """Bring a file as a browser does, and wait for the page."""
        message = BackMsg()
        message.file_urls_request.request_id = name
        message.file_urls_request.file_names.append(name)
        message.file_urls_request.session_id = self.session
        await self.connection.write_message(message.SerializeToString(), binary=True)
        await self._listen()
        place = self.places[0]
        client = AsyncHTTPClient(force_instance=True)
        token = "2|00000000|" + "0" * 32 + "|1"
        head = f'--part\r\nContent-Disposition: form-data; name="file"; filename="{name}"\r\n\r\n'
        await client.fetch(
            f"http://127.0.0.1:{self.port}{place.upload_url}",
            method="PUT",
            body=head.encode() + data + b"\r\n--part--\r\n",
            headers={
                "Content-Type": "multipart/form-data; boundary=part",
                "Cookie": f"_streamlit_xsrf={token}",
                "X-Xsrftoken": token,
            },
            request_timeout=PATIENCE,
        )
        client.close()
        self.file = UploadedFileInfo(
            name=name, size=len(data), file_id=place.file_id, file_urls=place
        )
        await self._run()

    async def _listen(self):
        while True:
            data = await self.connection.read_message()
            if data is None:
                raise ConnectionError("the server hung up")
            answer = ForwardMsg()
            answer.ParseFromString(data)
            kind = answer.WhichOneof("type")
            if kind == "new_session":
                self.session = answer.new_session.initialize.session_id
            if kind == "file_urls_response":
                self.places = list(answer.file_urls_response.file_urls)
            if kind in ("file_urls_response", "script_finished"):
                return
            if kind == "delta" and answer.delta.HasField("new_element"):
                self._see(answer.delta)

    def _see(self, delta):
        element = delta.new_element
        kind = element.WhichOneof("type")
        if kind == "slider":
            self.sliders[element.slider.label] = (element.slider.id, delta.fragment_id)
            self.states.setdefault(element.slider.id, element.slider.default[0])
        elif kind == "file_uploader":
            self.uploader = element.file_uploader.id
        elif kind == "alert":
            self.alerts.append(element.alert.body)
        elif kind == "text":
            self.texts.append(element.text.body)
        elif kind == "metric":
            self.metrics[element.metric.label] = element.metric.body
        elif kind == "exception":
            self.errors.append(element.exception.message)
