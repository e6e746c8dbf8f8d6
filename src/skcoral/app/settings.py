"""What a visitor has chosen, and the same as the query of a link that reopens the view."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

from skcoral.choosing import MOST_CORRELATION, MOST_VIF
from skcoral.show.sentences import CRITERIA

SOURCES = {
    "wine": "Example: Wine",
    "wdi": "Example: World Bank",
    "simulated": "Example: simulated",
    "upload": "A file of your own",
    "paste": "A correlation matrix",
}
MODES = {
    "floor": "Floor",
    "max_vif": "VIF",
    "max_correlation": "Correlation",
    "budget": "Budget",
    "support": "Support",
}
#: What each mode does, in half a sentence.
EXPLAINED = {
    "floor": "say what every output keeps",
    "max_vif": "say the largest VIF",
    "max_correlation": "say the largest |r|",
    "budget": "say how much may be left",
    "support": "say which source enters where",
}
LARGEST_SIMULATION = 100
#: How correlations are estimated from rows.
COVARIANCES = {
    "": "as the rows have them",
    "LedoitWolf": "shrunk, as Ledoit and Wolf advise",
    "OAS": "shrunk, for normal rows (OAS)",
}
#: Modes that look for the highest common floor within a limit, which is the setting of that name.
LIMITED = ("max_vif", "max_correlation", "budget")
#: Settings that are in the link also where they have their default, if the view depends on them.
_ALWAYS = {"source", "size", "mode", "floor", "support", *LIMITED}


def _setting(default: Any, read: Callable[[str], Any], wanted: str) -> Any:
    """A setting that a link may hold: ``read`` returns None where the text is not ``wanted``."""
    return field(default=default, metadata={"read": read, "wanted": wanted})


def _choice(default: str, choices: Collection[str]) -> Any:
    wanted = f"one of {', '.join(choices)}"
    return _setting(default, lambda text: text if text in choices else None, wanted)


def _number(default: float | None, low: float, high: float) -> Any:
    wanted = f"a number from {low:g} to {high:g}"
    return _setting(default, lambda text: _between(text, low, high), wanted)


def _column(default: Any = "") -> Any:
    return _setting(default, str, "a column")


def _between(text: str, low: float, high: float) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    # As many digits as the next link will have, and no negative zero.
    return float(f"{value:.6g}") + 0.0 if low <= value <= high else None


def _size(text: str) -> int | None:
    size = _between(text, 3, LARGEST_SIMULATION)
    return None if size is None else int(size)


def _own_floor(text: str) -> tuple[str, float] | None:
    variable, _, value = text.rpartition(":")
    floor = _between(value, 0.0, 1.0)
    return (variable, floor) if variable and floor is not None else None


@dataclass(frozen=True)
class Settings:
    """The choices behind a view, and how a link spells them."""

    source: str = _choice("wine", SOURCES)
    #: Variables of the simulated system.
    size: int = _setting(18, _size, f"a number from 3 to {LARGEST_SIMULATION}")
    mode: str = _choice("floor", MODES)
    #: The common floor; none until one is chosen or recommended.
    floor: float | None = _number(None, 0.0, 1.0)
    #: What the outputs may have at most, in the mode of the same name; the budget depends on the
    #: table and is none until one is chosen.
    max_vif: float = _number(MOST_VIF, 1.0, 1e9)
    max_correlation: float = _number(MOST_CORRELATION, 0.0, 1.0)
    budget: float | None = _number(None, 0.0, 1e9)
    criterion: str = _choice("squared", CRITERIA)
    #: Floor mode: confidence with which floors hold for the population (0: none), and the column
    #: of clusters.
    confidence: float = _number(0.0, 0.0, 0.999)
    groups: str = _column()
    #: Floors of single variables.
    own: tuple[tuple[str, float], ...] = _setting(
        (), _own_floor, "name:floor with a floor from 0 to 1"
    )
    #: Support mode: sources with a larger |correlation| may enter an output.
    support: float = _number(0.15, 0.0, 1.0)
    #: Columns of numbers that are not variables, and those that are although they look like ids.
    without: tuple[str, ...] = _column(())
    include: tuple[str, ...] = _column(())
    #: As :class:`skcoral.CORAL` takes them; "" for none.
    weights: str = _column()
    #: The outcome: a column of numbers that is no variable and stays as it is.
    target: str = _column()
    covariance: str = _choice("", COVARIANCES)

    def about_columns(self, names: Sequence[str], *, rows: bool) -> tuple[Settings, list[str]]:
        """The settings without those about columns that are not there, and notes on these.

        ``rows`` tells whether there are rows to be weighted, or a matrix only.
        """
        # A matrix has no rows to weight, to explain, to leave out or to estimate from.
        asked = self if rows else replace(self, confidence=0.0, covariance="")
        columns = {name: name for name in names} if rows else {}
        settings = replace(
            asked,
            own=tuple((name, value) for name, value in asked.own if name in names),
            without=tuple(name for name in names if name in asked.without),
            include=tuple(name for name in names if name in asked.include),
            weights=columns.get(asked.weights, ""),
            target=columns.get(asked.target, ""),
        )
        notes = []
        if not rows and (asked != self or asked.weights or asked.target):
            notes.append(
                "Weights, an outcome, confidence and estimators of correlations need rows, and "
                "here is only a matrix."
            )
        mentioned = (*asked.without, *asked.include, *dict(asked.own), asked.weights, asked.target)
        unknown = [name for name in dict.fromkeys(mentioned) if name and name not in names]
        if unknown:
            notes.append(
                f"There is no column of numbers {', '.join(map(repr, unknown))} here; what was "
                "asked about it is ignored."
            )
        return settings, notes


def to_query(settings: Settings) -> dict[str, list[str]]:
    """The query of a link: the settings of the mode, and whatever differs from the defaults."""
    idle = {*LIMITED, "support"} - {settings.mode}
    if settings.mode in LIMITED:
        idle |= {"floor", "own"}
    if settings.mode in ("max_vif", "max_correlation"):
        idle.add("criterion")
    if settings.source != "simulated":
        idle.add("size")
    if settings.mode != "floor" or not settings.confidence:
        idle |= {"confidence", "groups"}
    chosen = {s.name: getattr(settings, s.name) for s in fields(Settings) if s.name not in idle}
    return {
        name: _texts(value)
        for name, value in chosen.items()
        if value is not None and (name in _ALWAYS or value != getattr(Settings, name))
    }


def _texts(value: Any) -> list[str]:
    if isinstance(value, tuple):
        return [part if isinstance(part, str) else f"{part[0]}:{part[1]:.6g}" for part in value]
    return [value if isinstance(value, str) else f"{value:.6g}"]


def from_query(query: Mapping[str, Sequence[str]]) -> tuple[Settings, list[str]]:
    """Read a link; values that are not understood keep their defaults and are noted."""
    found: dict[str, Any] = {}
    notes: list[str] = []
    for setting in fields(Settings):
        name, several = setting.name, isinstance(setting.default, tuple)
        texts = list(query.get(name) or ())
        for text in texts if several else texts[-1:]:
            value = setting.metadata["read"](text)
            if value is None:
                wanted = setting.metadata["wanted"]
                notes.append(f"The link asks for {name} = {text}, which is not {wanted}.")
            else:
                found[name] = (*found.get(name, ()), value) if several else value
    return Settings(**found), notes
