"""What a visitor has chosen, and the same as the query of a link that reopens the view."""

from __future__ import annotations

import base64
import binascii
import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skcoral._requirements import whole_number
from skcoral.margins import MARGINS
from skcoral.moments import WEIGHT_KINDS
from skcoral.words import CRITERIA

SOURCES = {
    "wine": "Example: Wine",
    "wdi": "Example: World Bank",
    "simulated": "Example: simulated",
    "upload": "A file of your own",
    "paste": "A correlation matrix",
}
MODES = {"floor": "Floor", "budget": "Budget", "support": "Support"}
#: What each mode does, in half a sentence.
EXPLAINED = {
    "floor": "say what every output keeps",
    "budget": "say how much may be left",
    "support": "say which source enters where",
}
LARGEST_SIMULATION = 100


@dataclass(frozen=True)
class Settings:
    """The choices behind a view.

    Attributes
    ----------
    source, mode, criterion : str
        Keys of ``SOURCES``, ``MODES`` and ``CRITERIA``.
    size : int
        Variables of the simulated system.
    floor, budget : float
        Common floor, and residual allowed in the budget mode.
    confidence, groups, block : float, str and str
        Floor mode: confidence with which floors hold for the population (0: none), the column of
        clusters, and the rows of a block of time ("auto" or a number).
    own : tuple of (str, float)
        Floors of single variables.
    link, mask : float and str
        Support mode: sources with a larger correlation may enter an output; the edited mask
        as text, empty when ``link`` decides.
    without, include : tuple of str
        Columns of numbers that are not variables, and columns that are variables although they
        look like ids or years.
    weights, weight_kind, shrinkage, margins : str
        As :class:`skcoral.CORAL` takes them; "" or "none" for none.
    """

    source: str = "wine"
    size: int = 18
    mode: str = "floor"
    floor: float = 0.85
    budget: float = 0.1
    criterion: str = "squared"
    confidence: float = 0.0
    groups: str = ""
    block: str = ""
    own: tuple[tuple[str, float], ...] = ()
    link: float = 0.15
    mask: str = ""
    without: tuple[str, ...] = ()
    include: tuple[str, ...] = ()
    weights: str = ""
    weight_kind: str = "auto"
    shrinkage: str = "none"
    margins: str = "none"

    def about_columns(self, names: Sequence[str], *, rows: bool) -> tuple[Settings, list[str]]:
        """The settings without those about columns that are not there, and notes on these.

        ``rows`` tells whether there are rows to be weighted, or a matrix only.
        """
        notes = []
        asked = self
        if not rows:
            shrinkage = "none" if self.shrinkage == "auto" else self.shrinkage
            asked = replace(self, weights="", margins="none", confidence=0.0, shrinkage=shrinkage)
            if asked != self:
                notes.append(
                    "Weights, margins, confidence and the advised shrinkage need rows, and here is "
                    "only a matrix."
                )
        own = dict(asked.own)
        mentioned = (*asked.without, *asked.include, *own, asked.weights)
        unknown = [name for name in dict.fromkeys(mentioned) if name and name not in names]
        if unknown:
            notes.append(
                f"There is no column of numbers {', '.join(map(repr, unknown))} here; what was "
                "asked about it is ignored."
            )
        kept = [name for name in names if name not in (*asked.without, asked.weights)]
        mask = asked.mask
        if mask and mask_from_text(mask, len(kept)) is None:
            notes.append(f"The support in the link is not one of {len(kept)} variables.")
            mask = ""
        settings = replace(
            asked,
            own=tuple((name, value) for name, value in own.items() if name in names),
            mask=mask,
            without=tuple(name for name in names if name in asked.without),
            include=tuple(name for name in names if name in asked.include),
            weights=asked.weights if asked.weights in names else "",
        )
        return settings, notes


def to_query(settings: Settings) -> dict[str, list[str]]:
    """The query of a link: the settings of the mode, and whatever differs from the defaults."""
    always = ["source", "mode"]
    changed = ["without", "include", "criterion", "weights", "weight_kind", "shrinkage", "margins"]
    if settings.source == "simulated":
        always.append("size")
    if settings.mode == "budget":
        always.append("budget")
    else:
        always.append("floor")
        changed.append("own")
    if settings.mode == "support":
        always.append("link")
        changed.append("mask")
    if settings.mode == "floor" and settings.confidence:
        changed += ["confidence", "groups", "block"]
    return {
        name: _texts(getattr(settings, name))
        for name in (*always, *changed)
        if name in always or getattr(settings, name) != getattr(Settings, name)
    }


def _texts(value: Any) -> list[str]:
    if isinstance(value, tuple):
        return [part if isinstance(part, str) else f"{part[0]}:{part[1]:.6g}" for part in value]
    return [value if isinstance(value, str) else f"{value:.6g}"]


def from_query(query: Mapping[str, Sequence[str]]) -> tuple[Settings, list[str]]:
    """Read a link; values that are not understood keep their defaults and are noted.

    Examples
    --------
    >>> settings, notes = from_query({"source": ["wdi"], "floor": ["2"]})
    >>> settings.source, settings.floor, notes
    ('wdi', 0.85, ['The link asks for floor = 2, which is not a number from 0 to 1.'])
    """
    found: dict[str, Any] = {name: tuple(query.get(name) or ()) for name in ("without", "include")}
    notes: list[str] = []

    def refuse(name: str, value: str, wanted: str) -> None:
        notes.append(f"The link asks for {name} = {value}, which is not {wanted}.")

    if list(query.get("mode") or ())[-1:] == ["worst"]:  # links of earlier versions
        query = {"criterion": ["worst"], **query, "mode": ["floor"]}
    for name, (read, wanted) in _READERS.items():
        for text in list(query.get(name) or ())[-1:]:
            value = read(text)
            if value is None:
                refuse(name, text, wanted)
            else:
                found[name] = int(value) if name == "size" else value
    own = []
    for text in query.get("own") or []:
        variable, _, value = text.rpartition(":")
        floor = _number(value, 0.0, 1.0)
        if variable and floor is not None:
            own.append((variable, floor))
        else:
            refuse("own", text, "name:floor with a floor from 0 to 1")
    return Settings(**found, own=tuple(own)), notes


def _number(text: str, low: float, high: float) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    # As many digits as the next link will have, and no negative zero.
    return float(f"{value:.6g}") + 0.0 if low <= value <= high else None


def _shrinkage(text: str) -> str | None:
    return text if text in ("none", "auto") or _number(text, 0.0, 1.0) else None


def _block(text: str) -> str | None:
    known = text in ("", "auto") or 0 < (whole_number(text) or 0) < 10**9
    return text if known else None


_Reader = tuple[Callable[[str], Any], str]


def _choice(choices: Collection[str]) -> _Reader:
    return (lambda text: text if text in choices else None), f"one of {', '.join(choices)}"


def _between(low: float, high: float) -> _Reader:
    return (lambda text: _number(text, low, high)), f"a number from {low:g} to {high:g}"


#: How each setting of a link is read, None where it is not understood, and what it should be.
_READERS: dict[str, _Reader] = {
    "source": _choice(SOURCES),
    "size": _between(3, LARGEST_SIMULATION),
    "mode": _choice(MODES),
    "floor": _between(0.0, 1.0),
    "budget": _between(0.0, 1e9),
    "criterion": _choice(CRITERIA),
    "confidence": _between(0.0, 0.999),
    "groups": (str, "a column"),
    "block": (_block, "auto or a whole number of rows"),
    "link": _between(0.0, 1.0),
    "mask": (str, "a mask"),
    "weights": (str, "a column"),
    "weight_kind": _choice(WEIGHT_KINDS),
    "shrinkage": (_shrinkage, "none, auto or a number up to 1"),
    "margins": _choice(MARGINS),
}


def mask_to_text(mask: NDArray[np.bool_]) -> str:
    """A p × p mask as text that fits in a link."""
    bits = np.packbits(np.asarray(mask, dtype=bool)).tobytes()
    return base64.urlsafe_b64encode(bits).decode("ascii").rstrip("=")


def mask_from_text(text: str, p: int) -> NDArray[np.bool_] | None:
    """The mask of :func:`mask_to_text`; None where the text does not hold p × p bits."""
    try:
        bits = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        return None
    if len(bits) != math.ceil(p * p / 8):
        return None
    mask = np.unpackbits(np.frombuffer(bits, dtype=np.uint8))[: p * p].reshape(p, p).astype(bool)
    np.fill_diagonal(mask, True)
    return mask
