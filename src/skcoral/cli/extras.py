"""``coral demo``, ``coral reproduce`` and ``coral app``."""

from __future__ import annotations

import importlib.util
import os
import socket
import sys
from pathlib import Path

import numpy as np

from skcoral.cli import console
from skcoral.cli.running import NOT_CERTIFIED, OK, UsageError
from skcoral.limits import lift_deadline

_DEMO_FLOOR = 0.85


def demo(folder: Path, *, force: bool, as_json: bool) -> int:
    """Decorrelate the Wine data, compare with the classical methods, and leave the files."""
    from skcoral import baselines, report, words
    from skcoral.datasets import load_wine
    from skcoral.estimator import CORAL
    from skcoral.models.files import save_model
    from skcoral.tables.staging import Outputs
    from skcoral.tables.writing import table_writer

    files = {
        name: folder / name
        for name in ("wine.csv", "decorrelated.csv", "model.json", "report.html")
    }
    folder.mkdir(parents=True, exist_ok=True)
    with Outputs(force=force) as outputs:
        for path in files.values():
            outputs.reserve(path)
        wine = load_wine()
        X = wine.to_frame()
        estimator = CORAL(rho_min=_DEMO_FLOOR).fit(X)
        result, th = estimator.result_, estimator.threshold_
        tables = {"wine.csv": wine.data, "decorrelated.csv": np.asarray(estimator.transform(X))}
        for name, values in tables.items():
            with outputs.open(files[name]) as stream:
                writer = table_writer(stream, wine.names, path=name)
                writer.write(list(values.T))
                writer.close()
        save_model(estimator, outputs.staged(files["model.json"]))
        commands = (
            f"coral inspect {files['wine.csv']}\n"
            f"coral fit {files['wine.csv']} --rho-min {_DEMO_FLOOR} -o out.csv --report report.html"
        )
        with console.progress("Making the report"):
            facts = report.gather(
                estimator,
                X=X,
                title="Decorrelation of Wine",
                file="wine.csv",
                command=commands,
            )
        outputs.write_text(files["report.html"], report.render(facts))
        outputs.commit()
    R = estimator.correlation_
    others = {
        "ρ★": th.fidelity,
        "ZCA-cor": baselines.zca_cor(R).fidelity,
        "PCA": baselines.pca(R).fidelity,
    }
    if as_json:
        console.machine(
            {
                "threshold": {"value": th.value, "lower": th.lower, "upper": th.upper},
                "rho_min": _DEMO_FLOOR,
                "measured": estimator.measured_.to_dict(),
                "objective": result.objective,
                "lower_bound": result.lower_bound,
                "certified": words.is_certified(result),
                "names": list(wine.names),
                "fidelity": {"CORAL": result.fidelity} | others,
                "written": [str(path) for path in files.values()],
            }
        )
        return OK if words.is_certified(result) else NOT_CERTIFIED
    console.say(f"Wine: {len(wine.data)} wines, {len(wine.names)} measurements ({wine.source}).")
    console.say(console.bold(estimator.measured_.headline(), "green"))
    console.say(words.certificate(result))
    console.say(words.threshold(th))
    console.say("")
    rows = [
        (name, *(console.number(f[j]) for f in (result.fidelity, *others.values())))
        for j, name in enumerate(wine.names)
    ]
    weakest = ("weakest", *(console.number(f.min()) for f in (result.fidelity, *others.values())))
    console.table(("fidelity", f"floor {_DEMO_FLOOR}", *others), [*rows, weakest])
    console.say("")
    console.say(words.beside_zca(th.fidelity, others["ZCA-cor"]))
    console.say(f"Written to {folder}: {', '.join(files)}")
    console.say("Go on with:")
    for line in commands.splitlines():
        console.copyable(f"  {line}")
    return OK if words.is_certified(result) else NOT_CERTIFIED


def reproduce(table: str, *, output: Path | None, force: bool, as_json: bool) -> int:
    """Recompute the tables of the paper and show both numbers side by side."""
    from skcoral import paper
    from skcoral.tables.staging import Outputs

    if table.isdigit() and 1 <= int(table) <= len(paper.TABLES):
        table = paper.TABLES[int(table) - 1]
    if output is not None and output.suffix.lower() not in (".md", ".html"):
        raise UsageError(f"{output}: the comparison is written as .md or .html.\nUse one of them.")
    with Outputs(force=force) as outputs:
        if output is not None:
            outputs.reserve(output)
        with console.progress("Recomputing the paper's numbers"):
            comparison = paper.reproduce(table)
        if output is not None:
            html = output.suffix.lower() == ".html"
            outputs.write_text(output, comparison.to_html() if html else comparison.to_markdown())
        outputs.commit()
    status = NOT_CERTIFIED if comparison.counts.get("unexplained") else OK
    if as_json:
        fields = ("table", "row", "column", "paper", "ours", "difference", "verdict", "gap", "why")
        console.machine(
            {
                "counts": comparison.counts,
                "seconds": comparison.seconds,
                "cells": [{name: getattr(row, name) for name in fields} for row in comparison.rows],
                "written": [] if output is None else [str(output)],
            }
        )
        return status
    for label in dict.fromkeys(row.table for row in comparison.rows):
        rows = [row for row in comparison.rows if row.table == label]
        console.table(
            (label, "paper", "ours", "verdict"),
            [(f"{row.row}, {row.column}", row.paper, _ours(row.ours), row.verdict) for row in rows],
        )
        console.say("")
    counts = ", ".join(f"{count} {verdict}" for verdict, count in comparison.counts.items())
    console.say(f"{len(comparison.rows)} cells: {counts}; {comparison.seconds:.1f} s.")
    if output is not None:
        console.say(f"Written: {output}")
    return status


def _ours(value: float | str) -> str:
    return value if isinstance(value, str) else f"{value:.6g}"


def app(*, host: str, port: int, browser: bool, as_json: bool) -> int:
    """Start the web app in this process's place, on this machine only unless told otherwise."""
    if importlib.util.find_spec("streamlit") is None:
        raise UsageError(
            "the web app needs the package 'streamlit', which is not installed.\n"
            'Install it with: pip install "scikit-coral[app]"'
        )
    _refuse_taken(host, port)
    command = app_command(host=host, port=port, browser=browser)
    address = f"http://{host}:{port}"
    if as_json:
        console.machine({"address": address, "process": os.getpid()})
    else:
        console.say(f"coral app on {address} (stop with Ctrl-C)", stderr=True)
    sys.stdout.flush()
    lift_deadline()
    os.execv(command[0], command)


def _refuse_taken(host: str, port: int) -> None:
    """Refuse an address that cannot be listened on, before the server says so in its own way."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        with socket.socket(family, socket.SOCK_STREAM) as trial:
            trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            trial.bind((host, port))
    except OSError as error:
        raise UsageError(
            f"the app cannot listen on {host}, port {port} ({error.strerror or error}).\n"
            "Name another one: --port takes a number, --host an address of this machine."
        ) from error


def app_command(*, host: str, port: int, browser: bool) -> list[str]:
    """The command that serves the app: bound to ``host``, usage statistics off."""
    from skcoral import app

    return [
        sys.executable,
        "-m",
        "skcoral.app.server",
        "run",
        str(Path(app.__path__[0]) / "main.py"),
        f"--server.address={host}",
        f"--server.port={port}",
        f"--server.headless={'false' if browser else 'true'}",
        *app.SERVER_OPTIONS,
    ]
