"""Correlations of many columns, too many for a square of cells: worst pairs, distribution."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from skcoral._lowrank import FactoredCorrelation, spread_of_sizes, strongest_pairs
from skcoral.report.drawing import clean
from skcoral.report.facts import ReportFacts
from skcoral.results import Array

_EDGES = np.array([0.0, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0])
_PAIRS = 15


def correlations(facts: ReportFacts) -> str:
    """The worst pairs before and after, and how many pairs have which |r|."""
    before = _factored(facts.R if facts.measured.before is None else facts.measured.before)
    after = _factored(
        facts.result.correlation if facts.measured.after is None else facts.measured.after
    )
    return (
        f"<p>{len(facts.names):,} columns have too many pairs for a picture of each: these are the "
        "worst ones, and how all of them are distributed.</p>"
        '<div class="pair">'
        + _pairs("before", before, facts.names)
        + _pairs("after", after, facts.result.names)
        + "</div>"
        + _distribution(spread_of_sizes(before, _EDGES), spread_of_sizes(after, _EDGES))
    )


def _factored(G: Any) -> FactoredCorrelation:
    if isinstance(G, FactoredCorrelation):
        return G
    values, vectors = np.linalg.eigh(G)
    return FactoredCorrelation(np.sqrt(np.maximum(values, 0.0))[:, None] * vectors.T)


def _pairs(title: str, G: FactoredCorrelation, names: tuple[str, ...]) -> str:
    rows = "".join(
        f"<tr><td>{clean(names[i])} – {clean(names[j])}</td><td>{value:+.4f}</td></tr>"
        for i, j, value in strongest_pairs(G, _PAIRS)
    )
    return (
        f"<figure><figcaption>worst pairs {title}</figcaption>"
        '<div class="scroll"><table><thead><tr><th>pair</th><th>correlation</th></tr></thead>'
        f"<tbody>{rows}</tbody></table></div></figure>"
    )


def _distribution(before: Array, after: Array) -> str:
    most = max(float(before.max()), float(after.max()), 1.0)
    rows = []
    for k, (low, high) in enumerate(pairwise(_EDGES)):
        cells = "".join(
            f'<td>{int(count[k]):,}</td><td><span style="display:inline-block;height:.7em;'
            f'background:var(--blue);width:{8.0 * count[k] / most:.2f}em"></span></td>'
            for count in (before, after)
        )
        rows.append(f"<tr><td>{low:g} – {high:g}</td>{cells}</tr>")
    return (
        '<div class="scroll"><table><thead><tr><th>|r|</th><th>pairs before</th><th></th>'
        f"<th>pairs after</th><th></th></tr></thead><tbody>{''.join(rows)}</tbody></table></div>"
    )
