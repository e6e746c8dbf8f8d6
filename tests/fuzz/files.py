"""Tables and files of no known origin: text, workbooks, Parquet files and models, and damage."""

from __future__ import annotations

import gzip
import io
import json
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

CELLS = [
    "", "1", "-2.5", "1e400", "1e-400", "nan", "inf", "NA", "1,5", "1.234,5", "$3", "12 %", "abc",
    "=1+1", '"', "'", "\r", "\n", "\t", "\x00", "\u2028", "\ufeff", "😀", "0x10", "1_000", "TRUE",
    "2020-01-01", "9" * 400, "x" * 5000, "_x000D_", "\x1b[31m", "../../etc/passwd", "<b>", "{}",
]  # fmt: skip


def text_table(rng: Any) -> bytes:
    """Rows of odd cells, more or less a table."""
    width, n = int(rng.integers(1, 7)), int(rng.integers(0, 12))
    mark = str(rng.choice([",", ";", "\t", "|", " "]))
    lines = [mark.join(f"c{j}" for j in range(width))]
    for _ in range(n):
        many = width if rng.random() < 0.9 else int(rng.integers(0, 9))
        row = [
            str(rng.choice(CELLS)) if rng.random() < 0.2 else f"{rng.normal():.3f}"
            for _ in range(many)
        ]
        lines.append(mark.join(f'"{c}"' if rng.random() < 0.2 else c for c in row))
    encoding = str(rng.choice(["utf-8", "utf-8-sig", "utf-16", "utf-32", "latin-1"]))
    data = str(rng.choice(["\n", "\r\n", "\r"])).join(lines).encode(encoding, errors="replace")
    return gzip.compress(data) if rng.random() < 0.1 else data


def parquet_table(rng: Any) -> bytes:
    """Columns of several types."""
    n = int(rng.integers(0, 9))
    makers = [
        lambda: rng.normal(size=n),
        lambda: rng.integers(0, 3, size=n),
        lambda: [str(rng.choice(CELLS)) for _ in range(n)],
        lambda: pa.array([None] * n, pa.null()),
        lambda: pa.array([[1.0]] * n, pa.list_(pa.float64())),
        lambda: pa.array([True] * n, pa.bool_()),
        lambda: pa.array([2**62] * n, pa.timestamp("ns")),
        lambda: pa.array([{"x": 1}] * n, pa.struct([("x", pa.int8())])),
    ]
    columns = {f"c{j}": makers[int(rng.integers(len(makers)))]() for j in range(5)}
    stream = io.BytesIO()
    pq.write_table(pa.table(columns), stream)
    return stream.getvalue()


def workbook(rng: Any) -> bytes:
    """A sheet as the library writes it."""
    from skcoral.tables.writing import table_writer

    stream = io.BytesIO()
    writer = table_writer(stream, ["a", "b", "note"], path="t.xlsx")
    n = int(rng.integers(1, 8))
    notes = [str(rng.choice(CELLS))[:1000] for _ in range(n)]
    writer.write([rng.normal(size=n), rng.normal(size=n), notes])
    writer.close()
    return stream.getvalue()


def damaged(rng: Any, data: bytes) -> bytes:
    """The same with some bytes changed, cut out, doubled or cut off."""
    out = bytearray(data)
    for _ in range(int(rng.integers(0, 4))):
        if not out:
            break
        at, size = int(rng.integers(len(out))), int(rng.integers(1, 64))
        kind = rng.integers(4)
        if kind == 0:
            out[at] = int(rng.integers(256))
        elif kind == 1:
            del out[at : at + size]
        elif kind == 2:
            out[at:at] = out[at : at + size]
        else:
            del out[at:]
    return bytes(out)


def altered_json(rng: Any, model: dict[str, Any]) -> str:
    """A model, or another file of JSON, with one value somewhere replaced by another one."""
    values = [None, True, -1, 0, 1e308, "x", [], {}, {"$float": "nan"}, [[1]], 10**30, -0.5]
    content = json.loads(json.dumps(model))
    node, place = content.get("content", content), "result"
    for _ in range(int(rng.integers(1, 9))):
        keys = list(node) if isinstance(node, dict) else range(len(node))
        if not keys:
            break
        step = list(keys)[int(rng.integers(len(keys)))]
        if not isinstance(node[step], dict | list) or not node[step]:
            place = step
            break
        parent, node, place = node, node[step], step
        if rng.random() < 0.2:
            node = parent
            break
    if isinstance(node, dict) and place not in node:
        return json.dumps(content)
    if isinstance(node, list) and not (isinstance(place, int) and place < len(node)):
        return json.dumps(content)
    node[place] = values[int(rng.integers(len(values)))]
    return json.dumps(content)


KINDS = {"csv": text_table, "parquet": parquet_table, "xlsx": workbook}


def table_file(rng: Any) -> tuple[str, bytes]:
    """A name and its content, damaged half of the time."""
    ending = str(rng.choice(list(KINDS)))
    data = KINDS[ending](rng)
    return f"t.{ending}", damaged(rng, data) if rng.random() < 0.5 else data


def finite_table(rng: Any) -> np.ndarray:
    """Numbers of very different sizes, sometimes constant, copied or far from zero."""
    n, p = int(rng.integers(1, 40)), int(rng.integers(1, 7))
    X = rng.normal(size=(n, p)) * 10.0 ** rng.uniform(-150, 150, size=p)
    X += 10.0 ** rng.uniform(-3, 9, size=p) * np.abs(X).max(axis=0)
    if rng.random() < 0.2:
        X[:, -1] = X[:, 0]
    if rng.random() < 0.2:
        X[:, 0] = 5.0
    if rng.random() < 0.1:
        X[0, 0] = rng.choice([np.nan, np.inf])
    return X
