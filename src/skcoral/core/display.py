"""How results are shown: a summary in sentences, a small table for notebooks, and a picture.

A class defines its sentences and its :meth:`Shown._table`, and inherits the rest.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from html import escape
from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    import pandas as pd

    from skcoral.core.arrays import Array

_MOST_ROWS = 12  # of a table in a notebook


def printable(text: str, keep: str = "") -> str:
    r"""Text from the data without control characters, but for those in ``keep``.

    Examples
    --------
    >>> printable("red\x1b[31m")
    'red�[31m'
    """
    return "".join(c if c.isprintable() or c in keep else "\N{REPLACEMENT CHARACTER}" for c in text)


def shortened(name: str, limit: int = 40) -> str:
    """A name cut to a length in the middle, because the ends tell names apart.

    Examples
    --------
    >>> shortened("population, total", 12)
    'popul… total'
    """
    tail = limit // 2
    return name if len(name) <= limit else f"{name[: limit - 1 - tail]}…{name[-tail:]}"


def number(value: float, digits: int = 4) -> str:
    """A figure with so many decimals; zero has no minus sign, and a missing figure is a dash.

    Examples
    --------
    >>> number(-1e-9), number(2.5, 1), number(float("inf")), number(float("nan"))
    ('0.0000', '2.5', '∞', '–')
    """
    if not math.isfinite(value):
        return "∞" if value > 0 else "–"
    text = f"{value:.{digits}f}"
    return text[1:] if float(text) == 0 and text.startswith("-") else text


def short(value: float, zero: float = 1e-12, *, digits: int = 4) -> str:
    """A figure with so many significant digits; 0 if it is smaller than ``zero``."""
    if not math.isfinite(value):
        return number(value)
    return "0" if abs(value) < zero else f"{value:.{digits}g}"


class Fidelities:
    """A result with one fidelity for each output."""

    fidelity: Array

    @property
    def min_fidelity(self) -> float:
        """The weakest correlation of an output with its source."""
        return float(self.fidelity.min())

    @property
    def mean_fidelity(self) -> float:
        """The mean correlation of the outputs with their sources."""
        return float(self.fidelity.mean())


class Shown:
    """A result with ``summary()``, ``to_frame()`` and an HTML view for notebooks."""

    #: Which function of :mod:`skcoral.show.sentences` writes the summary.
    _summary: ClassVar[str] = "summary"

    def summary(self) -> str:
        """The result in sentences, one per line."""
        from skcoral.show import sentences

        return str(getattr(sentences, self._summary)(self))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.summary().splitlines()[0].rstrip('.')})"

    def _table(self) -> tuple[str, Sequence[Any], dict[str, Any]]:
        """Name of the index, its labels, and the columns by name."""
        raise NotImplementedError

    def to_frame(self) -> pd.DataFrame:
        """The figures as a table: one row for each output, window, floor or whatever is listed."""
        import pandas as pd

        name, labels, columns = self._table()
        return pd.DataFrame(columns, index=pd.Index(labels, name=name))

    def _repr_html_(self) -> str:
        return html(type(self).__name__, self.summary(), self.to_frame)


class Drawn(Shown):
    """A result that can also be drawn."""

    #: Which displays of :mod:`skcoral.show.pictures` draw it, by kind; the first is the usual one.
    _pictures: ClassVar[Mapping[str, str]] = {
        "fidelity": "FidelityDisplay",
        "coefficients": "TransformDisplay",
    }
    #: What makes a display of this object.
    _source = "from_result"

    def plot(self, ax: Any = None, *, kind: str | None = None) -> Any:
        """Draw the result with Matplotlib; returns the display, whose ``figure_`` can be saved.

        Parameters
        ----------
        ax : matplotlib axes, optional
            Where to draw; a new figure by default.
        kind : str, optional
            Which picture, where there are several: "fidelity" or "coefficients"; of a fitted
            :class:`skcoral.CORAL` also "correlations" and "frontier".
        """
        from skcoral.core.validation import check_choice
        from skcoral.show import pictures as plotting

        kind = next(iter(self._pictures)) if kind is None else kind
        name = self._pictures[check_choice("kind", kind, tuple(self._pictures))]
        return getattr(getattr(plotting, name), self._source)(self).plot(ax)


def html(title: str, summary: str, to_frame: Callable[[], pd.DataFrame] | None) -> str:
    """Summary and table in HTML without scripts or colours; all text from the data is escaped."""
    sentences = "<br>".join(escape(printable(line)) for line in summary.split("\n"))
    table = ""
    with suppress(ModuleNotFoundError):  # without pandas the sentences are all
        if to_frame is not None:
            shown = to_frame().to_html(max_rows=_MOST_ROWS, float_format=short, border=0)
            table = printable(shown, keep="\n")
    return f"<div><strong>{escape(title)}</strong><br>{sentences}{table}</div>"
