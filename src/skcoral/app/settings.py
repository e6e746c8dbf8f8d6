"""What a visitor has chosen, and the same as the query of a link that reopens the view."""

from __future__ import annotations

import base64
import binascii
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skcoral.margins import MARGINS
from skcoral.moments import WEIGHT_KINDS

SOURCES = {
    "wine": "Example: Wine",
    "wdi": "Example: World Bank",
    "simulated": "Example: simulated",
    "upload": "A file of your own",
    "paste": "A correlation matrix",
}
MODES = {
    "floor": "Floor",
    "budget": "Budget",
    "support": "Support",
}
#: What each mode does, in half a sentence.
EXPLAINED = {
    "floor": "say what every output keeps",
    "budget": "say how much may be left",
    "support": "say which source enters where",
}
CRITERIA = {
    "squared": "sum of squares over all pairs",
    "worst": "the worst pair",
    "absolute": "sum of absolute values",
}
LARGEST_SIMULATION = 100


@dataclass(frozen=True)
class Settings:
    """The choices behind a view.

    Attributes
    ----------
    source : str
        Key of ``SOURCES``.
    size : int
        Variables of the simulated system.
    mode : str
        Key of ``MODES``.
    floor, budget : float
        Common floor, and residual allowed in the budget mode.
    criterion : str
        Key of ``CRITERIA``: how residual correlation is measured.
    confidence : float
        Floor mode: confidence with which floors hold for the population; 0 for none.
    groups, block : str
        With confidence: column of clusters, and rows of a block of time ("auto" or a number).
    own : tuple of (str, float)
        Floors of single variables.
    link : float
        Support mode: sources with a larger |correlation| may enter an output.
    mask : str
        Support mode: the edited mask as text, empty when ``link`` decides.
    without : tuple of str
        Columns of numbers that are not variables.
    include : tuple of str
        Columns that are variables although they look like ids or years.
    weights : str
        Column of row weights; empty for none.
    weight_kind : str
        "auto", "frequency" or "reliability".
    shrinkage : str
        "none", "auto" or a number in (0, 1].
    margins : str
        "none", "ranks" or "normal".
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

    def about_another_table(self, source: str) -> Settings:
        """The same without what was said about the columns of one table."""
        return replace(
            self, source=source, own=(), mask="", without=(), include=(), weights="", groups=""
        )

    def about_columns(self, names: Sequence[str], *, rows: bool) -> tuple[Settings, list[str]]:
        """The same without what is said about columns that are not there, and what that was.

        ``rows`` tells whether there are rows to be weighted, or a matrix only.
        """
        notes = []
        weights, shrinkage, mask = self.weights, self.shrinkage, self.mask
        margins, confidence = self.margins, self.confidence
        if not rows and (weights or shrinkage == "auto" or margins != "none" or confidence):
            notes.append(
                "Weights, margins, confidence and the advised shrinkage need rows, and here is "
                "only a matrix."
            )
            weights, margins, confidence = "", "none", 0.0
            shrinkage = "none" if shrinkage == "auto" else shrinkage
        mentioned = (*self.without, *self.include, *(name for name, _ in self.own), weights)
        unknown = [name for name in dict.fromkeys(mentioned) if name and name not in names]
        if unknown:
            notes.append(
                f"There is no column of numbers {', '.join(map(repr, unknown))} here; what was "
                "asked about it is ignored."
            )
        kept = [name for name in names if name not in (*self.without, weights)]
        if mask and mask_from_text(mask, len(kept)) is None:
            notes.append(f"The support in the link is not one of {len(kept)} variables.")
            mask = ""
        settings = replace(
            self,
            own=tuple((name, value) for name, value in dict(self.own).items() if name in names),
            mask=mask,
            without=tuple(name for name in names if name in self.without),
            include=tuple(name for name in names if name in self.include),
            weights=weights if weights in names else "",
            shrinkage=shrinkage,
            margins=margins,
            confidence=confidence,
        )
        return settings, notes


def to_query(settings: Settings) -> dict[str, list[str]]:
    """The query of a link: what the mode looks at, and whatever is not as it is at first."""
    first = Settings()
    query = {"source": [settings.source], "mode": [settings.mode]}
    if settings.source == "simulated":
        query["size"] = [str(settings.size)]
    if settings.mode == "budget":
        query["budget"] = [f"{settings.budget:.6g}"]
    else:
        query["floor"] = [f"{settings.floor:.6g}"]
        if settings.own:
            query["own"] = [f"{name}:{value:.6g}" for name, value in settings.own]
    if settings.mode == "floor" and settings.confidence:
        query["confidence"] = [f"{settings.confidence:.6g}"]
        query |= {name: [v] for name in ("groups", "block") if (v := getattr(settings, name))}
    if settings.mode == "support":
        query["link"] = [f"{settings.link:.6g}"]
        if settings.mask:
            query["mask"] = [settings.mask]
    for name in ("without", "include"):
        if getattr(settings, name):
            query[name] = list(getattr(settings, name))
    for name in ("criterion", "weights", "weight_kind", "shrinkage", "margins"):
        value = getattr(settings, name)
        if value != getattr(first, name):
            query[name] = [value]
    return query


def from_query(query: Mapping[str, Sequence[str]]) -> tuple[Settings, list[str]]:
    """Read a link; what cannot be understood is left as it is at first, and told.

    Examples
    --------
    >>> settings, notes = from_query({"source": ["wdi"], "floor": ["2"]})
    >>> settings.source, settings.floor, notes
    ('wdi', 0.85, ['The link asks for floor = 2, which is not a number from 0 to 1.'])
    """
    read: dict[str, Any] = {}
    notes: list[str] = []

    def one(name: str) -> str | None:
        values = query.get(name)
        return values[-1] if values else None

    def refuse(name: str, value: str, wanted: str) -> None:
        notes.append(f"The link asks for {name} = {value}, which is not {wanted}.")

    if one("mode") == "worst":  # links of earlier versions
        query = {"criterion": ["worst"], **query, "mode": ["floor"]}
    choices: Collection[str]
    for name, choices in (
        ("criterion", CRITERIA),
        ("source", SOURCES),
        ("mode", MODES),
        ("margins", MARGINS),
        ("weight_kind", WEIGHT_KINDS),
    ):
        value = one(name)
        if value is not None and value in choices:
            read[name] = value
        elif value is not None:
            refuse(name, value, f"one of {', '.join(choices)}")
    for name, low, high in (
        ("floor", 0.0, 1.0),
        ("budget", 0.0, 1e9),
        ("confidence", 0.0, 0.999),
        ("link", 0.0, 1.0),
        ("size", 3, LARGEST_SIMULATION),
    ):
        value = one(name)
        if value is None:
            continue
        number = _number(value, low, high)
        if number is None:
            refuse(name, value, f"a number from {low:g} to {high:g}")
        else:
            read[name] = int(number) if name == "size" else number
    own = []
    for text in query.get("own") or []:
        variable, _, value = text.rpartition(":")
        number = _number(value, 0.0, 1.0)
        if variable and number is not None:
            own.append((variable, number))
        else:
            refuse("own", text, "name:floor with a floor from 0 to 1")
    shrinkage = one("shrinkage") or "none"
    if shrinkage not in ("none", "auto") and not _number(shrinkage, 0.0, 1.0):
        refuse("shrinkage", shrinkage, "none, auto or a number up to 1")
        shrinkage = "none"
    block = one("block") or ""
    if block not in ("", "auto") and not (block.isdecimal() and 0 < int(block) < 10**9):
        refuse("block", block, "auto or a whole number of rows")
        block = ""
    settings = Settings(
        **read,
        groups=one("groups") or "",
        block=block,
        own=tuple(own),
        shrinkage=shrinkage,
        mask=one("mask") or "",
        without=tuple(query.get("without") or ()),
        include=tuple(query.get("include") or ()),
        weights=one("weights") or "",
    )
    return settings, notes


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


def _number(text: str, low: float, high: float) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    # As many digits as the next link will have, and no negative zero.
    return float(f"{value:.6g}") + 0.0 if low <= value <= high else None
