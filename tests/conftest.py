"""Fixtures that several test files share."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

# Helpers beside the tests are imported by their names.
HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE / "hostile"), str(HERE / "app")]

# Terminals, signals, pipes and limits of memory are those of POSIX in these files.
if sys.platform == "win32":
    collect_ignore = ["hostile", "cli/test_process.py", "tables/test_round_trips.py"]
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
CHROMIUM_FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]
ARTIFACTS = Path(__file__).parents[1] / "artifacts"

# Figures made by tests never open a window.
os.environ["MPLBACKEND"] = "Agg"
# The processes that tests start load compiled modules.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)


@pytest.fixture(scope="session")
def wine() -> Any:
    """The Wine data: ``data``, ``names``, ``correlation``."""
    from skcoral.datasets import load_wine

    return load_wine()


@pytest.fixture(scope="session")
def wine_csv(tmp_path_factory: pytest.TempPathFactory, wine: Any) -> Path:
    """The Wine data as a CSV file; not to be written to."""
    path = tmp_path_factory.mktemp("wine") / "wine.csv"
    header = ",".join(wine.names)
    np.savetxt(path, wine.data, fmt="%.17g", delimiter=",", header=header, comments="")
    return path


def semidefinite_optimum(
    R: np.ndarray, floors: Any, criterion: str = "squared", omega: np.ndarray | None = None
) -> float:
    """The least residual at the floors, by cvxpy and Clarabel: an independent solver."""
    import cvxpy as cp

    import conic

    p = len(R)
    omega = np.ones((p, p)) if omega is None else omega
    C, G = cp.Variable((p, p)), cp.Variable((p, p), symmetric=True)
    gram = cp.bmat([[R, C], [C.T, G]])
    rows, cols = np.triu_indices(p, 1)
    pairs = cp.multiply(G[rows, cols], np.ones(len(rows)))
    weights = omega[rows, cols]
    loss = {
        "squared": cp.sum(cp.multiply(weights, cp.square(pairs))),
        "worst": cp.max(cp.multiply(weights, cp.abs(pairs))),
        "absolute": cp.sum(cp.multiply(weights, cp.abs(pairs))),
    }[criterion]
    problem = cp.Problem(cp.Minimize(loss), [gram >> 0, cp.diag(G) == 1, cp.diag(C) >= floors])
    tight = {"tol_gap_abs": 1e-9, "tol_gap_rel": 1e-9, "tol_feas": 1e-9}
    return conic.solve(problem, **tight)


@pytest.fixture(scope="session")
def conic_optimum() -> Callable[..., float]:
    """The least residual at given floors, by a conic solver that is not ours."""
    return semidefinite_optimum


@pytest.fixture(scope="session")
def coral() -> Callable[..., subprocess.CompletedProcess[Any]]:
    """Run the installed ``coral`` in a process of its own; returns it finished, with its output."""
    command = Path(sys.executable).with_name("coral")

    def run(
        *arguments: Any, env: dict[str, str] | None = None, **how: Any
    ) -> subprocess.CompletedProcess[Any]:
        usual = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "encoding": "utf-8"}
        if "input" not in how:
            usual["stdin"] = subprocess.DEVNULL
        return subprocess.run(
            [str(command), *map(str, arguments)],
            check=False,
            env={**os.environ, "COLUMNS": "80", **(env or {})},
            **(usual | {"timeout": 120} | how),
        )

    return run


@pytest.fixture
def main(monkeypatch: pytest.MonkeyPatch, capsys: Any) -> Callable[..., tuple[int, str, str]]:
    """Run the command in this process; returns its status, output and errors."""
    monkeypatch.setenv("COLUMNS", "80")

    def run(*arguments: Any) -> tuple[int, str, str]:
        from skcoral import cli

        before = signal.getsignal(signal.SIGTERM)
        try:
            status = cli.main([str(argument) for argument in arguments])
        finally:
            signal.signal(signal.SIGTERM, before)
        return status, *capsys.readouterr()

    return run


@pytest.fixture
def answer(main: Callable[..., tuple[int, str, str]]) -> Callable[..., tuple[int, Any]]:
    """Run the command in this process with ``--json``; returns its status and its answer."""

    def run(*arguments: Any) -> tuple[int, Any]:
        status, out, _ = main(*arguments, "--json")
        return status, json.loads(out)

    return run


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """A headless Chromium, driven through Playwright; tests that use it carry ``browser``."""
    if CHROMIUM is None:
        pytest.skip("Chromium is not installed")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(
            executable_path=CHROMIUM, headless=True, args=CHROMIUM_FLAGS
        )
        yield chromium
        chromium.close()


@pytest.fixture(scope="module")
def visit(browser: Any) -> Iterator[Callable[..., Any]]:
    """Open a page in a window of its own; its requests, and what goes wrong on it, are kept."""
    contexts = []

    def go(address: str, width: int = 1280, scheme: Any = "light", script: str = "") -> Any:
        size: Any = {"width": width, "height": 900}
        context = browser.new_context(viewport=size, color_scheme=scheme, reduced_motion="reduce")
        contexts.append(context)
        context.add_init_script(script)
        page = context.new_page()
        page.set_default_timeout(60_000)
        page.requests, page.problems = [], []
        wrong = page.problems.append
        page.on("request", lambda request: page.requests.append(request.url))
        page.on("requestfailed", lambda request: wrong(f"failed: {request.url}"))
        page.on("response", lambda r: r.status < 400 or wrong(f"{r.status}: {r.url}"))
        page.on("pageerror", lambda error: wrong(f"script: {error}"))
        page.on("dialog", lambda dialog: wrong(f"dialog: {dialog.message}"))
        page.on("console", lambda m: m.type in ("log", "info", "debug") or wrong(m.text))
        page.goto(address)
        return page

    yield go
    for context in contexts:
        context.close()


@pytest.fixture(scope="session")
def artifacts() -> Path:
    """Folder for what a person may want to look at; ignored by git."""
    ARTIFACTS.mkdir(exist_ok=True)
    return ARTIFACTS


@pytest.fixture(scope="session")
def photograph(artifacts: Path) -> Callable[..., None]:
    """Keep a picture of a page among the artifacts, where ``CORAL_SCREENSHOTS`` is set."""

    def keep(page: Any, name: str, **how: Any) -> None:
        if os.environ.get("CORAL_SCREENSHOTS"):
            page.screenshot(path=artifacts / name, **how)

    return keep
