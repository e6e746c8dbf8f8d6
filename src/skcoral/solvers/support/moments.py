"""Second-order moments of supported columns: the relaxation in coordinates that make it plain.

The columns are unit vectors s_k, and no odd moment matters, because the sign of each is free. Take
an orthonormal basis H of the symmetric matrices without trace, ``y_k = (s_kᵀ H_a s_k)_a`` and
y = (1, y_1, …, y_p). The moments of degree four are then one matrix ``X = E[y yᵀ]``, of which only
the corner is known. What it has to satisfy is linear in X:

* X itself, for every pair of columns ``E[(s_j ⊗ s_k)(s_j ⊗ s_k)ᵀ]``, and for every floor
  ``E[(s_k1² − ρ_k²) s_j s_jᵀ]`` are positive semidefinite,
* for every column ``E[s_k ⊗ s_k ⊗ s_k ⊗ s_k]`` is a symmetric tensor,
* for the worst pair the numbers ``t − E r_jk²`` are not negative.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import permutations, product

import numpy as np

from skcoral.bounds.moments import MomentDual
from skcoral.core.arrays import Array, Index
from skcoral.exceptions import InvalidArgumentError
from skcoral.solvers.support.caps import Caps

Blocks = list[Array]  # stacks of symmetric matrices of equal size

LARGEST = 2000  # size of X: a step takes some seconds there, and all blocks together 1 GB
# Of the tensors of columns beside the other blocks. After 600 steps the bound of the paper's system
# is .232 with 2, .231 with 4, .229 with 1 and .212 with 0.5.
_COLUMN_WEIGHT = 1.5


def forms(n: int) -> Array:
    """I/n and an orthonormal H without trace, in rows: ``s sᵀ = I/n + Σ_a y_a H_a``."""
    basis = [np.eye(n) / n]
    for k in range(n - 1):  # the first one is e₁e₁ᵀ without its trace
        v = np.where(np.arange(n) < k, 0.0, -1.0)
        v[k] = n - 1 - k
        basis.append(np.diag(v / np.linalg.norm(v)))
    for a, b in zip(*np.triu_indices(n, 1), strict=True):
        E = np.zeros((n, n))
        E[a, b] = E[b, a] = np.sqrt(0.5)
        basis.append(E)
    return np.array(basis).reshape(len(basis), n * n)


@dataclass(frozen=True)
class Group:
    """Pairs of columns J and K of two given sizes, as one stack."""

    J: Index
    K: Index
    first: Array  # forms of the columns
    second: Array
    at: tuple[Index, Index]  # the part of X that belongs to (1, y_j) and (1, y_k)
    weight: float = 1.0

    def up(self, X: Array) -> Array:
        """``E[(s_j ⊗ s_k)(s_j ⊗ s_k)ᵀ]``, times the weight."""
        T = self.weight * self.first.T @ X[self.at] @ self.second
        n, m = (round(len(side.T) ** 0.5) for side in (self.first, self.second))
        T = T.reshape(-1, n, n, m, m).transpose(0, 1, 3, 2, 4)
        return np.ascontiguousarray(T).reshape(-1, n * m, n * m)

    def down(self, Z: Array) -> Array:
        """Coefficients of the part of X in ⟨Z, up(X)⟩."""
        n, m = (round(len(side.T) ** 0.5) for side in (self.first, self.second))
        T = Z.reshape(-1, n, m, n, m).transpose(0, 1, 3, 2, 4).reshape(-1, n * n, m * m)
        return np.asarray(self.weight * self.first @ T @ self.second.T)


class Relaxation:
    """The relaxation of one support problem; pairs of the same two sizes are stacked."""

    def __init__(self, caps: Caps, *, worst: bool) -> None:
        sizes = caps.valid.sum(axis=1)
        offsets = np.cumsum([1, *(sizes * (sizes + 1) // 2 - 1)])
        self.sizes, self.offsets, self.N = sizes, offsets, int(offsets[-1])
        self.k, self.worst = caps.k, worst
        if self.N > LARGEST:
            raise InvalidArgumentError(
                f"proof='moments' has a block of size {self.N:,} for this support, and {LARGEST:,} "
                "is the largest: use a thinner support, or proof='quick'."
            )
        self.forms = {int(n): forms(int(n)) for n in np.unique(sizes)}
        self.members = {n: np.flatnonzero(sizes == n) for n in self.forms}
        own = self.members.values()
        self.columns = [self._group(k, k, _COLUMN_WEIGHT) for k in own]
        j, k = np.triu_indices(self.k, 1)
        kind = sizes[j] * (self.k + 1) + sizes[k]
        self.pairs = [self._group(j[kind == one], k[kind == one]) for one in np.unique(kind)]
        self.tensors = [*self.columns, *self.pairs]
        self.costs = []  # r_jk² as parts of X
        for group in self.pairs:
            n, m = sizes[group.J[0]], sizes[group.K[0]]
            frames = caps.frames[group.J, :n], caps.frames[group.K, :m]
            b = np.matmul(frames[0], frames[1].swapaxes(1, 2)).reshape(-1, n * m)
            self.costs.append(group.down(b[:, :, None] * b[:, None, :]))
        self.floored = np.flatnonzero((caps.floors > 0) & (sizes > 1))
        n = sizes[self.floored]
        # The polynomials s_k1² − ρ_k² in y, one column each: the first H is e₁e₁ᵀ without trace.
        self.floors = np.zeros((self.N, len(n)))
        self.floors[0] = 1 / n - caps.floors[self.floored] ** 2
        self.floors[offsets[self.floored], np.arange(len(n))] = np.sqrt((n - 1) / n)
        # Squared lengths of the directions of X in X, columns and pairs, where all are orthogonal.
        square = _COLUMN_WEIGHT**2
        self.scale = np.full((self.N, self.N), 1.5)
        for n, k in self.members.items():
            at, others = self._positions(k)[:, 1:], np.sum(1 / sizes) - 1 / n
            self.scale[0, at] = self.scale[at, 0] = 1.0 + square / n + 0.5 * others
            self.scale[at[:, :, None], at[:, None, :]] = 1.0 + square

    def _positions(self, columns: Index) -> Index:
        """Where 1 and y_k stand in X, for columns of one size."""
        count = self.forms[int(self.sizes[columns[0]])].shape[0]
        at = self.offsets[columns][:, None] - 1 + np.arange(count)
        at[:, 0] = 0
        return at

    def _group(self, J: Index, K: Index, weight: float = 1.0) -> Group:
        first, second = (self.forms[int(self.sizes[side[0]])] for side in (J, K))
        at = self._positions(J)[:, :, None], self._positions(K)[:, None, :]
        return Group(J, K, first, second, at, weight)

    # The corner of X is no moment: that of the unknown x holds the level t of the worst pair.

    def objective(self) -> Array:
        """Coefficients of the unknown in the criterion."""
        C = np.zeros((self.N, self.N))
        if not self.worst:
            C = self._weighted(np.ones(self.k * (self.k - 1) // 2))
        C[0, 0] = float(self.worst)
        return C

    def blocks(self, x: Array, *, constant: float = 1.0) -> Blocks:
        """X, the columns, the pairs, floors and levels; zero leaves the constants out."""
        X = x.copy()
        X[0, 0] = constant
        return [X[None], *(group.up(X) for group in self.tensors), *self._further(X, x[0, 0])]

    def projected(self, blocks: Blocks) -> Blocks:
        """The nearest symmetric tensors of columns, and positive semidefinite matrices."""
        last = 1 + len(self.columns)
        out = [_positive(blocks[0])]
        for group, M in zip(self.columns, blocks[1:last], strict=True):
            T = M.reshape(-1, *(int(self.sizes[group.J[0]]),) * 4)
            # All permutations, as rounding must not grow in what fewer of them leave alone.
            every = [T.transpose(0, *order) for order in permutations((1, 2, 3, 4))]
            out.append(np.mean(every, axis=0).reshape(M.shape))
        return out + [_positive(A) for A in blocks[last:]]

    def collected(self, blocks: Blocks) -> Array:
        """Coefficients of the unknown in the sum of the blocks' inner products."""
        A, level = self._from_further(blocks[1 + len(self.tensors) :])
        A += self._from_tensors(blocks) + blocks[0][0]
        A[0, 0] = level
        return A

    def normal(self, x: Array) -> Array:
        """``F*F x`` for the map F from the unknown to the blocks."""
        out = self.scale * x
        out[0, 0] = 0.0
        if len(self.floored) or self.worst:
            X = x.copy()
            X[0, 0] = 0.0
            A, level = self._from_further(self._further(X, x[0, 0]))
            out += A
            out[0, 0] = level
        return out

    def diagonal(self) -> Array:
        """The diagonal of ``F*F``, more or less."""
        weight = np.ones(self.N)
        weight[0] = np.sum(1 / self.sizes)
        both = np.outer(weight, np.sum(self.floors**2, axis=1))
        out = np.asarray(self.scale + 0.5 * (both + both.T))
        out[0, 0] = max(self.k * (self.k - 1) / 2, 1.0)
        return out

    def _further(self, X: Array, level: float) -> Blocks:
        """``E[(s_k1² − ρ_k²) s_j s_jᵀ]``, and ``t − E r_jk²`` for the worst pair."""
        out = []
        if len(self.floored):
            moved = X @ self.floors
            for n, columns in self.members.items():
                V = np.tensordot(moved[self._positions(columns)], self.forms[n], ([1], [0]))
                out.append(V.reshape(-1, n, n))
        if self.worst:
            out.append((level - self._expected(X))[:, None, None])
        return out

    def _from_further(self, blocks: Blocks) -> tuple[Array, float]:
        A, level = np.zeros((self.N, self.N)), 0.0
        if len(self.floored):
            g = np.zeros_like(self.floors)
            for (n, columns), block in zip(self.members.items(), blocks, strict=False):
                V = np.tensordot(block.reshape(len(columns), -1, n * n), self.forms[n], ([2], [1]))
                np.add.at(g, self._positions(columns), V.swapaxes(1, 2))
            both = g @ self.floors.T
            A += 0.5 * (both + both.T)
        if self.worst:
            weights = blocks[-1][:, 0, 0]
            A, level = A - self._weighted(weights), float(weights.sum())
        return A, level

    def _from_tensors(self, blocks: Blocks) -> Array:
        parts = [group.down(Z) for group, Z in zip(self.tensors, blocks[1:], strict=False)]
        return self._placed(self.tensors, parts)

    def _placed(self, groups: list[Group], parts: list[Array]) -> Array:
        """Coefficients of X from those of its parts, half of them below its diagonal."""
        places = np.concatenate([(self.N * g.at[0] + g.at[1]).ravel() for g in groups])
        values = np.concatenate([part.ravel() for part in parts])
        A = np.bincount(places, 0.5 * values, self.N**2).reshape(self.N, self.N)
        return np.asarray(A + A.T)

    def _expected(self, X: Array) -> Array:
        """``E r_jk²``, in the order of the groups."""
        each = zip(self.pairs, self.costs, strict=True)
        return np.concatenate([np.sum(cost * X[group.at], axis=(1, 2)) for group, cost in each])

    def _weighted(self, weights: Array) -> Array:
        """Coefficients of X in ``Σ ω_jk E r_jk²``, the ω in the order of the groups."""
        cuts = np.cumsum([len(cost) for cost in self.costs])[:-1]
        each = zip(self.costs, np.split(weights, cuts), strict=True)
        return self._placed(self.pairs, [own[:, None, None] * cost for cost, own in each])

    def completed(self, duals: Blocks) -> tuple[Array, float, Array]:
        """S with a zero corner, the constant, and ω: the equations hold whatever the duals are.

        ``Σ ω_jk E r_jk² = ⟨S, X⟩ + constant`` + what the pairs and floors contribute. Columns
        contribute nothing: their duals are orthogonal to symmetric tensors.
        """
        further = duals[1 + len(self.tensors) :]
        weights = np.ones(self.k * (self.k - 1) // 2)
        if self.worst:
            weights = further[-1][:, 0, 0] / max(float(further[-1].sum()), 1e-300)
            further = [*further[:-1], np.zeros_like(further[-1])]
        S = self._weighted(weights) - self._from_tensors(duals) - self._from_further(further)[0]
        constant, S[0, 0] = float(S[0, 0]), 0.0
        return S, constant, weights

    def best_corner(self, S: Array, constant: float) -> tuple[Array, float]:
        """S with the corner, and a multiple of I on the rest, that give the largest bound.

        ``constant − ε Σ(1 − 1/n_k) − gᵀ(S + εI)⁻¹g``, because E ‖y_k‖² is 1 − 1/n_k.
        """
        trace = float(np.sum(1 - 1 / self.sizes))
        values, vectors = np.linalg.eigh(S[1:, 1:])
        g = (vectors.T @ S[1:, 0]) ** 2
        size = max(float(np.abs(values).max(initial=0.0)), 1e-300)
        shifts = max(0.0, -float(values.min(initial=0.0))) + size * np.geomspace(1e-12, 1.0, 49)
        corners = (g / (values + shifts[:, None])).sum(axis=1)
        bounds = constant - trace * shifts - corners
        best = int(np.argmax(bounds))
        S = S.copy()
        S[np.arange(1, self.N), np.arange(1, self.N)] += shifts[best]
        S[0, 0] = corners[best]
        return S, float(bounds[best])

    def in_products(self, S: Array, weights: Array, duals: Blocks) -> MomentDual:
        """A dual point in the products of entries, as the bound takes it."""
        starts = np.cumsum([1, *(n * (n + 1) // 2 for n in self.sizes)])
        Q = np.zeros((self.N, int(starts[-1])))
        Q[0, 0] = 1.0
        for k, n in enumerate(self.sizes):
            twice = (2.0 - np.eye(n))[np.triu_indices(n)]
            rows = self.forms[int(n)][1:].reshape(-1, n, n)[:, *np.triu_indices(n)] * twice
            Q[self.offsets[k] : self.offsets[k + 1], starts[k] : starts[k + 1]] = rows
        omega = np.zeros((self.k, self.k))
        J, K = (np.concatenate([getattr(g, side) for g in self.pairs]) for side in "JK")
        omega[J, K] = omega[K, J] = weights
        pairs = {
            (j, k): W
            for group, stack in zip(self.pairs, duals[1 + len(self.columns) :], strict=False)
            for j, k, W in zip(group.J, group.K, stack, strict=True)
        }
        floors = {}
        for columns, stack in zip(
            self.members.values(), duals[1 + len(self.tensors) :], strict=False
        ):
            among = product(columns, self.floored)
            floors.update({(k, j): V for (j, k), V in zip(among, stack, strict=False)})
        return MomentDual(
            _even(Q.T @ S @ Q),
            omega,
            tuple(_even(pairs[key]) for key in sorted(pairs)),
            tuple(_even(floors[key]) for key in sorted(floors)),
        )


def _even(A: Array) -> Array:
    """A matrix without its skew part, which is rounding."""
    return np.asarray(0.5 * (A + A.T))


def _positive(A: Array) -> Array:
    """Nearest positive semidefinite matrices."""
    if A.shape[1] == 1:
        return np.maximum(A, 0.0)
    values, vectors = np.linalg.eigh(A)
    return np.asarray((vectors * np.maximum(values, 0.0)[:, None, :]) @ vectors.swapaxes(1, 2))
