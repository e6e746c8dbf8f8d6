"""The result of ``coral fit``: for people, for machines and for the report."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from skcoral.cli import console
from skcoral.cli.loading import Loaded
from skcoral.cli.run import in_options
from skcoral.data.effects import Measured
from skcoral.show import sentences as words

_LONGEST_TABLE = 60  # variables that are listed one by one
_ATTRIBUTES = ("criterion", "objective", "lower_bound", "gap", "rank")


@dataclass(frozen=True)
class FitResult:
    """A fitted table, with what was measured on its outputs and what was left out."""

    loaded: Loaded
    estimator: Any
    measured: Measured
    dropped: list[int]
    layout: str = ""
    advice: str = ""

    @property
    def notes(self) -> list[str]:
        """What was left out or assumed: said next to the answer."""
        loaded = self.loaded
        told = [*loaded.notes]
        if loaded.matrix is None:
            told += [
                loaded.passed_through_note,
                loaded.dropped_note(self.dropped),
                self._weights_note(),
            ]
        told += [self.estimator.result_.details.get("rounding", "")]
        return [sentence for sentence in (*told, self.advice, self.layout) if sentence]

    def _weights_note(self) -> str:
        if self.loaded.options.weights is None:
            return ""
        moments = self.estimator.moments_
        idle = (self.measured.rows_used or 0) - moments.n_rows
        zero = f" Not used, of weight zero: {console.counted(idle, 'row')}." if idle > 0 else ""
        return self.loaded.weights_note(moments) + zero

    @property
    def no_floor(self) -> str:
        """Which variables have no floor."""
        told = words.unfloored(self.estimator.result_, self.estimator.rho_min)
        whose = "variables" if self.estimator.rho_min is None else "others"
        return f"{told} For a floor of all {whose} add --rho-min NUMBER." if told else ""

    def record(self, written: list[str]) -> dict[str, Any]:
        """The result for machines."""
        loaded, estimator, measured = self.loaded, self.estimator, self.measured
        result = estimator.result_
        # of dependent columns it takes as long as the fit itself: coral threshold gives it
        th = None if result.rank is not None else estimator.threshold_
        is_matrix = loaded.matrix is not None

        def by_name(values: Any) -> dict[str, float]:
            return dict(zip(result.names, np.asarray(values).tolist(), strict=True))

        return {
            "file": loaded.table.label,
            "target": loaded.target,
            "measured": measured.to_dict(),
            "headline": measured.headline(),
            "certificate": {
                "sentence": words.certificate(result),
                "goal": words.goal(result),
                "about": words.subject(result),
                "is_about_rows": words.is_about_rows(result),
                "min_fidelity": result.min_fidelity,
            },
            "notes": [*self.notes, *([self.no_floor] if self.no_floor else [])],
            "is_matrix": is_matrix,
            "rows": None if is_matrix else estimator.n_samples_seen_,
            "dropped_rows": self.dropped,
            "passed_through": [] if is_matrix else list(loaded.passed_through),
            "constant": list(loaded.constant),
            **{name: getattr(result, name) for name in _ATTRIBUTES},
            "status": words.status_code(result),
            "certified": words.is_certified(result),
            "min_fidelity": measured.min_fidelity,
            "mean_fidelity": float(measured.fidelity.mean()),
            "threshold": th and {"value": th.value, "lower": th.lower, "upper": th.upper},
            "least_residual": result.details.get("least_residual", 0.0),
            **{name: result.details.get(name) for name in ("amplification", "new_rows")},
            "confidence": _confidence(estimator),
            "weighted": estimator.estimate_.weighted,
            "fidelity": by_name(measured.fidelity),
            "rho_min": by_name(result.rho_min),
            "prices": by_name(result.prices),
            "written": written,
        }

    def show(self, written: list[str], *, stderr: bool) -> None:
        """Print measured figures first, then what is proved, then the details."""
        estimator, measured = self.estimator, self.measured
        result = estimator.result_
        own = words.is_about_rows(result)
        colour = "green" if words.is_certified(result) and own else "yellow"
        console.say(console.bold(measured.headline(), colour), stderr=stderr)
        threshold = in_options(words.rank(result))
        if result.rank is None:
            threshold = words.threshold(estimator.threshold_, result)
        told = (
            words.certificate(result),
            words.goal(result),
            str(result.details.get("confidence", "")),
            *self.notes,
            self.no_floor,
            threshold,
            str(result.details.get("new_rows", "")),
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
                words.price(result.prices[j]),
                console.number(measured.residual[j]),
            )
            for j in shown
        ]
        header = ("variable", "fidelity", "floor", "price", "residual")
        console.table(header, rows, stderr=stderr)
        if len(shown) < len(result.names):
            more = len(result.names) - len(shown)
            console.say(f"and {more:,} more, none weaker (--json lists all).", stderr=stderr)
        console.written(written, stderr=stderr)
        if not written:
            console.say("Nothing was written: -o FILE writes the outputs.", stderr=stderr)


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
