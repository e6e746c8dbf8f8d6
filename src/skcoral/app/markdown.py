"""Words from the data inside text that understands Markdown."""

from __future__ import annotations

import string

from skcoral.showing import printable

_ESCAPES = {ord(mark): f"\\{mark}" for mark in string.punctuation}


def plain(text: str) -> str:
    r"""Text shown as it is: no formatting, links, pictures, formulas or directives.

    Examples
    --------
    >>> print(plain("![x](y) $z$ :red[a]"))
    \!\[x\]\(y\) \$z\$ \:red\[a\]
    """
    text = printable(text, keep="\n")
    for mark in ("://", "www.", "@"):
        # Addresses become links whatever is escaped in them, unless something stands in between.
        text = text.replace(mark, f"{mark[0]}\N{WORD JOINER}{mark[1:]}")
    return text.translate(_ESCAPES).replace("\n", "  \n")


def clipped(text: str, limit: int = 300) -> str:
    """A message of bounded length."""
    return text if len(text) <= limit else text[: limit - 1] + "…"
