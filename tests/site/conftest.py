"""The site as `make docs` has built it."""

from pathlib import Path

import pytest

SITE = Path(__file__).parents[2] / "build" / "site"


@pytest.fixture(scope="session")
def site():
    if not (SITE / "index.html").exists():
        pytest.skip("the site is not built: make docs")
    return SITE
