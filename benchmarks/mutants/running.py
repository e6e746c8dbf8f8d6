"""Tests that are collected once, and run in a forked copy of the process for each bug."""

from __future__ import annotations

import ast
import contextlib
import hashlib
import os
import pickle
import resource
import select
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

Lines = set[tuple[str, int]]
_MEMORY = 6 * 2**30
_CALLS = 30  # of a function in one test; later ones are taken to execute the same lines


class Collected:
    """A pytest plugin: instead of running the tests it hands them to ``work``."""

    def __init__(self, work: Callable[[Collected], None]) -> None:
        self.work = work
        self.session: Any = None
        self.tracer: Tracer | None = None
        self.seconds: dict[str, float] = {}
        self.lines: dict[str, Lines] = {}

    def pytest_configure(self) -> None:
        """Random tests run with fixed seeds, and a failure is not made smaller."""
        from hypothesis import Phase, settings

        phases = [Phase.explicit, Phase.generate]
        settings.register_profile(
            "mutants", deadline=None, database=None, derandomize=True, phases=phases
        )
        settings.load_profile("mutants")

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: Any) -> bool:
        self.session = session
        self.work(self)
        return True

    @pytest.hookimpl(hookwrapper=True)
    def pytest_fixture_setup(self, fixturedef: Any, request: Any) -> Any:
        """What a shared fixture runs counts for every test that uses it."""
        if self.tracer is None:
            yield
            return
        before, self.tracer.seen = self.tracer.seen, set()
        yield
        key = (fixturedef.argname, fixturedef.baseid)
        self.tracer.shared.setdefault(key, set()).update(self.tracer.seen)
        self.tracer.seen = before | self.tracer.seen

    def survey(self, folder: Path, earlier: Path | None = None) -> None:
        """Run every test once, in a child, and learn which lines it executes and how long.

        What an ``earlier`` survey knows of the same source is taken over.
        """
        digest = hashlib.sha256()
        for file in sorted(folder.rglob("*.py")):
            digest.update(file.read_bytes())
        known: dict[str, Any] = {}
        if earlier is not None and earlier.exists():
            known = pickle.loads(earlier.read_bytes()).get(digest.digest(), {})
        names = {item.nodeid for item in self.session.items}
        outcome = in_child(lambda: self._survey(str(folder) + os.sep, set(known)), 3600.0)
        if outcome is None:
            raise SystemExit("the survey of the tests ended early")
        fresh, failed = outcome
        for name in failed:
            print(f"fails on the source as it is, and is left out: {name}")
            del fresh[name]
        known |= fresh
        if earlier is not None:
            earlier.write_bytes(pickle.dumps({digest.digest(): known}))
        known = {name: what for name, what in known.items() if name in names}
        self.seconds = {name: seconds for name, (seconds, _) in known.items()}
        self.lines = {name: lines for name, (_, lines) in known.items()}

    def _survey(self, folder: str, known: set[str]) -> tuple[dict[str, Any], list[str]]:
        self.tracer = tracer = Tracer(folder)
        seconds, lines, failed = {}, {}, []
        items = [item for item in self.session.items if item.nodeid not in known]
        for item in items:
            tracer.seen, tracer.calls, start = set(), {}, time.perf_counter()
            with tracer:
                if not self._passes([item]):
                    failed.append(item.nodeid)
            seconds[item.nodeid] = time.perf_counter() - start
            lines[item.nodeid] = tracer.seen
        for item in items:
            for name in item.fixturenames:
                for (argname, _), seen in tracer.shared.items():
                    if name == argname:
                        lines[item.nodeid] |= seen
        return {name: (seconds[name], lines[name]) for name in seconds}, failed

    def _passes(self, items: list[Any]) -> bool:
        before = self.session.testsfailed
        for item, following in zip(items, [*items[1:], None], strict=True):
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            if self.session.testsfailed > before:
                return False
        return True

    def killer(self, bug: Callable[[], None], names: Iterable[str], seconds: float) -> str:
        """The first of these tests that fails with the bug; "" if none does."""
        by_name = {item.nodeid: item for item in self.session.items}
        items = [by_name[name] for name in names]

        def run() -> str:
            try:
                bug()
            except Exception:  # a module that cannot be loaded is noticed
                return "import"
            for item in items:
                if not self._passes([item]):
                    return str(item.nodeid)
            return ""

        outcome = in_child(run, seconds)
        return "time or memory" if outcome is None else str(outcome)


class Tracer:
    """Collects the lines of one folder that are executed."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self.seen: Lines = set()
        self.calls: dict[Any, int] = {}
        self.shared: dict[tuple[str, str], Lines] = {}

    def __enter__(self) -> None:
        threading.settrace(self._call)
        sys.settrace(self._call)

    def __exit__(self, *_: object) -> None:
        sys.settrace(None)
        threading.settrace(None)  # type: ignore[arg-type]

    def _call(self, frame: Any, event: str, argument: Any) -> Any:
        code = frame.f_code
        if not code.co_filename.startswith(self.folder):
            return None
        calls = self.calls[code] = self.calls.get(code, 0) + 1
        return self._line if calls <= _CALLS else None

    def _line(self, frame: Any, event: str, argument: Any) -> Any:
        self.seen.add((frame.f_code.co_filename[len(self.folder) :], frame.f_lineno))
        return self._line


def in_child(work: Callable[[], Any], seconds: float) -> Any:
    """What ``work`` returns in a forked process; None if it takes too long or dies."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            os.setsid()
            silent = os.open(os.devnull, os.O_WRONLY)
            os.dup2(silent, 1), os.dup2(silent, 2)
            resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
            data = pickle.dumps(work())
            with os.fdopen(writer, "wb") as stream:
                stream.write(data)
            status = 0
        finally:
            os._exit(status)
    os.close(writer)
    data, deadline = b"", time.monotonic() + seconds
    with os.fdopen(reader, "rb") as stream:
        while (left := deadline - time.monotonic()) > 0:
            if select.select([stream], [], [], left)[0]:
                part = os.read(stream.fileno(), 1 << 20)
                if not part:
                    break
                data += part
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return pickle.loads(data) if data else None


def names_used(path: Path, names: tuple[str, ...]) -> set[int]:
    """Lines of a file that use one of these names."""
    tree = ast.parse(path.read_text("utf-8"))
    return {n.lineno for n in ast.walk(tree) if isinstance(n, ast.Name) and n.id in names}
