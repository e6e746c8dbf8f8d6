"""The answer of ``coral fit``: for people, for machines and for the report."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from typing import Any

import numpy as np

from skcoral.cli import console, loading
from skcoral.cli.options import FitOptions
from skcoral.cli.run import in_options
from skcoral.core.display import shortened
from skcoral.show import sentences
from skcoral.tables.table import labels_of
from skcoral.workflow.fit import Fit

_LONGEST_TABLE = 60  # variables that are listed one by one
_ATTRIBUTES = (
    *("criterion", "objective", "lower_bound", "gap", "rank", "least_residual", "amplification"),
)
#: Labels that a column must have to be suggested as clusters: confidence from fewer is coarse.
_FEWEST_GROUPS = 10


@dataclass(frozen=True)
class FitAnswer:
    """A fit in words and figures."""

    fit: Fit
    options: FitOptions

    @property
    def notes(self) -> list[str]:
        """What was left out or assumed: said next to the answer."""
        data, result = self.fit.data, self.fit.model.result_
        outcome: Any = "unused" if self.options.output is None else "empty"
        told = loading.notes(data, "dropped" if self.options.drop_incomplete else outcome)
        if data.matrix is None:
            told.append(self._passed_through())
        told += [result.notes.rounding, self._advice_on_groups(), self._layout()]
        return [sentence for sentence in told if sentence]

    def _passed_through(self) -> str:
        """Which columns are written as they came."""
        data = self.fit.data
        constant, aside = set(data.constant), {*data.doubtful, data.request.target}
        told = [
            f"{n} (constant)" if n in constant else n or "the row labels"
            for n in data.passed_through
            if n not in aside
        ]
        return f"Columns left as they were: {console.listing(told)}." if told else ""

    def _layout(self) -> str:
        """What the output file holds: units and names of the outputs, or T."""
        options, result = self.options, self.fit.model.result_
        if options.output is None:
            return ""
        if self.fit.data.matrix is not None:
            return (
                f"{options.output} holds the transformation T: standardised variables (rows) times "
                "T are the outputs (columns)."
            )
        said = f"The outputs are {sentences.units(result, options.output_scale)}"
        unit = options.output_scale == "unit"
        said += "; --output-scale original gives them the units of their sources." if unit else "."
        beside = " Each stands beside its source, as NAME_d."
        return said + beside if options.keep_sources else said

    def _advice_on_groups(self) -> str:
        """Suggest clusters where confidence is asked for and a text column repeats its labels."""
        options, data = self.options, self.fit.data
        if options.confidence is None or options.groups is not None:
            return ""
        repeated: dict[str, int] = {}
        for column in data.content.columns:
            if column.kind == "text" and column.name and column.name != data.request.target:
                labels = [label for label in labels_of(data.table.cells(column.name)) if label]
                if _FEWEST_GROUPS <= len(set(labels)) <= len(labels) / 2:
                    repeated[column.name] = len(set(labels))
        if not repeated:
            return ""
        name = max(repeated, key=repeated.__getitem__)
        return (
            f"{shortened(name)} has {repeated[name]} labels that repeat. If rows with the same "
            f"label are not independent, add --groups {shlex.quote(name)}."
        )

    @property
    def no_floor(self) -> str:
        """Which variables have no floor."""
        model = self.fit.model
        told = sentences.unfloored(model.result_, model.rho_min)
        whose = "variables" if model.rho_min is None else "others"
        return f"{told} For a floor of all {whose} add --rho-min NUMBER." if told else ""

    def record(self, written: list[str]) -> dict[str, Any]:
        """The result for machines."""
        data, estimator, measured = self.fit.data, self.fit.model, self.fit.measured
        result = estimator.result_
        # of dependent columns it takes as long as the fit itself: coral threshold gives it
        th = None if result.deficiency else estimator.threshold_
        is_matrix = data.matrix is not None

        def by_name(values: Any) -> dict[str, float]:
            return dict(zip(result.names, np.asarray(values).tolist(), strict=True))

        return {
            "file": data.table.label,
            "target": data.request.target,
            "measured": measured.to_dict(),
            "headline": measured.headline(),
            "certificate": {
                "sentence": sentences.certificate(result),
                "goal": sentences.goal(result),
                "about": result.notes.about,
                "is_about_rows": result.notes.is_about_rows,
                "min_fidelity": result.min_fidelity,
            },
            "notes": [*self.notes, *([self.no_floor] if self.no_floor else [])],
            "is_matrix": is_matrix,
            "rows": None if is_matrix else estimator.n_samples_seen_,
            "incomplete_rows": data.incomplete,
            "passed_through": [] if is_matrix else list(data.passed_through),
            "constant": list(data.constant),
            **{name: getattr(result, name) for name in _ATTRIBUTES},
            "status": result.status,
            "certified": result.is_certified,
            "min_fidelity": measured.min_fidelity,
            "mean_fidelity": float(measured.fidelity.mean()),
            "threshold": th and {"value": th.value, "lower": th.lower, "upper": th.upper},
            "new_rows": result.notes.new_rows or None,
            "confidence": _confidence(estimator),
            "weighted": estimator.estimate_.weighted,
            "fidelity": by_name(measured.fidelity),
            "rho_min": by_name(result.rho_min),
            "prices": by_name(result.prices),
            "written": written,
        }

    def show(self, written: list[str], *, stderr: bool) -> None:
        """Print measured figures first, then what is proved, then the details."""
        estimator, measured = self.fit.model, self.fit.measured
        result = estimator.result_
        own = result.notes.is_about_rows
        colour = "green" if result.is_certified and own else "yellow"
        console.say(console.bold(measured.headline(), colour), stderr=stderr)
        threshold = in_options(sentences.rank(result))
        if not result.deficiency:
            threshold = sentences.threshold(estimator.threshold_, result)
        told = (
            sentences.certificate(result),
            sentences.goal(result),
            result.notes.confidence,
            *self.notes,
            self.no_floor,
            threshold,
            result.notes.new_rows,
        )
        console.say_each(told, stderr=stderr)
        console.say("", stderr=stderr)
        shown = list(range(len(result.names)))
        if len(shown) > _LONGEST_TABLE:
            shown = np.argsort(measured.fidelity, kind="stable")[:_LONGEST_TABLE].tolist()
        rows = [
            (
                result.names[j],
                console.number(measured.fidelity[j]),
                console.number(result.rho_min[j]),
                sentences.price(result.prices[j]),
                console.number(measured.residual[j]),
            )
            for j in shown
        ]
        kept = "weighted fidelity" if measured.weighted else "fidelity"
        header = ("variable", kept, "floor", "price", "residual")
        console.table(header, rows, stderr=stderr)
        if len(shown) < len(result.names):
            more = len(result.names) - len(shown)
            console.say(f"and {more:,} more, none weaker (--json lists all).", stderr=stderr)
        console.written(written, stderr=stderr)
        if self.options.output is None:
            what = "The outputs were not written" if written else "Nothing was written"
            console.say(f"{what}: -o FILE writes the outputs.", stderr=stderr)


def _confidence(estimator: Any) -> dict[str, Any] | None:
    """What holds for the population, where it was asked for."""
    found = getattr(estimator, "confidence_", None)
    if found is None:
        return None
    columns = found.to_frame()
    return {
        "sentence": found.sentence(),
        "confidence": found.confidence,
        "about": found.about,
        "objective_plain": found.objective_plain,
        "largest_confidence": found.largest_confidence,
        "largest_floor": found.largest_floor,
        "untouched": list(found.untouched),
        **{name: columns[name].to_dict() for name in columns},
    }
