"""The stand-alone verifier, called as a function."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

PROGRAM = Path(__file__).parents[2] / "examples" / "verify_certificate.py"
VERIFIER = runpy.run_path(str(PROGRAM))


def problems(content: Any, matrix: Any) -> list[str]:
    """What the verifier finds wrong with a file."""
    wrong = VERIFIER["problems"]
    wrong.clear()
    try:
        VERIFIER["verify"](content, matrix)
    except (ValueError, LookupError, TypeError, ArithmeticError, AttributeError) as error:
        wrong.append(str(error))
    return list(wrong)
