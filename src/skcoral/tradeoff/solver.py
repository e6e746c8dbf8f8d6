"""Floors above what exact decorrelation allows: the least residual correlation, with its proof."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skcoral._arrays import submatrix, to_host
from skcoral.exact import exact_threshold
from skcoral.results import Criterion, Decorrelation
from skcoral.tradeoff import criteria
from skcoral.tradeoff.binding import Candidate, settle
from skcoral.tradeoff.caps import correlation_of, on_caps
from skcoral.tradeoff.dual import DualPoint, dual_bound
from skcoral.tradeoff.levels import solve_levels
from skcoral.tradeoff.outcome import Solved, as_result
from skcoral.tradeoff.smooth import best_start, solve_squared

Array = NDArray[np.float64]
Index = NDArray[np.intp]
Callback = Callable[[int, float, float], object]

_LIFT = 1e9  # how far the multipliers of floors of one are taken towards infinity
_CLOSE = 1.0 - 1e-7  # least floor that is too close to one for the smooth method
_MILD = 1e-3  # least pair weight, relative to the largest, that the smooth method is trusted with


@dataclass(frozen=True)
class Warm:
    """Where a neighbouring problem ended: multipliers and H of all variables, and what bound."""

    lam: Array
    H: Array
    binding: NDArray[np.bool_]


def solve_tradeoff(
    R: Any,
    floors: Array,
    *,
    names: Sequence[str],
    criterion: Criterion = "squared",
    pair_weights: Array | None = None,
    tol: float = 1e-9,
    max_iter: int = 200,
    callback: Callback | None = None,
    warm: Warm | None = None,
) -> Decorrelation:
    """Least residual correlation for floors that exact decorrelation cannot meet.

    Parameters
    ----------
    R : array of shape (p, p)
        Correlation matrix, positive definite. Newton's method for the squared criterion runs where
        it lies; everything else in NumPy.
    floors : ndarray of shape (p,)
        The least fidelity of each variable, in [0, 1].
    names : sequence of str
        The variables.
    criterion : {"squared", "worst", "absolute"}
        What is minimised. For "worst", the answer has the least sum of squares among the optima.
    pair_weights : ndarray of shape (p, p), optional
        Weights of the pairs; zero means that a pair does not matter.
    tol : float
        Gap to aim at, relative to ``max(1, objective)``.
    max_iter : int
        Largest number of Newton steps.
    callback : callable, optional
        Called as ``callback(iteration, objective, lower_bound)`` after each step.
    warm : Warm, optional
        Start from the solution of a neighbouring problem.

    Returns
    -------
    Decorrelation

    Warns
    -----
    NotCertifiedWarning
        The gap could not be closed; the answer is feasible all the same.

    Examples
    --------
    >>> import numpy as np
    >>> from skcoral.tradeoff import solve_tradeoff
    >>> R = np.array([[1.0, 0.8], [0.8, 1.0]])
    >>> answer = solve_tradeoff(R, np.array([0.95, 0.95]), names=["a", "b"], criterion="worst")
    >>> answer.status
    'optimal'
    >>> round(answer.objective, 6)  # cos(arccos 0.8 + 2 arccos 0.95)
    0.288035
    """
    solved = solve_floors(
        R,
        floors,
        criterion=criterion,
        pair_weights=pair_weights,
        tol=tol,
        max_iter=max_iter,
        callback=callback,
        warm=warm,
    )
    return as_result(
        solved,
        floors,
        names=names,
        criterion=criterion,
        pair_weights=pair_weights,
        max_iter=max_iter,
    )


def is_mild(omega: Array) -> bool:
    """Whether the pair weights are close enough to each other for the smooth method."""
    least = (omega + np.diag(np.full(len(omega), np.inf))).min(initial=np.inf)
    return bool(least > 0.0 and least >= _MILD * omega.max(initial=0.0))


def solve_floors(
    R: Any,
    floors: Array,
    *,
    criterion: Criterion,
    pair_weights: Array | None,
    tol: float,
    max_iter: int,
    callback: Callback | None = None,
    warm: Warm | None = None,
) -> Solved:
    """Solve without judging: the numbers of :func:`solve_tradeoff` before status and warning."""
    there, R = R, to_host(R)
    omega = criteria.pair_matrix(pair_weights, len(R))
    top = float(omega.max(initial=0.0))
    if top == 0.0:
        return _nothing_counts(R, floors, tol, max_iter)
    omega = omega / top
    if warm is not None:
        warm = Warm(warm.lam / top, warm.H / top, warm.binding)
    active = np.flatnonzero(floors > 0)
    block = np.ix_(active, active)
    report = _reporter(R[block], floors[active], criterion, omega[block], top, callback)

    def finish(candidate: Candidate) -> Solved:
        return _finish(there, floors, candidate, criterion, omega, top)

    if np.all(floors[active] >= 1.0):
        return finish(_at_sources(R, floors, criterion, omega))
    smooth = criterion == "squared" and is_mild(omega[block]) and bool(floors.max() < _CLOSE)
    best: Solved | None = None
    used = 0
    # Other scales of the start, for the rare cases where the first leaves a gap.
    for scale in (0.0, 1.0, 30.0) if smooth else (1.0, 30.0, 0.1):
        if scale == 0.0:
            candidate = _smooth(there, floors, omega, tol, max_iter, warm, report)
        else:
            candidate = solve_levels(
                R,
                floors,
                omega,
                criterion,
                goal=min(0.1 * tol / len(R) ** 2, 1e-12),
                max_iter=max_iter - used,
                scale=scale,
                report=report,
            )
        used += candidate.n_iter
        solved = finish(candidate)
        best = solved if best is None else best.joined(solved)
        if best.certified or used >= max_iter:
            break
    if best is None:
        raise AssertionError("there is always a plan")
    if not best.certified and np.all((floors > 0.999) & (floors < 1.0)):
        best = _near_sources(best, R, floors, omega, top, criterion)
    if not best.certified:
        best = _near_threshold(best, there, floors, omega, top, criterion)
    return replace(best, n_iter=used)


def _smooth(
    R: Any,
    floors: Array,
    omega: Array,
    tol: float,
    max_iter: int,
    warm: Warm | None,
    report: Callable[[DualPoint], object] | None,
) -> Candidate:
    active = np.flatnonzero(floors > 0)
    inside = np.ix_(active, active)
    if warm is not None:
        answer = solve_squared(
            R,
            floors,
            omega,
            warm.H[inside],
            warm.lam[active],
            guesses=[np.flatnonzero(warm.binding)],
            follow=False,
            goal=min(0.1 * tol, 1e-10),
            max_iter=max_iter,
        )
        if answer is not None:
            return answer
    weights = exact_threshold(R, floors).weights[active]
    H, lam = best_start(submatrix(R, active, active), floors[active], omega[inside], weights)
    guesses = [active[weights > 0]] if np.any(weights == 0) else []
    cold = solve_squared(
        R,
        floors,
        omega,
        H,
        lam,
        guesses=[*guesses, active],
        # The gap is the square of the error in λ: prices to eight digits ask for this much.
        goal=min(1e-6 * tol, 1e-15),
        max_iter=max_iter,
        report=report,
    )
    if cold is None:
        raise AssertionError("the barrier path always ends somewhere")
    return cold


def _nothing_counts(R: Array, floors: Array, tol: float, max_iter: int) -> Solved:
    """All pair weights are zero: the objective is zero, and ties go to the least sum of squares."""
    p = len(R)
    plain = solve_floors(
        R, floors, criterion="squared", pair_weights=None, tol=tol, max_iter=max_iter
    )
    H = 1e-15 * np.eye(p)
    return replace(plain, objective=0.0, lower_bound=-1e-15 * p, lam=np.zeros(p), H=H)


def _finish(
    R: Any, floors: Array, candidate: Candidate, criterion: Criterion, omega: Array, top: float
) -> Solved:
    """Make the candidate feasible to the last digit, and evaluate both sides of the certificate."""
    T = on_caps(R, candidate.T, floors, candidate.binding)
    G = correlation_of(R, T)
    R = to_host(R)
    H = criteria.admissible(criterion, candidate.H, omega)
    lam, H = _lifted(candidate.lam, H, floors)
    bound = dual_bound(R, floors, lam, H, criterion, omega, near=T, near_correlation=G)
    return Solved(
        T=T,
        G=G,
        fidelity=np.einsum("ji,ij->j", R, T),
        objective=top * criteria.value(criterion, G, omega),
        lower_bound=top * bound,
        lam=top * lam,
        H=top * H,
        binding=candidate.binding,
        n_iter=candidate.n_iter,
    )


def _lifted(lam: Array, H: Array, floors: Array) -> tuple[Array, Array]:
    """Take the multipliers of floors of one towards infinity, and H with them."""
    lift = np.where(floors >= 1.0, _LIFT, 0.0)
    return lam + lift, H + np.diag(lift)


def _at_sources(R: Array, floors: Array, criterion: Criterion, omega: Array) -> Candidate:
    """Every floor is one or zero: outputs are sources, the others are completed exactly.

    The bound tends to the objective as the multipliers grow, ``λ = s`` and ``H = s I + K`` with K a
    subgradient of the criterion at R. What grows is added at the end.
    """
    members = np.flatnonzero(floors >= 1.0)
    block = np.ix_(members, members)
    K = _subgradient(R[block], criterion, omega[block])
    size = np.abs(K).sum(axis=1)
    return settle(R, floors, members, size, K + np.diag(size + 1e-15), np.eye(len(members)), 0)


def _subgradient(R: Array, criterion: Criterion, omega: Array) -> Array:
    """A subgradient of the criterion at the sources themselves, in the domain of the conjugate."""
    residual = criteria.off(R)
    if criterion == "squared":
        return np.asarray(omega * residual)
    if criterion == "absolute":
        return np.asarray(0.5 * omega * np.sign(residual))
    K = np.zeros_like(R)
    i, j = np.unravel_index(int(np.argmax(omega * np.abs(residual))), R.shape)
    K[i, j] = K[j, i] = 0.5 * omega[i, j] * np.sign(residual[i, j])
    return K


def _near_sources(
    solved: Solved, R: Array, floors: Array, omega: Array, top: float, criterion: Criterion
) -> Solved:
    """Try the dual point that belongs to outputs close to their sources, for floors close to one.

    To first order in the angles ``arccos ρ_j`` it is known in closed form.
    """
    K = _subgradient(R, criterion, omega)
    tangent = np.einsum("ij,ij->j", K, R @ K) - np.einsum("ij,ij->j", R, K) ** 2
    angle = np.sqrt(np.maximum(1.0 - floors**2, 1e-32))
    lam = np.sqrt(np.maximum(tangent, 0.0)) / angle
    H = K + np.diag(np.maximum(lam * floors - np.einsum("ij,ij->j", R, K), 1e-13))
    if np.linalg.eigvalsh(H)[0] <= 0:
        return solved
    H = criteria.admissible(criterion, H, omega)
    bound = top * dual_bound(R, floors, lam, H, criterion, omega, near=solved.T)
    if bound <= solved.lower_bound:
        return solved
    return replace(solved, lower_bound=bound, lam=top * lam, H=top * H)


def _near_threshold(
    solved: Solved, R: Any, floors: Array, omega: Array, top: float, criterion: Criterion
) -> Solved:
    """Try the exact decorrelator that comes closest to the floors, moved until it meets them."""
    T = on_caps(R, exact_threshold(R, floors).T, floors, np.zeros(len(floors), dtype=bool))
    G = correlation_of(R, T)
    objective = top * criteria.value(criterion, G, omega)
    if objective >= solved.objective:
        return solved
    fidelity = np.einsum("ji,ij->j", to_host(R), T)
    return replace(solved, T=T, G=G, fidelity=fidelity, objective=objective)


def _reporter(
    R: Array,
    floors: Array,
    criterion: Criterion,
    omega: Array,
    top: float,
    callback: Callback | None,
) -> Callable[[DualPoint], object] | None:
    if callback is None:
        return None
    calls = 0

    def report(point: DualPoint) -> None:
        nonlocal calls
        calls += 1
        T = on_caps(R, point.T, floors, np.zeros(len(R), dtype=bool))
        objective = criteria.value(criterion, correlation_of(R, T), omega)
        H = criteria.admissible(criterion, point.H, omega)
        lam, H = _lifted(np.maximum(point.lam, 0.0), H, floors)
        callback(calls, top * objective, top * dual_bound(R, floors, lam, H, criterion, omega))

    return report
