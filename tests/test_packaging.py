import tomllib
from pathlib import Path

import pytest
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
