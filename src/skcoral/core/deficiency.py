"""Singular correlation matrices: their factor and rank, and their null directions in words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg import lapack, qr, solve

from skcoral.core.arrays import EPS, Array, Index
from skcoral.core.linalg import gram_defect
from skcoral.core.lowrank import welch
from skcoral.core.validation import listing
from skcoral.exceptions import (
    InvalidCorrelationError,
    InvalidTableError,
    SingularCorrelationError,
    SingularCorrelationWarning,
    warn,
)

# Coefficients below this, relative to the largest of the relation, are rounding of the
# eigenvectors and not part of the relation.
_NEGLIGIBLE = 1e-6
_EARLIER = 1e-7  # by how much one variable is preferred to the next
_SHRINKAGE = "shrunk correlations (such as those of LedoitWolf)"
_SHOWN = 6  # terms of a relation before the rest is summed up in words
_SHORT = 4  # variables of a relation that few rows would hardly show by chance


@dataclass(frozen=True)
class Relation:
    """A variable that others determine: ``variable = Σ coefficient × name``.

    Examples
    --------
    >>> print(Relation("total", ((1.0, "a"), (-0.5, "b"))))
    `total` = `a` - 0.5 `b`
    """

    variable: str
    terms: tuple[tuple[float, str], ...]

    def __str__(self) -> str:
        """The relation, with the first terms of many."""
        text = ""
        for coefficient, name in self.terms[:_SHOWN]:
            size = abs(coefficient)
            text += (" - " if coefficient < 0 else " + ") if text else "-" * (coefficient < 0)
            text += "" if abs(size - 1.0) < 1e-6 else f"{size:.6g} "
            text += f"`{name}`"
        if len(self.terms) > _SHOWN:
            text += f" + {len(self.terms) - _SHOWN} more terms"
        return f"`{self.variable}` = {text or '0'}"

    @property
    def names(self) -> list[str]:
        """All variables that take part, the one that is determined first."""
        return [self.variable, *(name for _, name in self.terms)]


@dataclass(frozen=True)
class Deficiency:
    """What is known about a correlation matrix of rank r < p."""

    factor: Array  # A (r, p) with unit columns and AᵀA = R up to rounding
    lengths: Array  # of the columns of the factor before they were made unit vectors
    relations: list[Relation]  # empty where the rows are too few to tell them from chance
    n_rows: int | None = None  # of the table, if there is one

    @property
    def rank(self) -> int:
        """Number of directions that count."""
        return int(self.factor.shape[0])

    @property
    def dropped(self) -> float:
        """Largest share of a variable's variance in directions that do not count."""
        return float(np.max(1.0 - np.minimum(self.lengths, 1.0) ** 2))

    @property
    def redundant(self) -> list[str]:
        """Variables that the others determine, one per relation."""
        return [relation.variable for relation in self.relations]

    @property
    def has_few_rows(self) -> bool:
        """Whether the rows are too few for any table of as many columns."""
        return self.n_rows is not None and self.n_rows <= self.factor.shape[1]

    def of_table(self, n_rows: int) -> Deficiency:
        """The same for a table with so many rows; with too few, relations may be chance."""
        # What so few rows have in common anyway says nothing about the columns; a short relation
        # does, unless the rank is what any columns would have.
        few = n_rows <= self.factor.shape[1]
        longest = _SHORT if self.rank < n_rows - 1 else 0
        believed = [r for r in self.relations if not few or len(r.names) <= longest]
        return replace(self, n_rows=n_rows, relations=believed)

    def _reason_and_remedy(self) -> tuple[str, str]:
        """Why the rank is deficient, and what full rank takes."""
        r, p = self.factor.shape
        relations = "; ".join(map(str, self.relations[:5]))
        if len(self.relations) > 5:
            relations += f"; and {len(self.relations) - 5} more"
        if self.has_few_rows and self.n_rows is not None:
            reason = (
                f"{self.n_rows} rows cannot determine {p} columns: the correlation matrix has rank "
                f"{r}, and {self.n_rows - 1} at most whatever the columns are"
            )
            remedy = f"at least {p + 1} rows, fewer columns, or {_SHRINKAGE}"
            if self.relations:
                reason += f". Some relations hold beyond that in these rows: {relations}"
        else:
            where, units = "these rows", "up to constants"
            if self.n_rows is None:
                where, units = "R", "in standardised units"
            reason = (
                f"The correlation matrix has rank {r} of {p}, because in {where} {relations} "
                f"({units})"
            )
            remedy = f"dropping {listing(self.redundant)}, or {_SHRINKAGE}"
        return reason, remedy

    def explain(self, remedy: str = "") -> str:
        """Which problem is solved, why, and what exact decorrelation would need.

        A ``remedy`` in the words of the caller takes the place of the usual one.
        """
        reason, usual = self._reason_and_remedy()
        r, p = self.factor.shape
        new = " New rows keep less, most of all where rows are about as many as columns."
        return (
            f"{reason}. {p} outputs in {r} dimension{'s' if r > 1 else ''} cannot all be "
            f"uncorrelated: the least sum of squared correlations between them is "
            f"{welch(p, r):.6g}. {remedy or f'Full rank would take {usual}.'}"
            f"{new * self.has_few_rows}"
        )

    def announce(self, on_singular: str) -> None:
        """Warn of what is solved instead, or refuse such input."""
        if on_singular == "raise":
            # too few rows are a fault of the table, which panels skip, and no relation of columns
            raise InvalidTableError(str(self.error())) if self.has_few_rows else self.error()
        hint = "Nothing is regularised; on_singular='raise' refuses such input."
        if self.has_few_rows:
            hint = f"skcoral.stability.holdout measures how much less. {hint}"
        warn(f"{self.explain()} {hint}", SingularCorrelationWarning)

    def error(self, what: str = "Exact decorrelation") -> SingularCorrelationError:
        """The refusal of such a matrix by what needs all directions."""
        reason, remedy = self._reason_and_remedy()
        return SingularCorrelationError(
            f"{what} needs a correlation matrix of full rank. {reason}. Full rank takes {remedy}.",
            relations=[str(relation) for relation in self.relations],
            redundant=self.redundant,
        )


def deficiency_of(
    R: Array, names: tuple[str, ...], scale: Array | None, tolerance: float
) -> Deficiency | None:
    """Say what is dependent in a singular matrix, None for a regular one; refuse indefinite ones.

    Eigenvalues up to ``tolerance`` times the largest count as zero. With ``scale``, the standard
    deviations, relations are in the original units.
    """
    values, vectors = spectrum(R)
    if len(values) == len(R) and values[0] > tolerance * values[-1]:
        return None
    if values[0] < -tolerance * values[-1]:
        weights = np.abs(vectors[:, 0])
        heavy = [names[int(j)] for j in np.argsort(-weights)[:6] if weights[j] > 0.1]
        raise InvalidCorrelationError(
            f"R is not positive definite: its smallest eigenvalue is {values[0]:.3g}, so it is not "
            f"the correlation matrix of any table. The contradiction is mostly among "
            f"{listing(heavy)}. Correlations computed pair by pair from incomplete rows do this: "
            "use the complete rows, or shrink R explicitly."
        )
    B = factor_of(R, values, vectors, tolerance)
    lengths = np.linalg.norm(B, axis=0)
    return Deficiency(B / lengths, lengths, linear_relations(B, names, scale=scale))


def factor_of(R: Array, values: Array, vectors: Array, tol: float) -> Array:
    """Factor of the directions that count, from eigenvalues in rising order.

    An eigenvalue is off by a rounding of the largest one. For weak directions, which the
    transformation amplifies, that is much, so that their lengths are measured again in R itself.
    """
    counts = values > tol * values[-1]
    root, V = np.sqrt(values[counts]), vectors[:, counts]
    shares, turn = np.linalg.eigh(gram_defect(R, V / root, precise=True))
    stretch = (turn * np.sqrt(1.0 + np.maximum(shares, -0.5))) @ turn.T
    return np.asarray(stretch @ (root[:, None] * V.T))


def spectrum(R: Array) -> tuple[Array, Array]:
    """Eigenvalues in rising order and their vectors; those of zero are left out if they are most.

    A correlation matrix of low rank is its pivoted Cholesky factor, whose singular vectors cost
    O(pr²).
    """
    p = len(R)
    triangle, order, rank, _ = lapack.dpstrf(R, lower=1)
    if 2 * rank < p:
        L = np.empty((p, rank))
        L[order - 1] = np.tril(triangle[:, :rank])
        if np.abs(R - L @ L.T).max() <= 10.0 * p * EPS:
            vectors, lengths, _ = np.linalg.svd(L, full_matrices=False)
            return lengths[::-1] ** 2, vectors[:, ::-1]
    values, vectors = np.linalg.eigh(R)
    return values, vectors


def linear_relations(
    B: Array, names: Sequence[str], *, scale: Array | None = None
) -> list[Relation]:
    """What a factor (r × p) says of p - r of its columns: combinations of the others.

    Variables that share no relation have no coefficient in one another's. Among equally good ones
    the last variable is dependent, so that a duplicate is expressed by the column that came first.
    With ``scale``, the standard deviations, coefficients are in the original units, and a variable
    that is a plain sum of others is the one that is expressed.
    """
    r, p = B.shape
    order = qr(B / (1.0 + _EARLIER * np.arange(p)), mode="r", pivoting=True)[1]
    independent, dependent = np.sort(order[:r]), np.sort(order[r:])
    C = np.asarray(solve(B[:, independent], B[:, dependent]))
    _drop_rounding(C)
    sd = np.ones(p) if scale is None else scale
    if scale is not None:
        for number in range(p - r):
            _prefer_sum(C, independent, dependent, number, sd)
    order = np.argsort(independent)
    independent, C = independent[order], C[order]
    out = []
    for pivot, column in zip(dependent.tolist(), C.T, strict=True):
        places = [(int(independent[i]), float(column[i])) for i in np.flatnonzero(column)]
        terms = tuple((float(c / sd[j] * sd[pivot]), names[j]) for j, c in places)
        out.append(Relation(names[pivot], terms))
    return out


def _prefer_sum(C: Array, independent: Index, dependent: Index, number: int, sd: Array) -> None:
    """Express another variable in one relation, if it is then a plain sum of the others."""
    terms = np.flatnonzero(C[:, number])
    # the relation is that the sum of these is zero: a sum, if one differs from the rest by its sign
    raw = np.append(C[terms, number] / sd[independent[terms]], -1 / sd[dependent[number]])
    signs = np.sign(raw)
    place = int(np.argmin(signs * signs.sum()))
    alone = len(terms) > 1 and abs(signs.sum()) == len(raw) - 2 and place < len(terms)
    if not (alone and np.allclose(np.abs(raw / raw[place]), 1.0, atol=1e-6)):
        return
    j = terms[place]
    new = -C[:, number] / C[j, number]
    new[j] = 1.0 / C[j, number]
    others = C[j].copy()
    C[j] = 0.0
    C += np.outer(new, others)
    C[:, number] = new
    _drop_rounding(C)
    independent[j], dependent[number] = dependent[number], independent[j]


def _drop_rounding(C: Array) -> None:
    largest = np.abs(C).max(axis=0, initial=1.0)  # a dependent variable has coefficient one
    C[np.abs(C) < _NEGLIGIBLE * largest] = 0.0
