"""The app in this process, without a server: what a visitor sees as text."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

SCRIPT = Path(find_spec("skcoral.app").submodule_search_locations[0]) / "main.py"


@pytest.fixture(scope="session")
def script() -> Path:
    """The script that Streamlit runs."""
    return SCRIPT


@pytest.fixture
def open_app() -> Callable[..., AppTest]:
    """Open a link of the app; whatever happens must be told in words."""

    def opened(tab: str | None = None, **query: Any) -> AppTest:
        at = AppTest.from_file(str(SCRIPT), default_timeout=60)
        at.query_params.update(query)
        if tab is not None:
            at.session_state["tab"] = tab
        return calm(at.run())

    return opened


@pytest.fixture
def bring(open_app) -> Callable[..., AppTest]:
    """Upload a file."""

    def brought(name: str, data: bytes, **query: Any) -> AppTest:
        at = open_app(source="upload", **query)
        at.file_uploader(key="file").set_value((name, data, "application/octet-stream"))
        return calm(at.run())

    return brought


def calm(at: AppTest) -> AppTest:
    """Assert that no traceback is shown."""
    assert not at.exception, [e.value for e in at.exception]
    return at


@pytest.fixture
def metric() -> Callable[[AppTest, str], float]:
    """A number of the main view."""

    def value(at: AppTest, label: str) -> float:
        return float(next(m.value for m in at.metric if m.label == label))

    return value


@pytest.fixture
def slider() -> Callable[[AppTest, str], Any]:
    """A slider by the beginning of its label."""

    def found(at: AppTest, beginning: str) -> Any:
        return next(s for s in at.slider if s.label.startswith(beginning))

    return found
