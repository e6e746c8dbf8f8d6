"""The sessions in the guides are true, and the example does what it says."""

import doctest
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.mark.parametrize("guide", ["transformer.md", "new_rows.md", "many_rows.md"])
def test_sessions(guide):
    text = (ROOT / "docs" / guide).read_text("utf-8")
    blocks = re.findall(r"```pycon\n(.*?)```", text, re.DOTALL)
    assert blocks
    session = doctest.DocTestParser().get_doctest("\n".join(blocks), {}, guide, guide, 0)
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    assert runner.run(session).failed == 0


def test_sites_fit_one_model_together():
    done = subprocess.run(
        [sys.executable, ROOT / "examples" / "federated_moments.py"],
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "fitted together: 178 rows" in done.stdout
    (difference,) = re.findall(r"pooled rows: (\S+)", done.stdout)
    assert float(difference) < 1e-12
