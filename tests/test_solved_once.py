"""A matrix is judged once and its threshold solved once, whatever is asked about it."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from skcoral import CORAL, cli, decorrelate, frontier, maximize_fidelity, threshold
from skcoral.choosing import compare_floors

P = 6
TARGETS: list[dict[str, Any]] = [
    {"rho_min": None},
    {"rho_min": 0.3},
    {"rho_min": 0.97},
    {"budget": 0.0},
    {"budget": 0.2},
    {"max_vif": 1.0},
    {"max_vif": 1.5},
    {"max_correlation": 0.2},
    {"rho_min": 0.9, "support": 0.1},
    {"rho_min": 0.9, "covariance": "LedoitWolf"},
]


@pytest.fixture
def rows() -> Any:
    rng = np.random.default_rng(3)
    return rng.normal(size=(90, P)) @ (np.eye(P) + 0.6 * rng.normal(size=(P, P)))


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often ρ★ was solved for, and a matrix was judged: wherever these are called from."""
    count: Counter[str] = Counter()

    def counted(name: str, original: Callable[..., Any]) -> Callable[..., Any]:
        def function(R: Any, floors: Any = None, *args: Any, **kwargs: Any) -> Any:
            if name != "threshold" or floors is None:  # other floors are another problem
                count[name] += 1
            return original(R, floors, *args, **kwargs)

        return function

    for module in ("api", "app.problem", "solvers.support", "estimator", "solvers.tradeoff", "cli"):
        import_module(f"skcoral.{module}")
    originals = {
        "threshold": import_module("skcoral.solvers.exact.threshold").exact_threshold,
        "judgement": import_module("skcoral.core.problem").check_semidefinite,
    }
    for name, original in originals.items():
        replacement = counted(name, original)
        for module in [m for key, m in sys.modules.items() if key.startswith("skcoral")]:
            for attribute, value in list(vars(module).items()):
                if value is original:
                    monkeypatch.setattr(module, attribute, replacement)
    return count


@pytest.mark.parametrize(
    ("ask", "thresholds"),
    [
        (threshold, 1),
        (decorrelate, 1),
        (lambda R: decorrelate(R, 0.3), 0),
        (lambda R: decorrelate(R, 0.97), 0),
        (lambda R: decorrelate(R, 0.97, criterion="worst"), 0),
        (lambda R: decorrelate(R, 0.97, support=0.1), 1),
        (lambda R: maximize_fidelity(R, 0.2), 1),
        (lambda R: maximize_fidelity(R, 0.0), 1),
        (lambda R: maximize_fidelity(R, 0.2, criterion="absolute"), 1),
        (lambda R: maximize_fidelity(R, 1.0, criterion="vif"), 1),
        (lambda R: maximize_fidelity(R, 1.5, criterion="vif"), 1),
        (frontier, 1),
        (compare_floors, 1),
    ],
)
def test_functions(
    ask: Callable[[Any], Any], thresholds: int, rows: Any, calls: Counter[str]
) -> None:
    ask(np.corrcoef(rows.T))
    assert (calls["judgement"], calls["threshold"]) == (1, thresholds)


@pytest.mark.parametrize("target", TARGETS, ids=str)
def test_estimator(target: dict[str, Any], rows: Any, calls: Counter[str]) -> None:
    CORAL(**target).fit(rows)
    assert calls == {"judgement": 1, "threshold": 1}


def test_estimator_with_confidence(rows: Any, calls: Counter[str]) -> None:
    """Each fit to a part of the rows judges its own matrix and needs no threshold."""
    plain = CORAL(rho_min=0.9).fit(rows)
    calls.clear()
    raised = CORAL(rho_min=0.9, confidence=0.9).fit(rows)
    assert raised.floors_.min() > plain.floors_.min()
    assert calls["threshold"] == 1


@pytest.mark.parametrize("kind", ["rows", "matrix"])
@pytest.mark.parametrize(
    "options",
    [[], ["--rho-min", "0.97"], ["--budget", "0.2"], ["--max-vif", "1.5"], ["--support", "0.1"]],
    ids=str,
)
def test_command(
    kind: str, options: list[str], rows: Any, calls: Counter[str], tmp_path: Path, capsys: Any
) -> None:
    names = [f"v{j}" for j in range(P)]
    table = tmp_path / "table.csv"
    values = rows if kind == "rows" else np.corrcoef(rows.T)
    np.savetxt(table, values, fmt="%.17g", delimiter=",", header=",".join(names), comments="")
    assert cli.main(["fit", str(table), *options, "--json"]) in (0, 4)
    # the checker of the certificate trusts nobody and judges the matrix for itself
    assert calls == {"judgement": 2, "threshold": 1}


@pytest.mark.parametrize("chosen", [{}, {"rho_min": 0.97}, {"budget": 0.2}], ids=str)
def test_app(chosen: dict[str, Any], wine_csv: Path, calls: Counter[str]) -> None:
    from skcoral.app.problem import pose, request_of
    from skcoral.app.settings import Settings
    from skcoral.app.sources import read_file

    source = read_file(wine_csv.read_bytes(), "wine.csv", key="wine")
    problem = pose(source, request_of(Settings()))
    threshold(problem.data.estimate)
    problem.data.fit(chosen, thorough=False)
    compare_floors(problem.data.estimate)
    assert calls == {"judgement": 1, "threshold": 1}
