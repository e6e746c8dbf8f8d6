"""Frozen result objects: numbers first, and always the two numbers of the certificate."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from skcoral.core.arrays import Array, Frozen
from skcoral.core.criteria import Criterion
from skcoral.core.curve import Frontier as Frontier
from skcoral.core.display import Drawn, Fidelities
from skcoral.core.linalg import largest_residuals
from skcoral.core.lowrank import LowRankTransform, welch
from skcoral.core.solution import Answer, Certificate, SupportSearch, VifLimit
from skcoral.core.validation import listing

if TYPE_CHECKING:
    import pandas as pd

    from skcoral.data.effects import Measured

Status = Literal["exact", "optimal", "best_found", "not_converged"]
_ROUNDING = 1e-9  # of the largest weight: what is smaller is left over by an interior point


@dataclass(frozen=True)
class Notes(Frozen):
    """What is known of an answer beyond its matrix: sentences by whoever made the matrix."""

    about: str = "the matrix given"  #: What the certificate is about.
    is_about_rows: bool = True  #: Whether that is the correlation of the rows (or matrix) given.
    guarantee: str = ""  #: What it says about the rows, where it is about something else.
    confidence: str = ""  #: What holds for the population the rows were drawn from.
    rounding: str = ""  #: What rounding leaves of the promise on the original scale.


class _Transformation(Drawn, Frozen):
    """What results with a transformation ``T`` have in common."""

    T: Any
    names: tuple[str, ...]
    certificate: Certificate

    @property
    def rank(self) -> int:
        """How many dimensions the outputs span: below their number where the matrix is singular."""
        return int(self.certificate.info.get("rank", len(self.names)))

    @property
    def least_residual(self) -> float:
        """The least sum of squared correlations that outputs of this rank can have."""
        return welch(len(self.names), self.rank)

    def loadings(self) -> pd.DataFrame:
        """``T`` with names: what each output (column) is made of (rows: standardised sources)."""
        import pandas as pd

        T = self.T.toarray() if isinstance(self.T, LowRankTransform) else self.T
        sources = self.names if len(T) == len(self.names) else [f"x{j}" for j in range(len(T))]
        return pd.DataFrame(
            T, index=pd.Index(sources, name="source"), columns=pd.Index(self.names, name="output")
        )


@dataclass(frozen=True, eq=False)
class Threshold(_Transformation):
    """The threshold ρ★ of a correlation matrix, between two bounds that anyone can re-check.

    Attributes
    ----------
    value : float
        The common fidelity that the returned ``T`` attains; equal to ``lower``.
    lower, upper : float
        ρ★ lies between them: ``lower`` is attained by ``T``, ``upper`` holds for every exact
        decorrelator.
    weights : ndarray of shape (p,)
        λ, non-negative with sum one; the variables with λ_j > 0 bind the threshold.
    T : ndarray of shape (p, p), or LowRankTransform
        An exact decorrelator whose fidelities are all at least ``lower``; the variables that do
        not bind have the largest mean fidelity that is still possible.
    fidelity : ndarray of shape (p,)
        Correlation of each output with its own source.
    names : tuple of str
        The variables, in input order.
    certificate : Certificate
        The dual point behind ``upper``.
    n_iter : int
        Newton steps taken.
    tol : float
        The gap up to which the threshold counts as certified: what was asked for, and at most
        ``OPTIMAL_GAP``.

    Examples
    --------
    >>> from skcoral import threshold
    >>> th = threshold([[1.0, 0.8], [0.8, 1.0]])
    >>> round(th.value, 6), th.gap < 1e-9, th.status
    (0.894427, True, 'optimal')
    """

    lower: float
    upper: float
    weights: Array
    T: Any
    fidelity: Array
    names: tuple[str, ...]
    certificate: Certificate
    n_iter: int
    tol: float = 1e-9

    @property
    def value(self) -> float:
        """The common fidelity attained by ``T``."""
        return self.lower

    @property
    def gap(self) -> float:
        """``upper - lower``: how far ``value`` can be from ρ★ at most."""
        return self.upper - self.lower

    @property
    def status(self) -> Status:
        """Say "optimal" if the gap is within ``tol``, else "best_found"."""
        return "optimal" if self.gap <= self.tol else "best_found"

    @property
    def binding(self) -> tuple[str, ...]:
        """Names of the variables that bind the threshold (λ_j > 0), heaviest first."""
        order, rounding = np.argsort(-self.weights, kind="stable"), _ROUNDING * self.weights.max()
        return tuple(self.names[j] for j in order if self.weights[j] > rounding)

    def summary(self) -> str:
        """What the threshold says, what binds it, and its status: one line each."""
        from skcoral.show.sentences import threshold_summary

        return threshold_summary(self)

    def _table(self) -> tuple[str, tuple[str, ...], dict[str, Array]]:
        return "variable", self.names, {"fidelity": self.fidelity, "weight": self.weights}

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}(value={self.value:.9f}, upper={self.upper:.9f}, "
            f"gap={self.gap:.1e}, binding {len(self.binding)} of {len(self.names)}: "
            f"{listing(self.binding, 6, quote='')})"
        )


class SingularThreshold(Threshold):
    """The largest common floor at which the sum of squares has the least value of the rank."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Decorrelation(Fidelities, _Transformation, Answer):
    """A transformation ``T`` with its guarantee and the proof of its optimality.

    Attributes
    ----------
    T : ndarray of shape (p, k), or LowRankTransform
        Column j makes output j: ``X̃ = Z T`` with ``Z`` the standardised table (k = p unless
        composites are anchored). For tables with many more columns than rows it is the identity
        plus a product of two factors, and ``T.toarray()`` has the coefficients.
    correlation : ndarray of shape (k, k), or FactoredCorrelation
        ``TᵀRT``, the correlation matrix of the outputs; kept as a factor in the same case.
    fidelity : ndarray of shape (k,)
        Correlation of each output with its own source; at least ``rho_min``.
    rho_min : ndarray of shape (k,)
        The floors that were asked for.
    criterion : {"squared", "worst", "absolute"}
        What ``objective`` measures.
    objective, lower_bound : float
        The residual attained and the least that any feasible transformation can have.
    prices : ndarray of shape (k,)
        ∂objective/∂rho_min_j: what one more unit of floor for variable j costs. Zero in the exact
        regime, infinite for a floor of one that costs anything, NaN where restricted coefficients
        leave them unknown.
    weights : ndarray of shape (k,)
        In the exact regime, the weights 1 + μ of the weighted ZCA (above 1 where a floor binds);
        with floors at the edge of what is possible, the threshold's λ; above it, the dual
        multipliers λ.
    status : {"exact", "optimal", "best_found", "not_converged"}
        "exact": no residual correlation, and the largest mean fidelity that the floors allow (with
        floors at the edge of what is possible: they cannot all be raised, and beside the outputs
        that bind the others have the largest mean; with a support: no residual only).
        "optimal": the bound proves that there is no better one, and within a budget no higher
        floor; within a limit on the VIF it is about the floor alone. "best_found": feasible with an
        open gap. "not_converged": the solver stopped early.
    names : tuple of str
        The outputs' names: one-to-one with their sources.
    certificate : Certificate
        The dual point behind ``lower_bound``.
    n_iter : int
        Newton steps taken.
    pair_weights : ndarray of shape (k, k) or None
        Weights of the pairs in the criterion, if given.
    anchors : ndarray of shape (p, k) or None
        The composites that the outputs are anchored to, if given.
    goal : Floors, Budget or VifLimit
        What was asked for: see ``skcoral.core.solution``.
    unique : bool
        For the criteria "worst" and "absolute": whether ties were broken by the least sum of
        squares, which is given up where it takes too long, and not tried where the matrix is
        singular or coefficients are restricted. Nothing proves that this sum is the least.
        Certificate files do not keep it.
    notes : Notes
        What the certificate is about, and what is known beyond it.
    R : ndarray of shape (p, p) or None
        The correlation matrix of the sources, where the answer was asked for a matrix.
    on_rows : Measured or None
        What was measured on the rows, where the answer was asked for rows.

    Examples
    --------
    >>> from skcoral import decorrelate
    >>> answer = decorrelate([[1.0, 0.8], [0.8, 1.0]], rho_min=0.95)
    >>> answer.status, round(answer.objective, 6), answer.min_fidelity >= 0.95 - 1e-10
    ('optimal', 0.082964, True)
    """

    criterion: Criterion
    prices: Array
    weights: Array
    status: Status
    names: tuple[str, ...]
    pair_weights: Array | None = None
    anchors: Array | None = None
    notes: Notes = field(default_factory=Notes)
    R: Array | None = None
    on_rows: Measured | None = None

    #: Whether coefficients are restricted: by a support, or by bounds.
    is_restricted = False

    @property
    def deficiency(self) -> str:
        """Why the rank is below the number of outputs; empty where it is not."""
        return ""

    @property
    def amplification(self) -> float:
        """The largest coefficient of ``T``."""
        T = self.T
        return T.largest() if isinstance(T, LowRankTransform) else float(np.abs(T).max())

    @property
    def is_certified(self) -> bool:
        """Whether it is proved that there is no better answer."""
        return self.status in ("exact", "optimal")

    @property
    def gap(self) -> float:
        """``objective - lower_bound``: how much better another transformation could be at most."""
        return self.objective - self.lower_bound

    def outputs_and_sources(self, Z: Any) -> tuple[Any, Any]:
        """Outputs of standardised rows, and the columns or composites that they belong to."""
        return Z @ self.T, Z if self.anchors is None else Z @ self.anchors

    @property
    def measured(self) -> Measured | None:
        """The effect in figures: on the rows where there were any, else on the matrix given."""
        from skcoral.data.effects import measure_matrix

        if self.on_rows is not None or self.R is None:
            return self.on_rows
        return measure_matrix(self.R, self.T, self.names, anchors=self.anchors)

    def summary(self) -> str:
        """Measured figures, what the certificate says, and details: one line each."""
        from skcoral.show.sentences import summary

        return summary(self)

    def _table(self) -> tuple[str, tuple[str, ...], dict[str, Array]]:
        columns = {
            "fidelity": self.fidelity,
            "floor": self.rho_min,
            "price": self.prices,
            "max_residual": largest_residuals(self.correlation),
        }
        return "variable", self.names, columns

    def __repr__(self) -> str:
        open_by = f"gap={self.gap:.1e}"
        if isinstance(self.goal, VifLimit):  # of its residual nothing is claimed
            open_by = f"rho_upper={self.goal.rho_upper:.6f}"
        return (
            f"{type(self).__name__}(status={self.status!r}, criterion={self.criterion!r}, "
            f"objective={self.objective:.6g}, {open_by}, "
            f"min_fidelity={self.min_fidelity:.6f}, mean_fidelity={self.mean_fidelity:.6f}, "
            f"p={len(self.names)}{f', rank={self.rank}' if self.deficiency else ''})"
        )


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class SingularDecorrelation(Decorrelation):
    """An answer for a matrix whose rank is below the number of variables.

    Directions with at most 1e-12 of the largest eigenvalue are rounding, and do not count.

    Attributes
    ----------
    reason : str
        Which linear relations, or how few rows, make the matrix singular.

    Examples
    --------
    >>> import warnings
    >>> from skcoral import decorrelate
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")
    ...     answer = decorrelate([[1.0, 1.0], [1.0, 1.0]], 0.9)
    >>> answer.rank, answer.least_residual, answer.amplification
    (1, 1.0, 1.0)
    """

    reason: str = ""

    @property
    def deficiency(self) -> str:
        """Which linear relations, or how few rows, make the matrix singular."""
        return self.reason


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class RestrictedDecorrelation(Decorrelation):
    """An answer with restricted coefficients: exact zeros off a support, or bounds.

    Attributes
    ----------
    search : SupportSearch
        How it was found.

    Examples
    --------
    >>> from skcoral import decorrelate
    >>> R = [[1.0, 0.5, 0.2], [0.5, 1.0, 0.5], [0.2, 0.5, 1.0]]
    >>> bool(decorrelate(R, 0.9, support=0.3).support[0, 2])
    False
    """

    search: SupportSearch = field(default_factory=SupportSearch)

    is_restricted = True

    @property
    def support(self) -> NDArray[np.bool_]:
        """Which sources may enter which output."""
        return np.asarray(self.certificate.arrays["support"]) > 0
