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
    system, rho_min = cell.args["system"], float(cell.args["rho_min"])
    slack = _printed("violation", system=system, rho_min=rho_min) or VIOLATION
    relaxed = QUANTITIES[cell.quantity](study, dict(cell.args) | {"rho_min": rho_min - slack}).ours
    if isinstance(relaxed, str):
        return UNEXPLAINED, "the residual is not a number"
    low, high = sorted((relaxed, ours))
    if not low - cell.unit / 2 <= paper <= high + cell.unit / 2:
        return UNEXPLAINED, f"not even a floor lower by {slack:g} gives it: {relaxed:.6f}"
    why = (
        f"our floors hold exactly; missed by {slack:.2g}, as in the paper, they give {relaxed:.6f}"
    )
    upper = study.threshold(system).upper
    open_in_paper = _printed("trace_bound", system=system)
    if open_in_paper is not None and upper < rho_min <= open_in_paper:
        why += f"; the paper leaves open whether 0 is possible: it is not, ρ★ ≤ {upper:.6f}"
    return TOLERANCE, why


def _printed(quantity: str, **args: object) -> float | None:
    """The paper's own figure for something else about the same system, if it prints one."""
    for cell in paper_numbers():
        if cell.quantity == quantity and all(cell.args.get(k) == v for k, v in args.items()):
            return cell.value
    return None


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
    """The problem is not convex, and its ρ_min = 0 row is in another table of the paper as well."""
    system, rho_min = cell.args["system"], float(cell.args["rho_min"])
    found = study.supported(system, rho_min)
    if rho_min == 0.0:
        twin = _printed(cell.quantity.replace("support", "floor"), criterion="squared")
        if twin is not None and abs(twin - paper) > cell.unit / 2 >= abs(twin - ours):
            return INCONSISTENT, (
                "signs are free, so ρ_min = 0 costs nothing and this row must be the paper's own "
                f"optimum without fidelity ({twin:.4f}), which its starts missed here; improved "
                f"to D2 = {found.objective:.6f}"
            )
        return UNEXPLAINED, "not the optimum without fidelity either"
    ends = study.supported_by_protocol(system, rho_min)
    if found.objective < ends.best and found.min_fidelity >= rho_min - 1e-12:
        return IMPROVED, (
            f"another local optimum: ours has D2 = {found.objective:.6f}, the best of "
            f"{len(ends.values)} starts of the paper's method {ends.best:.6f} (it prints no D2)"
        )
    return UNEXPLAINED, f"D2 = {found.objective:.6f}, by the paper's method {ends.best:.6f}"


def _floor(study: Study, cell: Cell, paper: float, ours: float) -> Verdict:
    """The criterion itself is printed for the optimum without fidelity, so it can be compared."""
    system, criterion = cell.args["system"], cell.args["criterion"]
    found = study.supported(system, None, criterion)
    target = _printed("floor_objective", system=system, criterion=criterion)
    if target is not None and found.objective < target - cell.unit / 2:
        return IMPROVED, (
            f"a better optimum: {found.objective:.6f} instead of {target:.4f}, proved above "
            f"{found.lower_bound:.6f}"
        )
    return UNEXPLAINED, f"ours has {found.objective:.6f} and is not better than the paper's"


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
    "floor_objective": _floor,
    "floor_max_residual": _floor,
    "floor_mean_residual": _floor,
}
