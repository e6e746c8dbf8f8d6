"""Interactive figures: Plotly inside the page, and the still picture for paper."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Callable
from importlib.resources import files
from typing import Any

Figure = dict[str, Any]
#: Puts a picture in the page: the still one, how to make the figure that answers, and its style.
Draw = Callable[..., str]


def still(picture: str, figure: Callable[[], Figure], style: str = "") -> str:
    """The picture alone."""
    return picture


def answering(picture: str, figure: Callable[[], Figure], style: str = "") -> str:
    """The figure; the picture is for paper and for browsers in which no script may run."""
    data = json.dumps(figure(), allow_nan=False, default=lambda array: array.tolist())
    # No name from the data can end the element that holds it.
    safe = data.replace("&", r"\u0026").replace("<", r"\u003c").replace(">", r"\u003e")
    return (
        f'<div class="still">{picture}</div>'
        f'<div class="live" style="{style}"><script type="application/json">{safe}</script></div>'
    )


def scripts() -> tuple[str, str]:
    """The scripts that draw, as HTML, and the policy that lets these run and no others."""
    from plotly.offline import get_plotlyjs

    own = files("skcoral.report").joinpath("live.js").read_text("utf-8")
    bodies = (get_plotlyjs(), own)
    policy = " ".join(f"'sha256-{_digest(body)}'" for body in bodies)
    return "".join(f"<script>{body}</script>\n" for body in bodies), f"script-src {policy}"


def _digest(script: str) -> str:
    return base64.b64encode(hashlib.sha256(script.encode("utf-8")).digest()).decode("ascii")
