"""Problems: a correlation matrix and what is asked of it, validated when they are made."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, cast

import numpy as np

from skcoral.core.arguments import read_pair_weights, sources_in_order
from skcoral.core.arrays import Array, library, to_device
from skcoral.core.deficiency import Deficiency
from skcoral.core.frozen import Criterion
from skcoral.core.linalg import gram_defect, of_unit_variance
from skcoral.core.lowrank import FactoredCorrelation
from skcoral.core.requirements import listing
from skcoral.core.validation import (
    check_anchors,
    check_callback,
    check_choice,
    check_names,
    check_positive,
    check_semidefinite,
    frame_names,
)
from skcoral.exceptions import (
    InvalidAnchorError,
    InvalidCorrelationError,
    SingularCorrelationWarning,
    warn,
)

CRITERIA = ("squared", "worst", "absolute")
Callback = Callable[[int, float, float], object]


@dataclass
class Memory:
    """What questions about one matrix share: ρ★, and where the search for it begins.

    ``near`` are the weights of a matrix that is close, if there is one.
    """

    near: Array | None = None
    threshold: Any = None
    tol: float = np.inf
    max_iter: int = 0


@dataclass(frozen=True)
class Matrix:
    """A correlation matrix that was validated once: the array, the names, and what is dependent.

    The functions of :mod:`skcoral.api` take it in place of the array, so that several questions
    about one matrix share the validation and ρ★.

    ``R`` is kept as a factor for tables with many more columns than rows.
    """

    R: Any
    names: tuple[str, ...]
    deficiency: Deficiency | None
    like: Any = None
    memory: Memory = field(default_factory=Memory)

    @cached_property
    def placed(self) -> Any:
        """``R`` in the library and on the device of what was given, which it is where equal."""
        there = to_device(self.R, self.like)
        given = self.like
        same = library(given) is not np and given.dtype == there.dtype
        return given if same and bool(library(given).all(given == there)) else there

    @property
    def dense(self) -> bool:
        """Whether ``R`` is an ordinary array."""
        return not isinstance(self.R, FactoredCorrelation)

    def __len__(self) -> int:
        return len(self.names)

    def regular(self, what: str) -> Array:
        """The matrix, refused where it is singular and ``what`` needs all directions."""
        if self.deficiency is not None:
            raise self.deficiency.error(what)
        return np.asarray(self.R)


def check_matrix(R: Any, *, on_singular: Any = "raise") -> Matrix:
    """Turn what the user gave into a matrix with names; say so where it is singular."""
    solve = check_choice("on_singular", on_singular, ("solve", "raise")) == "solve"
    if isinstance(R, Matrix):
        return R
    known = getattr(R, "deficiency", None)
    if known is not None or getattr(R, "judged", False):  # an estimate from a table
        return Matrix(R.R, tuple(R.names), known)
    matrix, found = check_semidefinite(R)
    names = check_names(frame_names(R), len(matrix))
    if found is not None:
        if not solve:
            raise found.error()
        warn(found.warning(), SingularCorrelationWarning)
    return Matrix(matrix, names, found, R)


@dataclass(frozen=True)
class Settings:
    """Names of the outputs, and the arguments of :func:`skcoral.decorrelate` of these names."""

    names: tuple[str, ...]
    criterion: Criterion = "squared"
    pair_weights: Array | None = None
    tol: float = 1e-9
    max_iter: int = 200
    callback: Callback | None = None
    memory: Memory = field(default_factory=Memory)


@dataclass(frozen=True)
class Problem:
    """What is asked: of which matrix, by which criterion, for which outputs.

    Attributes
    ----------
    given : Matrix
        Of the variables.
    matrix : Matrix
        Of what the outputs belong to: the variables, or composites of them.
    settings : Settings
        Of the solver.
    composites : Composites or None
        How composites are made of the variables.
    """

    given: Matrix
    matrix: Matrix
    settings: Settings
    composites: Composites | None = None

    @classmethod
    def of(
        cls,
        R: Any,
        *,
        criterion: str = "squared",
        pair_weights: Any = None,
        anchors: Any = None,
        tol: float = 1e-9,
        max_iter: int = 200,
        on_singular: str = "solve",
        callback: Callback | None = None,
    ) -> Problem:
        """Validate what is asked."""
        given = check_matrix(R, on_singular=on_singular)
        composites = None if anchors is None else Composites(given, anchors)
        matrix = given if composites is None else composites.matrix
        settings = Settings(
            matrix.names,
            cast(Criterion, check_choice("criterion", criterion, CRITERIA)),
            read_pair_weights(pair_weights, len(matrix), matrix.names),
            check_positive("tol", tol),
            max_iter,
            check_callback(callback),
            matrix.memory,
        )
        return cls(given, matrix, settings, composites)


class Composites:
    """Outputs anchored to composites ``Z b_j``: the same problem for their correlation matrix."""

    def __init__(self, given: Matrix, anchors: Any) -> None:
        names = given.names
        labels = list(getattr(anchors, "columns", ()))
        if labels and hasattr(anchors, "index"):
            anchors = sources_in_order(anchors, names)
        self.B = check_anchors(anchors, len(names), names)
        k = self.B.shape[1]
        self.names = check_names(labels or [f"anchor{j}" for j in range(k)], k)
        # only directions matter; taking out the scale first keeps squares within range
        directions = self.B / np.abs(self.B).max(axis=0)
        if given.deficiency is None:
            gram = gram_defect(given.R, directions, precise=True) + np.eye(k)
        else:
            half = given.deficiency.factor @ directions
            gram = half.T @ half  # directions that do not count make no composite independent
        length = np.sqrt(np.diag(gram))
        nothing = [self.names[j] for j in np.flatnonzero(length <= 1e-12)]
        if nothing:
            raise InvalidAnchorError(
                f"The composites {listing(nothing)} have no variance: linear relations between the "
                "variables cancel them out. Anchor to something else."
            )
        self.unit = directions / length
        R = gram / np.outer(length, length)
        np.fill_diagonal(R, 1.0)
        try:
            matrix, found = check_semidefinite(0.5 * (R + R.T), self.names)
        except InvalidCorrelationError as reason:
            raise InvalidAnchorError(f"The composites cannot be decorrelated: {reason}") from reason
        if found is not None:  # outputs outside their span could be less correlated
            relations = "; ".join(map(str, found.relations[:5]))
            raise InvalidAnchorError(
                f"The composites depend on each other: {relations} (in "
                f"standardised units; {k} composites of rank {found.rank}). Composites have to be "
                "linearly independent: leave one of each relation out, or anchors altogether to "
                "decorrelate the variables themselves."
            )
        if given.deficiency is not None and given.dense:  # to the digits of R itself
            self.unit = of_unit_variance(given.R, self.unit)
            matrix = gram_defect(given.R, self.unit, precise=True)
            np.fill_diagonal(matrix, 1.0)
        self.matrix = Matrix(matrix, self.names, None)
