"""Results: frozen records of what was attained and of what is proved, with the certificate."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from skcoral.core.arrays import Array, Frozen, read_only
from skcoral.core.criteria import Criterion
from skcoral.core.display import Drawn, Fidelities
from skcoral.core.linalg import largest_residuals
from skcoral.core.lowrank import LowRankTransform, welch
from skcoral.core.solution import Answer, Certificate, SupportSearch, VifLimit
from skcoral.core.validation import listing

if TYPE_CHECKING:
    import pandas as pd

    from skcoral.data.effects import Measured

Status = Literal["exact", "optimal", "best_found", "not_converged"]
# Relative to the largest weight: smaller ones are what an interior point leaves instead of zero.
_ROUNDING = 1e-9


@dataclass(frozen=True)
class Notes(Frozen):
    """Sentences about an answer, from where its matrix was made."""

    about: str = "the matrix given"  #: What the certificate is about.
    #: Whether that is the correlation matrix of the rows, or the matrix given.
    is_about_rows: bool = True
    guarantee: str = ""  #: What it says about the rows, where it is about another matrix.
    confidence: str = ""  #: What holds for the population that the rows were drawn from.
    rounding: str = ""  #: What rounding leaves of the guarantee on the original scale.


class _Transformation(Drawn, Frozen):
    """Properties of every result with a transformation ``T``."""

    T: Any
    names: tuple[str, ...]
    certificate: Certificate

    @property
    def rank(self) -> int:
        """Rank of the outputs, which is below their number where the matrix is singular."""
        return int(self.certificate.info.get("rank", len(self.names)))

    @property
    def least_residual(self) -> float:
        """The least sum of squared correlations that outputs of this rank can have."""
        return welch(len(self.names), self.rank)

    def loadings(self) -> pd.DataFrame:
        """``T`` with names: a column for each output, a row for each standardised source."""
        import pandas as pd

        T = self.T.toarray() if isinstance(self.T, LowRankTransform) else self.T
        sources = self.names if len(T) == len(self.names) else [f"x{j}" for j in range(len(T))]
        return pd.DataFrame(
            T, index=pd.Index(sources, name="source"), columns=pd.Index(self.names, name="output")
        )


@dataclass(frozen=True, eq=False)
class Threshold(_Transformation):
    """The threshold ρ★ of a correlation matrix, between two bounds that can be re-checked.

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
        An exact decorrelator whose fidelities are all at least ``lower``. The outputs that do not
        bind have the largest mean fidelity that this allows.
    fidelity : ndarray of shape (p,)
        Correlation of each output with its own source.
    names : tuple of str
        The variables, in input order.
    certificate : Certificate
        The dual point behind ``upper``.
    n_iter : int
        Newton steps taken.
    tol : float
        The gap up to which the threshold counts as certified, at most ``OPTIMAL_GAP``.

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

    _summary: ClassVar[str] = "threshold_summary"

    @property
    def value(self) -> float:
        """The common fidelity attained by ``T``."""
        return self.lower

    @property
    def gap(self) -> float:
        """``upper - lower``, the largest possible distance of ``value`` from ρ★."""
        return self.upper - self.lower

    @property
    def status(self) -> Status:
        """Return "optimal" if the gap is at most ``tol``, else "best_found"."""
        return "optimal" if self.gap <= self.tol else "best_found"

    @property
    def binding(self) -> tuple[str, ...]:
        """Names of the variables that bind the threshold (λ_j > 0), heaviest first."""
        order, rounding = np.argsort(-self.weights, kind="stable"), _ROUNDING * self.weights.max()
        return tuple(self.names[j] for j in order if self.weights[j] > rounding)

    def _table(self) -> tuple[str, tuple[str, ...], dict[str, Array]]:
        return "variable", self.names, {"fidelity": self.fidelity, "weight": self.weights}

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}(value={self.value:.9f}, upper={self.upper:.9f}, "
            f"gap={self.gap:.1e}, binding {len(self.binding)} of {len(self.names)}: "
            f"{listing(self.binding, 6, quote='')})"
        )


class SingularThreshold(Threshold):
    """The largest common floor at which the sum of squares is the least for the rank."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Decorrelation(Fidelities, _Transformation, Answer):
    """A transformation ``T`` with its guarantee and the proof of its optimality.

    Attributes
    ----------
    T : ndarray of shape (p, k), or LowRankTransform
        Column j makes output j: ``X̃ = Z T`` with ``Z`` the standardised table (k = p unless
        outputs are anchored to composites). For tables with many more columns than rows it is the
        identity plus a product of two factors, and ``T.toarray()`` has the coefficients.
    correlation : ndarray of shape (k, k), or FactoredCorrelation
        ``TᵀRT``, the correlation matrix of the outputs; a factor of it for such tables.
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
        "exact": no residual correlation, and the largest mean fidelity that the floors allow.
        Where floors cannot all be raised, the mean is the largest over the outputs that do not
        bind; with a support nothing is said about it.
        "optimal": the bound proves that no feasible transformation leaves less, and for a budget
        that no floor is higher; for a limit on the VIF it is about the floor alone.
        "best_found": feasible with an open gap. "not_converged": the solver stopped early.
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
        For the criteria "worst" and "absolute": whether the least sum of squares decided between
        equal optima. It is not looked for where the matrix is singular or coefficients are
        restricted, nor where that takes too long, and nothing proves that it is the least.
        Certificate files do not keep this.
    notes : Notes
        What the certificate is about, and what else is known.
    R : ndarray of shape (p, p) or None
        The correlation matrix of the sources, if a matrix was given.
    on_rows : Measured or None
        What was measured on the rows, if rows were given.

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
        """Why the rank is below the number of outputs; empty if it is not."""
        return str(getattr(self, "reason", ""))

    @property
    def amplification(self) -> float:
        """The largest coefficient of ``T``."""
        T = self.T
        return T.largest() if isinstance(T, LowRankTransform) else float(np.abs(T).max())

    @property
    def is_certified(self) -> bool:
        """Whether the answer is proved to be the best one."""
        return self.status in ("exact", "optimal")

    @property
    def gap(self) -> float:
        """``objective - lower_bound``, the most that another transformation could leave less."""
        return self.objective - self.lower_bound

    def outputs_and_sources(self, Z: Any) -> tuple[Any, Any]:
        """Outputs of standardised rows, and the variables or composites they are anchored to."""
        return Z @ self.T, Z if self.anchors is None else Z @ self.anchors

    @property
    def measured(self) -> Measured | None:
        """The effect in figures, on the rows given or else on the matrix."""
        from skcoral.data.effects import measure_matrix

        if self.on_rows is not None or self.R is None:
            return self.on_rows
        return measure_matrix(self.R, self.T, self.names, anchors=self.anchors)

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
        if isinstance(self.goal, VifLimit):  # nothing is claimed about its residual
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

    Eigenvalues up to 1e-12 times the largest one count as zero.

    Attributes
    ----------
    reason : str
        Why the matrix is singular: linear relations, or too few rows.
    """

    reason: str = ""


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class RestrictedDecorrelation(Decorrelation):
    """An answer with restricted coefficients: exact zeros off a support, or bounds.

    Attributes
    ----------
    search : SupportSearch
        How the search went.

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


@dataclass(frozen=True, eq=False, repr=False)
class Frontier(Drawn, Frozen):
    """The least residual correlation as a function of the common floor.

    Zero up to the threshold, convex and increasing after it, the residual of the untransformed
    variables at one.

    Attributes
    ----------
    rho_min : ndarray of shape (n,)
        Common floors, in increasing order (or in the order they were asked for).
    objective, lower_bound : ndarray of shape (n,)
        Residual attained and the least possible, at each floor.
    slope : ndarray of shape (n,)
        d objective / d rho_min, the sum of the prices; infinite at a floor of one unless the
        variables are uncorrelated.
    worst_residual, mean_residual : ndarray of shape (n,)
        Largest and mean absolute residual correlation.
    min_fidelity, mean_fidelity : ndarray of shape (n,)
        Weakest and mean correlation of the outputs with their sources.
    threshold : float
        ρ★, up to which the residual is zero.
    criterion : {"squared", "worst", "absolute"}
        What ``objective`` measures.
    names : tuple of str
        The variables.
    pair_weights : ndarray of shape (p, p) or None
        Weights of the pairs in the criterion, if given.

    Examples
    --------
    >>> from skcoral import frontier
    >>> curve = frontier([[1.0, 0.8], [0.8, 1.0]], [0.9, 0.95, 1.0])
    >>> curve.objective.round(4).tolist()
    [0.0006, 0.083, 0.64]
    """

    rho_min: Array
    objective: Array
    lower_bound: Array
    slope: Array
    worst_residual: Array
    mean_residual: Array
    min_fidelity: Array
    mean_fidelity: Array
    threshold: float
    criterion: Criterion
    names: tuple[str, ...]
    pair_weights: Array | None = None

    _summary: ClassVar[str] = "frontier_summary"
    _pictures: ClassVar[Mapping[str, str]] = {"frontier": "FrontierDisplay"}

    @property
    def gap(self) -> Array:
        """``objective - lower_bound`` at each floor."""
        return read_only(self.objective - self.lower_bound)

    def to_frame(self) -> pd.DataFrame:
        """One row per floor, one column per quantity."""
        import pandas as pd

        values = {f.name: getattr(self, f.name) for f in fields(self)}
        one_per_floor = {k: v for k, v in values.items() if getattr(v, "ndim", 0) == 1}
        return pd.DataFrame(one_per_floor)

    def __len__(self) -> int:
        return len(self.rho_min)
