"""Words from the data inside text that understands Markdown."""

from __future__ import annotations

import string

_ESCAPES = {ord(mark): f"\\{mark}" for mark in string.punctuation}


def plain(text: str) -> str:
    r"""Text shown as it is: no formatting, links, pictures, formulas or directives.

    Examples
    --------
    >>> print(plain("![x](http://a) $y$ :red[z]"))
    \!\[x\]\(http\:\/\/a\) \$y\$ \:red\[z\]
    """
    shown = "".join(
        c if c.isprintable() or c == "\n" else "\N{REPLACEMENT CHARACTER}" for c in text
    )
    return shown.translate(_ESCAPES).replace("\n", "  \n")


def clipped(text: str, limit: int = 300) -> str:
    """A message of bounded length."""
    return text if len(text) <= limit else text[: limit - 1] + "…"
