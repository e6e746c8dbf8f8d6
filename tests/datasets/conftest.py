"""A local server with the shape of the World Bank's API, made-up values and faults to order."""

import json
import threading
import time
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

import numpy as np
import pytest

AGGREGATES = [("ARB", "Arab World"), ("WLD", "World"), ("HIC", "High income")]
# Out of alphabetical order, as the API's own list is; one name with the blanks it really has.
COUNTRIES = [
    ("ZMB", "Zambia"), ("ALB", "Albania"), ("CIV", "Cote d'Ivoire"), ("TUR", "Turkiye "),
    *((f"C{k:02d}", f"Country {k:02d}") for k in range(11)),
]  # fmt: skip


class FakeWorldBank:
    """Data, requests seen, and the faults still to be played: one per (path part, page)."""

    def __init__(self):
        self.page_size = 7
        self.faults = {}
        self.requests = []
        self.values = np.random.default_rng(0).lognormal(size=(len(COUNTRIES), 8))
        self.missing = set()

    def served(self, part):
        return Counter(part in request for request in self.requests)[True]

    def country_list(self):
        places = [(*a, "Aggregates") for a in AGGREGATES[:1]]
        places += [(*c, "Sub-Saharan Africa ") for c in COUNTRIES]
        places += [(*a, "Aggregates") for a in AGGREGATES[1:]]
        return [
            {
                "id": iso,
                "iso2Code": iso[:2],
                "name": name,
                "region": {"id": "NA", "iso2code": "NA", "value": region},
                "adminregion": {"id": "", "iso2code": "", "value": ""},
                "incomeLevel": {"id": "LMC", "iso2code": "XN", "value": "Lower middle income"},
                "lendingType": {"id": "IDX", "iso2code": "XI", "value": "IDA"},
                "capitalCity": "",
                "longitude": "",
                "latitude": "",
            }
            for iso, name, region in places
        ]

    def series(self, code, year, column):
        rows = [(iso, name, 50.0 + column) for iso, name in AGGREGATES]
        rows += [
            (iso, name, None if (iso, code) in self.missing else float(self.values[k, column]))
            for k, (iso, name) in enumerate(COUNTRIES)
        ]
        return [
            {
                "indicator": {"id": code, "value": f"Made-up {code}"},
                "country": {"id": iso[:2], "value": name},
                "countryiso3code": iso,
                "date": year,
                "value": value,
                "unit": "",
                "obs_status": "",
                "decimal": 0,
            }
            for iso, name, value in rows
        ]


@pytest.fixture
def world_bank():
    from skcoral.datasets import WDI_SERIES

    codes = list(WDI_SERIES.values())
    bank = FakeWorldBank()

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *_):
            pass

        def send(self, body, status=200, headers=()):
            self.send_response(status)
            self.send_header("Content-Type", "application/json;charset=utf-8")
            self.send_header("Content-Length", str(len(body)))
            for name, value in headers:
                self.send_header(name, value)
            self.end_headers()
            try:
                self.wfile.write(body)
            except (BrokenPipeError, ConnectionResetError):
                self.close_connection = True

        def do_GET(self):
            bank.requests.append(self.path)
            url = urlsplit(self.path)
            query = {key: values[0] for key, values in parse_qs(url.query).items()}
            assert query["format"] == "json"
            page = int(query["page"])
            for (part, at), plan in bank.faults.items():
                if part in url.path and at == page and plan:
                    return plan.pop(0)(self)
            if url.path == "/v2/country":
                entries = bank.country_list()
            else:
                code = url.path.rsplit("/", 1)[1]
                if code not in codes:
                    message = {"id": "120", "key": "Invalid value", "value": "not valid"}
                    return self.send(json.dumps([{"message": [message]}]).encode())
                entries = bank.series(code, query["date"], codes.index(code))
            size = min(bank.page_size, int(query["per_page"]))
            head = {
                "page": page,
                "pages": -(-len(entries) // size),
                "per_page": str(size),
                "total": len(entries),
                "sourceid": "2",
                "lastupdated": "2026-07-01",
            }
            chunk = entries[(page - 1) * size : page * size]
            return self.send(json.dumps([head, chunk]).encode())

    class QuietServer(ThreadingHTTPServer):
        daemon_threads = True

    server = QuietServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    bank.url = f"http://127.0.0.1:{server.server_port}/v2"
    bank.answer = lambda body, status=200, headers=(): (
        lambda handler: handler.send(body, status, headers)
    )

    def late(handler):
        time.sleep(0.6)
        handler.send(b"[]")

    bank.late = late
    yield bank
    server.shutdown()
    thread.join()
    server.server_close()
