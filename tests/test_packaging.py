"""Metadata, locks, workflows and the environment that the Makefile builds."""

import re
import runpy
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import numpy as np
import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from skcoral.datasets import load_wine

ROOT = Path(__file__).parents[1]
DEMO = ROOT / "examples" / "demo.py"


@pytest.fixture(scope="module")
def project():
    return tomllib.loads((ROOT / "pyproject.toml").read_text())


def pins(name):
    """Pinned versions in a requirements file; several where they depend on the platform."""
    out = {}
    for line in (ROOT / "requirements" / name).read_text().splitlines():
        if line and not line.startswith("#"):
            requirement = Requirement(line)
            (pin,) = requirement.specifier
            assert pin.operator == "==", line
            out.setdefault(canonicalize_name(requirement.name), []).append(Version(pin.version))
    return out


def declared(project):
    groups = [
        project["project"]["dependencies"],
        *project["project"]["optional-dependencies"].values(),
    ]
    requirements = [Requirement(text) for group in groups for text in group]
    return [one for one in requirements if one.name != "scikit-coral"]


def test_lowest_environment_has_the_lowest_declared_versions(project):
    lowest = pins("lowest.txt")
    for requirement in declared(project):
        (floor,) = requirement.specifier
        assert floor.operator == ">=", requirement
        assert lowest[canonicalize_name(requirement.name)] == [Version(floor.version)], requirement


def test_locked_versions_are_in_the_declared_ranges(project):
    locked = pins("test.lock")
    for requirement in declared(project):
        versions = locked[canonicalize_name(requirement.name)]
        assert all(version in requirement.specifier for version in versions), requirement


@pytest.mark.parametrize("name", ["test.lock", "lowest.txt"])
def test_locks_name_no_host(name):
    text = (ROOT / "requirements" / name).read_text()
    assert "://" not in text
    assert "--" not in text


def test_the_citation_names_the_version_of_the_package():
    import skcoral

    version = re.search(r"^version: (.*)$", (ROOT / "CITATION.cff").read_text("utf-8"), re.M)
    assert version[1] == skcoral.__version__


def test_workflows_run_pinned_actions_with_few_rights_on_every_python(project):
    (lowest,) = Requirement("python" + project["project"]["requires-python"]).specifier
    for path in (ROOT / ".github" / "workflows").glob("*.yml"):
        work = yaml.safe_load(path.read_text("utf-8"))
        assert work["permissions"] == {"contents": "read"}
        assert work["concurrency"]["cancel-in-progress"]
        steps = [step for job in work["jobs"].values() for step in job["steps"]]
        assert all(re.search(r"@v\d+\.\d+\.\d+$", step["uses"]) for step in steps if "uses" in step)
    matrix = work["jobs"]["tests"]["strategy"]["matrix"]
    assert matrix["python"][0] == lowest.version
    assert [system.partition("-")[0] for system in matrix["os"]] == ["ubuntu", "macos", "windows"]


def test_pre_commit_uses_the_locked_linter():
    hooks = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text("utf-8"))["repos"]
    (ruff,) = (repo["rev"] for repo in hooks if repo["repo"].endswith("ruff-pre-commit"))
    assert [Version(ruff)] == pins("test.lock")["ruff"]


def test_no_private_module_of_scikit_learn_is_imported():
    private = re.compile(r"(from|import) sklearn[\w.]*\._|from sklearn[\w.]* import (\w+, )*_")
    for path in (ROOT / "src").rglob("*.py"):
        assert not private.search(path.read_text("utf-8")), path


NO_EXTRAS = """
import sys

class NoExtras:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in BLOCKED:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

BLOCKED = set(sys.argv[1:])
sys.meta_path.insert(0, NoExtras())
"""
CORE_SESSION = """
from skcoral import decorrelate, frontier, maximize_fidelity, threshold
from skcoral.certificates import check
from skcoral.datasets import load_wine

wine = load_wine()
R = wine.correlation
for result in (threshold(R), decorrelate(R, 0.8), decorrelate(R, 0.9), maximize_fidelity(R, 0.1)):
    assert check(result, R).passed
    repr(result)
assert len(frontier(R, [0.8, 0.9]).objective) == 2
"""


@pytest.fixture(scope="module")
def extras(project):
    """Import names of all packages that an extra brings."""
    core = {canonicalize_name(Requirement(t).name) for t in project["project"]["dependencies"]}
    assert core == {"numpy", "scipy", "scikit-learn"}
    names = {canonicalize_name(one.name) for one in declared(project)} - core
    modules = {"python-flint": "flint"}
    return [modules.get(name, name.replace("-", "_")) for name in sorted(names)]


def test_core_and_demo_need_no_extra(extras, tmp_path):
    """The demo prints its four parts in order, and writes files with the figures on the screen."""
    demo = f"import runpy; runpy.run_path({str(DEMO)!r}, run_name='__main__')"
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", NO_EXTRAS + CORE_SESSION + demo, *extras],
        cwd=tmp_path,
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert done.returncode == 0, done.stderr
    parts = ["1. The table", "2. The recommendation", "3. What was done", "4. The files"]
    places = [done.stdout.index(part) for part in parts]
    assert places == sorted(places)
    assert "passed" in done.stdout
    assert "0.82623" in done.stdout  # the paper's threshold
    wine = load_wine()
    for name in (*wine.names, "ZCA-cor", "PCA"):
        assert name in done.stdout

    folder = tmp_path / "demo"
    assert all(str(path.relative_to(tmp_path)) in done.stdout for path in folder.iterdir())
    outputs = np.loadtxt(folder / "wine_decorrelated.csv", delimiter=",", skiprows=1)
    (floor,) = {float(f) for f in re.findall(r"rho_min=([0-9.]+)", done.stdout)}
    both = np.corrcoef(wine.data.T, outputs.T)
    assert np.diag(both[:13, 13:]).min() >= floor - 1e-10
    largest = np.abs(both[13:, 13:] - np.eye(13)).max()
    assert f"0.86 → {largest:.2f}" in done.stdout
    T = np.loadtxt(
        folder / "wine_transformation.csv", delimiter=",", skiprows=1, usecols=range(1, 14)
    )
    Z = (wine.data - wine.data.mean(axis=0)) / wine.data.std(axis=0, ddof=1)
    np.testing.assert_allclose(Z @ T, outputs, atol=1e-12)


def test_the_demo_leaves_an_earlier_table_alone_when_it_cannot_finish(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("demo").write_text("in the way")
    with pytest.raises(FileExistsError):
        runpy.run_path(str(DEMO), run_name="__main__")
    assert Path("demo").read_text() == "in the way"


@pytest.mark.skipif(shutil.which("make") is None, reason="needs make")
def test_half_an_environment_is_not_left_behind(tmp_path):
    """Without ensurepip, as on a bare Debian, `python -m venv` fails after making bin/python."""
    python = tmp_path / "python"
    python.write_text(
        f'''#!/bin/sh
        if [ "$2" = venv ]; then mkdir -p "$3/bin"; touch "$3/bin/python"; exit 1; fi
        exec "{sys.executable}" "$@"
        '''
    )
    python.chmod(0o755)
    venv = tmp_path / "venv"
    done = subprocess.run(
        ["make", "--directory", ROOT, f"VENV={venv}", f"PYTHON={python}", f"{venv}/bin/python"],
        capture_output=True,
        check=False,
    )
    assert done.returncode != 0
    assert not venv.exists()
