"""Pages from templates: everything that is not markup already is escaped."""

from __future__ import annotations

from typing import Any

from skcoral.core.display import number, printable


def fill(template: str, **values: Any) -> str:
    """Fill a template of this package; no text from the data can become an element."""
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("skcoral.show.report"),
        autoescape=True,
        finalize=_shown,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"number": number, "percent": _percent}
    return environment.get_template(template).render({"wide": False, **values})


def _shown(value: Any) -> Any:
    """Text without the control characters that it may have; markup as it is."""
    return printable(value, keep="\n") if type(value) is str else value


def _percent(share: float) -> str:
    return f"{100 * min(max(share, 0.0), 1.0):.1f}%"
