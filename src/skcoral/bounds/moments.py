"""The bound of second-order moments on a support: sums of squares on a product of spheres.

With ``t_k = K_kᵀ s_k`` on Ω_k and ``K_k R_Ω K_kᵀ = I`` every column is a unit vector, ρ_k the floor
of its first entry (:mod:`skcoral.bounds.columns`), and the residuals are ``r_jk = s_jᵀ B_jk s_k``.
Let y hold 1 and the products ``s_a s_b``, a ≤ b, of the entries of each column. For any symmetric
S, W_jk and V_kj and ω ≥ 0,

    Σ_{j<k} ω_jk r_jk² = yᵀ S y + Σ_{j<k} (s_j ⊗ s_k)ᵀ W_jk (s_j ⊗ s_k)
                         + Σ_kj (s_k1² − ρ_k²) s_jᵀ V_kj s_j + left

where ``left`` is a polynomial of the same kind. Its value on unit vectors is at least the constant
that its harmonic parts of degree zero add up to, less the lengths of the other parts; a negative
eigenvalue of a block costs itself times the largest trace of its moments: 1 + p for S, else one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, pairwise

import numpy as np

from skcoral.bounds.arithmetic import UNIT, WIDER, Arithmetic, Enclosure, exactly
from skcoral.bounds.columns import Column
from skcoral.bounds.dual import definite, least_shift, part
from skcoral.core.arrays import Array, Index
from skcoral.exceptions import CertificateError

# Of the lengths of all tensors in ``left``: at most two dozen roundings of an entry that is a sum
# of a tensor and of parts of it that are at most nine times as long. Forms are sums over columns.
_ROUNDINGS = 256 * UNIT


@dataclass(frozen=True)
class MomentDual:
    """A dual point: S, all ω_jk, all W_jk for j < k, and all V_kj for the k with a floor."""

    S: Array
    weights: Array
    pairs: tuple[Array, ...]
    floors: tuple[Array, ...]


@dataclass(frozen=True)
class Spheres:
    """The columns of a support as unit vectors; ``floors`` are those to be kept, one for none."""

    columns: Sequence[Column]
    floors: Array

    @property
    def sizes(self) -> list[int]:
        """Dimension of each column."""
        return [len(column.K) for column in self.columns]

    @cached_property
    def offsets(self) -> Index:
        """Where the products of each column begin in y, and the length of y."""
        return np.cumsum([1, *(n * (n + 1) // 2 for n in self.sizes)])

    @property
    def pairs(self) -> Iterator[tuple[int, int]]:
        """All pairs j < k."""
        return combinations(range(len(self.columns)), 2)

    @property
    def floored(self) -> list[int]:
        """Columns whose floor is to be kept."""
        return [k for k, n in enumerate(self.sizes) if n > 1 and self.floors[k] > 0]

    @property
    def block_sizes(self) -> tuple[list[int], list[int]]:
        """Sizes of the W_jk and of the V_kj."""
        n = self.sizes
        return [n[j] * n[k] for j, k in self.pairs], [size for _ in self.floored for size in n]

    def factors(self, p: int) -> Array:
        """The rows of all K_k, over all variables."""
        K = np.zeros((sum(self.sizes), p))
        for own, column in zip(pairwise(np.cumsum([0, *self.sizes])), self.columns, strict=True):
            K[slice(*own), column.sources] = column.K
        return K


def packed(blocks: Iterator[Array] | tuple[Array, ...]) -> Array:
    """Symmetric matrices as one row of numbers, each by its upper triangle."""
    parts = [A[np.triu_indices(len(A))] for A in blocks]
    return np.concatenate(parts) if parts else np.zeros(0)


def unpacked(arrays: Mapping[str, Array], name: str, sizes: list[int]) -> tuple[Array, ...]:
    """The matrices of these sizes that :func:`packed` put into an array."""
    lengths = [n * (n + 1) // 2 for n in sizes]
    values, blocks = part(arrays, name, sum(lengths)), []
    for n, end in zip(sizes, np.cumsum(lengths), strict=True):
        A = np.zeros((n, n))
        A[np.triu_indices(n)] = values[end - n * (n + 1) // 2 : end]
        blocks.append(A + np.triu(A, 1).T)
    return tuple(blocks)


def moment_bound(space: Spheres, R: Array, dual: MomentDual, arithmetic: Arithmetic) -> Enclosure:
    """A number that ``Σ ω_jk r_jk²`` is proved not to fall below."""
    K = space.factors(len(R))
    at = np.cumsum([0, *space.sizes])
    gram = arithmetic.enclosed(K, R, K.T, minus=np.eye(len(K)))
    B, radius = gram.spread()
    own = [slice(a, b) for a, b in pairwise(at)]
    # sᵀ(I + E_k)s = 1, so that ‖s‖² is at least 1/(1 + e), and s₁/‖s‖ at least ρ(1 − e) − ‖E_k e₁‖.
    e = max(_norm(gram[i, i].size()) for i in own)
    if not e < 0.1:
        raise CertificateError("R is too nearly singular to prove a bound for this support.")
    lowered = [
        (1 - 4 * e) * rho - 2 * _norm(gram[i, i].size()[:, 0])
        for rho, i in zip(space.floors, own, strict=True)
    ]
    left = _Left(space, dual, np.maximum(lowered, 0.0) ** 2 * (1 - 8 * UNIT))
    for (j, k), W in zip(space.pairs, dual.pairs, strict=True):
        weight = float(dual.weights[j, k])
        left.add_pair(j, k, weight, B[own[j], own[k]], W)
        # |B| ≤ 1 + e as a form, and the entries of B are known up to their radius
        left.cost += 3 * weight * _norm(radius[own[j], own[k]])
    for k in range(len(space.columns)):
        left.add_column(k)
    cost = left.cost + (_ROUNDINGS + 4 * len(space.columns) * UNIT) * left.size
    cost += (1 + len(space.columns)) * _lack(arithmetic, dual.S)
    cost += sum(_lack(arithmetic, A) for A in (*dual.pairs, *dual.floors))
    value = exactly(np.asarray(left.constants)).total() - cost * WIDER
    value = value.at_least(0.0) / ((exactly(1.0) + e) * (exactly(1.0) + e))
    return exactly(float(value.lower))


class _Left:
    """The polynomial that the squares leave: constants, and the lengths of everything else.

    ``cost`` is the sum of the lengths, and ``size`` that of all tensors that were added up.
    """

    def __init__(self, space: Spheres, dual: MomentDual, squares: Array) -> None:
        self.space, self.dual, self.squares = space, dual, squares
        self.constants: list[float] = [-float(dual.S[0, 0])]
        self.cost = self.size = 0.0
        n = space.sizes
        self.forms = [np.zeros((m, m)) for m in n]  # of degree two on each column
        self.localizers = {
            (k, j): dual.floors[i * len(n) + j]
            for i, k in enumerate(space.floored)
            for j in range(len(n))
        }

    def add_pair(self, j: int, k: int, weight: float, B: Array, W: Array) -> None:
        """What is left of degree two in each of s_j and s_k, as a tensor over (a, a', c, c')."""
        n, m = B.shape
        parts = [
            _over_pairs(weight * np.einsum("ac,bd->abcd", B, B)),
            -_over_pairs(W.reshape(n, m, n, m).transpose(0, 2, 1, 3)),
            -2.0 * self._squares(j, k),
        ]
        for floored, other, order in ((k, j, (0, 1, 2, 3)), (j, k, (2, 3, 0, 1))):
            if (floored, other) in self.localizers:
                V, g = self.localizers[floored, other], self._floor(floored)
                parts.append(-np.einsum("ab,cd->abcd", V, g).transpose(order))
        T = self._sum(parts)
        # harmonic parts: T = T° + A ⊗ I + I ⊗ C, whatever A and C are; these make T° the shortest
        A, C = np.einsum("abcc->ab", T) / m, np.einsum("aacd->cd", T) / n
        C = C - float(np.trace(A)) / n * np.eye(m)
        share = np.einsum("ab,cd->abcd", A, np.eye(m)) + np.einsum("ab,cd->abcd", np.eye(n), C)
        self.cost += _norm(T - share)
        self.forms[j] += A
        self.forms[k] += C

    def add_column(self, k: int) -> None:
        """What is left in s_k alone: of degree four, a symmetric tensor, and of degree two."""
        parts, n = [-self._squares(k, k)], self.space.sizes[k]
        if (k, k) in self.localizers:
            parts.append(-np.einsum("ab,cd->abcd", self._floor(k), self.localizers[k, k]))
        T = _symmetric(self._sum(parts))
        # T = T° + sym(A ⊗ I): the trace of sym(A ⊗ I) is ((n + 4) A + tr(A) I) / 6
        inner = np.einsum("abcc->ab", T)
        A = (6.0 * inner - 3.0 * np.trace(inner) / (n + 2) * np.eye(n)) / (n + 4)
        self.cost += _norm(T - _symmetric(np.einsum("ab,cd->abcd", A, np.eye(n))))
        form = self._sum([self.forms[k], A, -2.0 * self._entries(k, self.dual.S[0])])
        mean = float(np.trace(form)) / n
        self.cost += _norm(form - mean * np.eye(n))
        self.constants.append(mean)

    def _sum(self, parts: list[Array]) -> Array:
        """The sum of some tensors, whose lengths say what rounding takes at most."""
        self.size += sum(map(_norm, parts))
        return np.asarray(np.sum(parts, axis=0))

    def _floor(self, k: int) -> Array:
        """The form ``s₁² − ρ²``."""
        g: Array = -self.squares[k] * np.eye(self.space.sizes[k])
        g[0, 0] += 1.0
        return g

    def _entries(self, k: int, row: Array) -> Array:
        """The form whose coefficients of the products ``s_a s_b``, a ≤ b, are in a row."""
        index, half = _products(self.space.sizes[k])
        return np.asarray(row[self.space.offsets[k] + index] * half)

    def _squares(self, j: int, k: int) -> Array:
        """``y_jᵀ S_jk y_k`` as a tensor."""
        (left, half), (right, other) = (_products(self.space.sizes[i]) for i in (j, k))
        rows, columns = self.space.offsets[j] + left, self.space.offsets[k] + right
        S = self.dual.S[rows.reshape(-1, 1), columns.reshape(-1)]
        return np.asarray(S.reshape(*half.shape, *other.shape) * half[:, :, None, None] * other)


def _products(n: int) -> tuple[Index, Array]:
    """Position of ``s_a s_b`` among the products with a ≤ b, and its share: it stands twice."""
    index = np.zeros((n, n), dtype=np.intp)
    index[np.triu_indices(n)] = np.arange(n * (n + 1) // 2)
    index = np.maximum(index, index.T)
    return index, np.where(np.eye(n) > 0, 1.0, 0.5)


def _over_pairs(T: Array) -> Array:
    """A tensor over (a, a', c, c') with the symmetries of ``s_a s_a' s_c s_c'``."""
    return np.asarray(0.5 * (T + T.swapaxes(2, 3)))


def _symmetric(T: Array) -> Array:
    """The tensor of the same form of degree four that is symmetric in all of its indices."""
    T = T + T.transpose(2, 3, 0, 1)
    return np.asarray((T + T.transpose(0, 2, 1, 3) + T.transpose(0, 3, 2, 1)) / 6.0)


def _norm(A: Array) -> float:
    """Upper bound of the length, but for its rounding."""
    return float(np.sqrt(np.sum(A * A)))


def _lack(arithmetic: Arithmetic, A: Array) -> float:
    """A number c ≥ 0 for which ``A + c I`` is proved to be positive definite."""
    values = np.linalg.eigvalsh(A)
    base, size = max(0.0, -float(values[0])), max(float(np.abs(values).max()), 1e-200)

    def prove(shift: float) -> object:
        moved = A + (base + shift) * np.eye(len(A))
        return definite(arithmetic, moved, 2 * UNIT * np.eye(len(A)) * np.abs(moved))

    return base + least_shift(prove, size, "a block of the certificate is not definite.")[0]
