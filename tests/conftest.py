"""Fixtures that several test files share."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent))

import conic

# Terminals, signals, pipes and limits of memory are those of POSIX in these files.
if sys.platform == "win32":
    collect_ignore = [
        "hostile",
        "cli/test_process.py",
        "tables/test_round_trips.py",
        "warm_command.py",
    ]
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
def warm() -> Iterator[Any]:
    """Runs ``coral`` in processes forked from one that has imported the libraries.

    None where there is no ``fork``.
    """
    if sys.platform == "win32":
        yield None
        return
    from warm_command import WarmCommand

    command = WarmCommand()
    yield command
    command.close()


@pytest.fixture(scope="session")
def coral(warm: Any) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run the ``coral`` command; returns the finished process with its output.

    The installed script is run on request, and where the environment needs a fresh interpreter.
    """
    command = Path(sys.executable).with_name("coral")

    def run(
        *arguments: Any,
        env: dict[str, str] | None = None,
        text: bool = True,
        installed: bool = False,
        **kwargs: Any,
    ) -> subprocess.CompletedProcess[Any]:
        kwargs.setdefault("timeout", 120)
        env = {"COLUMNS": "80", **(env or {})}
        kwargs.setdefault("encoding", "utf-8" if text else None)
        fresh = installed or any(name.startswith(("PYTHON", "LANG", "LC_")) for name in env)
        fresh = fresh or warm is None
        if not fresh and set(kwargs) <= {"cwd", "encoding", "input", "stdin", "timeout"}:
            return warm.run(arguments, env=env, **kwargs)
        if "input" not in kwargs and "stdin" not in kwargs:
            kwargs["stdin"] = subprocess.DEVNULL
        return subprocess.run(
            [str(command), *map(str, arguments)],
            capture_output=True,
            check=False,
            env={**os.environ, **env},
            **kwargs,
        )

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
