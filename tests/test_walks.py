"""How many files a reader goes through to follow one call: those whose functions run."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import skcoral
from skcoral import CORAL, decorrelate

ROOT = str(Path(skcoral.__file__).parent)
PAGE = Path(__file__).parents[1] / "docs" / "development" / "architecture.md"
ROWS = np.random.default_rng(0).normal(size=(200, 6)) @ np.random.default_rng(1).normal(size=(6, 6))


def files_of(call: Callable[[], Any]) -> set[str]:
    """The files of this package with a function that runs, imports aside."""
    call()  # so that modules that are imported when needed are there
    files = set()

    def watch(frame: Any, event: str, _: Any) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(ROOT) and code.co_name != "<module>":
            files.add(str(Path(code.co_filename).relative_to(ROOT)))

    before = sys.getprofile()
    sys.setprofile(watch)
    try:
        call()
    finally:
        sys.setprofile(before)
    return files


@pytest.mark.parametrize(
    ("call", "most"),
    [
        (lambda: decorrelate(np.corrcoef(ROWS.T), 0.95), 20),
        (lambda: CORAL(0.9).fit(ROWS), 29),
    ],
    ids=["decorrelate", "fit"],
)
def test_walks_stay_short_and_are_on_the_page(call: Callable[[], Any], most: int) -> None:
    files = files_of(call)
    assert 10 < len(files) <= most, sorted(files)
    walks = PAGE.read_text("utf-8").partition("### Two walks\n")[2].partition("\n## ")[0]
    assert str(len(files)) in walks
    assert {Path(file).name for file in files} <= set(re.findall(r"\w+\.py", walks))
