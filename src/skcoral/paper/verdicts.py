"""Why a number of ours is or is not the paper's; every reason is checked, none is assumed."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from skcoral.paper.numbers import Cell, paper_numbers
from skcoral.paper.protocol import VIOLATION
from skcoral.paper.quantities import QUANTITIES, Finding
from skcoral.paper.study import Study

EQUAL = "equal to printed digits"
TOLERANCE = "paper's tolerance"
IMPROVED = "improved"
INCONSISTENT = "paper inconsistent"
#: No reason found: something drifted.
UNEXPLAINED = "unexplained"

VERDICTS = (EQUAL, TOLERANCE, IMPROVED, INCONSISTENT, UNEXPLAINED)

Verdict = tuple[str, str]


def judge(study: Study, cell: Cell, finding: Finding) -> Verdict:
    """Compare a finding with the printed cell: the verdict and one line of explanation."""
    if cell.has_digits_of(finding.ours):
        return EQUAL, finding.note
    if cell.value is None or isinstance(finding.ours, str):
        return UNEXPLAINED, f"the paper prints {cell.printed!r}"
    reason = _REASONS.get(cell.quantity)
    if reason is None:
        return UNEXPLAINED, "the digits differ and no reason is known"
    return reason(study, cell, cell.value, finding.ours)


def _residual(study: Study, cell: Cell, paper: float, ours: float) -> Verdict:
    """Ask whether the residual is the optimum at a floor that gave way by the paper's tolerance."""
    lowered = dict(cell.args) | {"rho_min": cell.args["rho_min"] - VIOLATION}
    relaxed = QUANTITIES[cell.quantity](study, lowered).ours
    if isinstance(relaxed, str):
        return UNEXPLAINED, "the residual is not a number"
    low, high = sorted((relaxed, ours))
    if not low - cell.unit / 2 <= paper <= high + cell.unit / 2:
        return UNEXPLAINED, f"not even a floor lower by {VIOLATION:g} gives it: {relaxed:.6f}"
    threshold = study.threshold(cell.args["system"])
    decided = (
        f"; exact decorrelation here is impossible, ρ★ ≤ {threshold.upper:.6f}"
        if threshold.lower - 0.01 < cell.args["rho_min"]
        and threshold.upper < cell.args["rho_min"]
        and cell.args["rho_min"] < threshold.upper + 0.01
        else ""
    )
    return TOLERANCE, (
        f"our floors hold exactly; with the paper's tolerance of {VIOLATION:g} on them the "
        f"optimum has {relaxed:.6f}{decided}"
    )


def _min_fidelity(study: Study, cell: Cell, paper: float, ours: float) -> Verdict:
    floor = float(cell.args["rho_min"])
    found = study.solution(cell.args["system"], floor)
    if found.status == "exact" and ours > paper:
        return (
            IMPROVED,
            "the exact decorrelator of largest mean fidelity, not just any, is returned",
        )
    if floor - VIOLATION - cell.unit / 2 <= paper < floor <= ours + 1e-12:
        return (
            TOLERANCE,
            f"our floor of {floor:g} holds exactly; the paper's misses it by up to 1e-4",
        )
    return UNEXPLAINED, "neither above the paper's nor explained by its tolerance"


def _violation(study: Study, cell: Cell, paper: float, ours: float) -> Verdict:
    if ours < paper:
        return IMPROVED, "floors hold to rounding; the paper's solutions miss them by up to 1e-4"
    return UNEXPLAINED, "a floor is missed by more than in the paper"


def _threshold_upper(study: Study, cell: Cell, paper: float, ours: float) -> Verdict:
    if study.threshold(cell.args["system"]).lower <= ours < paper:
        return IMPROVED, "the certified ρ★ replaces an interval"
    return UNEXPLAINED, "our upper bound is not below the paper's"


def _seconds(study: Study, cell: Cell, paper: float, ours: float) -> Verdict:
    if ours < paper:
        return IMPROVED, f"{paper / ours:.0f} times faster (this machine, one solve, no starts)"
    return UNEXPLAINED, "slower than the paper"


def _support_row(study: Study, cell: Cell, paper: float, ours: float) -> Verdict:
    """The same problem without a floor is in another table of the paper."""
    twin_of = {
        "support_max_residual": "floor_max_residual",
        "support_mean_residual": "floor_mean_residual",
    }
    rho_min = float(cell.args["rho_min"])
    found = study.supported(cell.args["system"], rho_min)
    floor = study.supported(cell.args["system"], None)
    if rho_min == 0.0:
        twin = next(
            other
            for other in paper_numbers()
            if other.quantity == twin_of.get(cell.quantity)
            and other.args.get("criterion") == "squared"
            and other.table == "support-floors"
        )
        if twin.printed != cell.printed and twin.has_digits_of(ours):
            return INCONSISTENT, (
                "flipping signs makes ρ_min = 0 free, so this row must be the paper's own "
                f"no-fidelity optimum ({twin.printed}): its starts missed it; improved to "
                f"D2 = {found.objective:.6f}"
            )
    return UNEXPLAINED, f"D2 = {found.objective:.6f}, without floor {floor.objective:.6f}"


def _support_min_fidelity(study: Study, cell: Cell, paper: float, ours: float) -> Verdict:
    if ours > paper:
        return IMPROVED, "the optimum keeps more fidelity than its floor asks for"
    return UNEXPLAINED, "below the paper's"


_REASONS: Mapping[str, Callable[[Study, Cell, float, float], Verdict]] = {
    "max_residual": _residual,
    "mean_residual": _residual,
    "min_fidelity": _min_fidelity,
    "violation": _violation,
    "threshold_upper": _threshold_upper,
    "frontier_seconds": _seconds,
    "threshold_seconds": _seconds,
    "support_max_residual": _support_row,
    "support_mean_residual": _support_row,
    "support_min_fidelity": _support_min_fidelity,
}
