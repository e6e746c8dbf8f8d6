"""Why a number of ours is or is not the paper's; every reason is checked, none is assumed."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from skcoral.api import decorrelate, threshold
from skcoral.paper.bounds import subset_bound, trace_bound
from skcoral.paper.numbers import Cell, paper_numbers
from skcoral.paper.quantities import MEASURES, Finding
from skcoral.paper.study import matrix, solved, supported

EQUAL = "equal to printed digits"
TOLERANCE = "paper's tolerance"
IMPROVED = "improved"
INCONSISTENT = "paper inconsistent"
#: No reason found: something drifted.
UNEXPLAINED = "unexplained"

VERDICTS = (EQUAL, TOLERANCE, IMPROVED, INCONSISTENT, UNEXPLAINED)

Verdict = tuple[str, str]

_MISSED = 1e-4  # by which the paper's solver may miss a floor
_ROUNDING = 1e-12  # of a floor that holds; the paper's own floors are missed by 1e-5 and more


def verdict_of(cell: Cell, finding: Finding) -> Verdict:
    """Compare a finding with the printed cell: the verdict and one line of explanation."""
    if cell.has_digits_of(finding.ours):
        return EQUAL, finding.note
    if cell.value is None or isinstance(finding.ours, str):
        return UNEXPLAINED, f"the paper prints {cell.printed!r}"
    if cell.quantity not in _REASONS:
        return UNEXPLAINED, "the digits differ and no reason is known"
    return _REASONS[cell.quantity](cell, cell.value, finding.ours)


def _printed(quantity: str, **args: object) -> float | None:
    """The paper's own figure for something else about the same system, if it prints one."""
    for cell in paper_numbers():
        if cell.quantity == quantity and all(cell.args.get(k) == v for k, v in args.items()):
            return cell.value
    return None


def _residual(cell: Cell, paper: float, ours: float) -> Verdict:
    """Ask whether the printed residual is that of floors missed within the paper's tolerance."""
    system, rho_min = cell.args["system"], float(cell.args["rho_min"])
    R, measure = matrix(system), MEASURES[cell.quantity]
    # residuals grow with the floor
    lower, higher = (
        measure(R, solved(decorrelate, system, floor).T, rho_min)
        for floor in (rho_min - _MISSED, rho_min + _MISSED)
    )
    if not lower - cell.unit / 2 <= paper < ours <= higher:
        return UNEXPLAINED, f"floors missed by {_MISSED:g} leave {lower:.6f}, no explanation"
    missed = _MISSED * min((ours - paper) / (ours - lower), 1.0)
    why = f"our floors hold exactly; floors missed by about {missed:.0e} leave what is printed"
    upper = solved(threshold, system).upper
    open_in_paper = _printed("trace_bound", system=system)
    if open_in_paper is not None and upper < rho_min <= open_in_paper:
        why += f"; the paper leaves open whether 0 is possible: it is not, ρ★ ≤ {upper:.6f}"
    return TOLERANCE, why


def _min_fidelity(cell: Cell, paper: float, ours: float) -> Verdict:
    floor = float(cell.args["rho_min"])
    if solved(decorrelate, cell.args["system"], floor).status == "exact" and ours > paper:
        why = "the exact decorrelator of largest mean fidelity, not just any, is returned"
        return IMPROVED, why
    if floor - _MISSED - cell.unit / 2 <= paper < floor and abs(ours - floor) <= _ROUNDING:
        return TOLERANCE, f"our floor of {floor:g} holds exactly; the paper's may be missed by 1e-4"
    return UNEXPLAINED, "neither above the paper's nor explained by its tolerance"


def _violation(cell: Cell, paper: float, ours: float) -> Verdict:
    if paper <= _MISSED and ours <= _ROUNDING:
        return IMPROVED, "floors hold to rounding; the paper's may be missed by 1e-4"
    return UNEXPLAINED, "ours misses a floor, or the paper's misses it by more than its tolerance"


def _threshold_upper(cell: Cell, paper: float, ours: float) -> Verdict:
    system = cell.args["system"]
    # The paper tries all subsets where there are few, and takes the full set elsewhere.
    if _printed("subset_bound", system=system) is not None:
        bound = solved(subset_bound, system)[0]
    else:
        bound = trace_bound(matrix(system))
    if cell.has_digits_of(bound) and solved(threshold, system).lower <= ours < paper:
        return IMPROVED, f"the certified ρ★ replaces an interval up to the analytic {bound:.6f}"
    return UNEXPLAINED, f"not our upper bound, nor the analytic one, {bound:.6f}"


def _seconds(cell: Cell, paper: float, ours: float) -> Verdict:
    if ours < paper:
        return IMPROVED, f"{paper / ours:.0f} times faster (this machine, no random starts)"
    return UNEXPLAINED, "slower than the paper"


def _support_row(cell: Cell, paper: float, ours: float) -> Verdict:
    """The problem is not convex, and its ρ_min = 0 row is in another table of the paper as well."""
    system, rho_min = cell.args["system"], float(cell.args["rho_min"])
    answer = supported(system, rho_min)
    if rho_min == 0.0:
        twin = _printed(cell.quantity.replace("support", "floor"), criterion="squared")
        if twin is not None and abs(twin - paper) > cell.unit / 2 >= abs(twin - ours):
            return INCONSISTENT, (
                "signs are free, so ρ_min = 0 costs nothing and this row must be the paper's own "
                f"optimum without fidelity ({twin:.4f}), which its starts missed here; improved "
                f"to D2 = {answer.objective:.6f}"
            )
        return UNEXPLAINED, "not the optimum without fidelity either"
    # without a printed D2 there are only two measures of it: to be better is to be less in both
    R = matrix(system)
    less = [
        MEASURES[quantity](R, answer.T, rho_min)
        < (_printed(f"support_{quantity}", system=system, rho_min=rho_min) or 0.0)
        for quantity in ("max_residual", "mean_residual")
    ]
    if all(less) and answer.min_fidelity >= rho_min - _ROUNDING:
        return IMPROVED, (
            f"another local optimum, with less than the paper in both measures; D2 = "
            f"{answer.objective:.6f} (the paper prints none)"
        )
    return UNEXPLAINED, f"D2 = {answer.objective:.6f}, and not less in both of the paper's measures"


def _floor(cell: Cell, paper: float, ours: float) -> Verdict:
    """The criterion itself is printed for the optimum without fidelity, so it can be compared."""
    system, criterion = cell.args["system"], cell.args["criterion"]
    answer = supported(system, criterion=criterion)
    target = _printed("floor_objective", system=system, criterion=criterion)
    if target is not None and answer.objective < target - cell.unit / 2:
        return IMPROVED, (
            f"a better optimum: {answer.objective:.6f} instead of {target:.4f}, proved above "
            f"{answer.lower_bound:.6f}"
        )
    return UNEXPLAINED, f"ours has {answer.objective:.6f} and is not better than the paper's"


def _support_min_fidelity(cell: Cell, paper: float, ours: float) -> Verdict:
    if ours > paper:
        return IMPROVED, "the optimum keeps more fidelity than its floor asks for"
    return UNEXPLAINED, "below the paper's"


_REASONS: Mapping[str, Callable[[Cell, float, float], Verdict]] = {
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
