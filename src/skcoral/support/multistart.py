"""Many starts in one array, a polished best, and the bound that judges it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from skcoral._linalg import gram_defect
from skcoral.certificates.settling import settle
from skcoral.exact import KeptThreshold
from skcoral.measures import fidelity
from skcoral.results import Array, Certificate, Criterion, Decorrelation, Status
from skcoral.support.caps import Caps
from skcoral.support.frame_relaxation import DENSE_LIMIT, Norm, frame_bound
from skcoral.support.lower_bounds import (
    LowerBound,
    feasible_set,
    frame_certificate,
    least_norm_bound,
    lifted_bound,
)
from skcoral.support.optimality import multipliers
from skcoral.support.pattern import Mask, degrees_of_freedom
from skcoral.support.search import Found, explore, search_from, sharpen
from skcoral.support.starts import structured_starts

Callback = Callable[[int, float, float], Any]

_EXACT = 1e-10


def solve_unbounded(
    R: Array,
    floors: Array,
    mask: Mask,
    *,
    names: tuple[str, ...],
    criterion: Criterion,
    tol: float,
    max_iter: int,
    n_starts: int,
    random_state: int | np.random.Generator | None,
    callback: Callback | None,
    warm: Array | Sequence[Array] | None,
    threshold: KeptThreshold | None,
) -> Decorrelation:
    """Solve a support problem without bounds on coefficients."""
    space = feasible_set(R, mask, floors)
    progress = Progress(callback)
    judge = Judge(space, criterion, tol, progress)
    given = as_stack(warm, len(R))
    first = structured_starts(space, given, threshold or KeptThreshold(R))[
        : max(1, n_starts) + len(given)
    ]
    found = search_from(space, first, len(first), criterion, max_iter, progress, keep=len(given))
    n_random = n_starts - len(first)
    found = sharpen(space, found, criterion, only_best=n_random > 0)
    judge.consider(found)
    if n_random > 0 and not judge.certifies(found):
        rng = np.random.default_rng(random_state)
        found = explore(space, found, n_random, rng, criterion, max_iter, progress)
        found = sharpen(space, found, criterion)
        judge.consider(found)
    return _result(space, mask, floors, names, criterion, found, judge, random_state)


@dataclass
class Progress:
    """Numbers the steps for the user's callback and remembers the best of both sides."""

    callback: Callback | None
    iteration: int = 0
    objective: float = np.inf
    lower_bound: float = 0.0

    def step(self, objective: float | None = None, lower_bound: float | None = None) -> None:
        """Report one more step."""
        self.iteration += 1
        if objective is not None:
            self.objective = min(self.objective, objective)
        if lower_bound is not None:
            self.lower_bound = max(self.lower_bound, lower_bound)
        if self.callback is not None:
            self.callback(self.iteration, self.objective, self.lower_bound)


class Judge:
    """Keeps the best lower bound known and says whether it proves an answer optimal."""

    def __init__(self, space: Caps, criterion: Criterion, tol: float, progress: Progress) -> None:
        self.space, self.criterion, self.tol, self.progress = space, criterion, tol, progress
        self.least = least_norm_bound(space.R, space.mask)
        self.best = frame_certificate(space, self.least, criterion, "frobenius")
        self.frame_done = False
        progress.step(lower_bound=self.best.value)

    def gap_allowed(self, objective: float) -> float:
        """Largest gap that still counts as proved."""
        return self.tol * max(objective, 1e-3)

    def certifies(self, found: Found) -> bool:
        """Whether the bound meets the objective."""
        return found.worst <= _EXACT or (
            found.value - self.best.value <= self.gap_allowed(found.value)
        )

    def consider(self, found: Found) -> None:
        """Look for a bound that proves ``found`` optimal, the cheapest one first."""
        if found.worst <= _EXACT:
            return
        state = multipliers(self.space, found.U, found.half_slope, 1e-7)
        lifted = lifted_bound(self.space, state.H, state.floors, self.criterion)
        self._offer(lifted, found)
        if self.frame_done or self.certifies(found):
            return
        self.frame_done = True
        objective = found.value
        squared = self.criterion == "squared"
        norms: list[Norm] = ["frobenius"]
        if self.criterion == "absolute":
            norms.append("nuclear")
        for norm in norms:
            frame = frame_bound(
                self.space,
                norm=norm,
                start=self.least.M,
                stop_at=objective - self.gap_allowed(objective) if squared else np.inf,
                tol=self._frame_tol(),
                on_iteration=lambda _, value: self.progress.step(
                    objective, value if squared else None
                ),
            )
            self._offer(frame_certificate(self.space, frame, self.criterion, norm), found)

    def _frame_tol(self) -> float:
        # Only the squared criterion can be met by the frame bound, so only there digits matter. In
        # large systems the last digits take most of the time, and any early end is a valid bound.
        if self.space.p > DENSE_LIMIT:
            return 1e-3
        return 0.1 * self.tol if self.criterion == "squared" else 1e-6

    def _offer(self, bound: LowerBound | None, found: Found) -> None:
        # A bound above an attained value can only be rounding.
        if bound is not None and bound.value > self.best.value:
            self.best = LowerBound(min(bound.value, found.value), bound.name, bound.certificate)
            self.progress.step(found.value, self.best.value)


def as_stack(warm: Array | Sequence[Array] | None, p: int) -> Array:
    """Warm starts as one array of shape (n, p, p)."""
    if warm is None:
        return np.zeros((0, p, p))
    stack = np.asarray(warm, dtype=np.float64)
    return stack[None] if stack.ndim == 2 else stack


def exact_columns(R: Array, T: Array, floors: Array, mask: Mask) -> Array:
    """Give every column its sign, unit variance, and its floor against rounding."""
    T = np.where(mask, T, 0.0)
    T = T * np.where(fidelity(R, T) < 0, -1.0, 1.0)
    T = T / np.sqrt(1.0 + np.diag(gram_defect(R, T)))
    nudge = 1e-16
    while nudge < 1e-6:
        low = np.flatnonzero(fidelity(R, T) < floors)
        if not len(low):
            break
        # A step towards the source itself raises its share; columns at a floor of one are sources.
        t = (1.0 - nudge) * T[:, low]
        t[low, np.arange(len(low))] += nudge
        T[:, low] = t / np.sqrt(1.0 + np.diag(gram_defect(R, t)))
        nudge *= 4.0
    return T


def _result(
    space: Caps,
    mask: Mask,
    floors: Array,
    names: tuple[str, ...],
    criterion: Criterion,
    found: Found,
    judge: Judge,
    random_state: Any,
) -> Decorrelation:
    R = space.R
    T = exact_columns(R, space.transform(found.U[None])[0], floors, space.mask)
    G = np.eye(space.p) + gram_defect(R, T)
    state = multipliers(space, found.U, found.half_slope, 1e-7)
    lam = np.where(space.floors >= 1.0, 0.0, state.floors)
    # The residual falls like the square root of 1 - ρ_j, so a floor of one has no finite price.
    crowded = np.abs(G - np.diag(np.diag(G))).max(axis=0, initial=0.0) > _EXACT
    prices = np.where((floors >= 1.0) & (mask.sum(axis=0) > 1) & crowded, np.inf, 2.0 * lam)
    exact = found.worst <= _EXACT
    bound = judge.best
    status: Status = "best_found"
    if exact:
        bound = LowerBound(0.0, "none", _empty_certificate(space, criterion))
        status = "exact"
    elif not found.converged:
        status = "not_converged"
    result = Decorrelation(
        T=T,
        correlation=G,
        fidelity=fidelity(R, T),
        rho_min=floors,
        criterion=criterion,
        objective=found.value,
        lower_bound=min(bound.value, found.value),
        prices=prices,
        weights=lam,
        status=status,
        names=names,
        certificate=_with_slope(bound.certificate, found.half_slope),
        n_iter=judge.progress.iteration,
        details={
            "support": mask,
            "degrees_of_freedom": asdict(degrees_of_freedom(mask)),
            "n_starts": found.n_starts,
            "n_best": found.n_best,
            "bound": bound.name,
            "stationarity": 0.0 if exact else state.stationarity,
            "random_state": random_state if isinstance(random_state, int) else None,
        },
    )
    return settle(result, R)


def _with_slope(certificate: Certificate, slope: Array) -> Certificate:
    """Add the half-gradient of the criterion at T, from which the prices follow."""
    arrays = {**certificate.arrays, "slope": 0.5 * (slope + slope.T)}
    return Certificate(certificate.kind, arrays, certificate.info)


def _empty_certificate(space: Caps, criterion: Criterion) -> Certificate:
    p = space.p
    arrays = {
        "P": np.zeros((p, p)),
        "eta": np.zeros(p),
        "support": space.mask.astype(np.float64),
    }
    return Certificate(
        "support", arrays, {"bound": "frame", "criterion": criterion, "norm": "frobenius"}
    )
