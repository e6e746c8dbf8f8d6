"""Metadata, locks, workflows and the environment that the Makefile builds."""

import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).parents[1]


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
    found = [Requirement(text) for group in groups for text in group]
    return [one for one in found if one.name != "scikit-coral"]


def test_core_needs_three_packages(project):
    core = {Requirement(text).name for text in project["project"]["dependencies"]}
    assert core == {"numpy", "scipy", "scikit-learn"}


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

    said = re.search(r"^version: (.*)$", (ROOT / "CITATION.cff").read_text("utf-8"), re.M)
    assert said[1] == skcoral.__version__


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


CORE_SESSION = """
import sys

class NoExtras:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in BLOCKED:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

BLOCKED = set(sys.argv[1:])
sys.meta_path.insert(0, NoExtras())

from skcoral import CORAL, decorrelate, frontier, maximize_fidelity, threshold
from skcoral.baselines import pca
from skcoral.certificates import check
from skcoral.datasets import load_wine

wine = load_wine()
R = wine.correlation
for result in (threshold(R), decorrelate(R, 0.8), decorrelate(R, 0.9), maximize_fidelity(R, 0.1)):
    assert check(result, R).passed
    repr(result)
assert len(frontier(R, [0.8, 0.9]).objective) == 2
assert CORAL().fit_transform(wine.data).shape == wine.data.shape
assert pca(R).min_fidelity < 0.25
"""


def test_the_core_works_without_any_extra(project):
    core = {canonicalize_name(Requirement(t).name) for t in project["project"]["dependencies"]}
    extras = {canonicalize_name(one.name) for one in declared(project)} - core
    modules = {"python-flint": "flint"}
    blocked = [modules.get(name, name.replace("-", "_")) for name in sorted(extras)]
    assert "pandas" in blocked
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", CORE_SESSION, *blocked],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


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
