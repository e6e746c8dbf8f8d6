"""Second-order moments of supported columns: the relaxation in coordinates that make it plain.

The columns are unit vectors s_k, and no odd moment matters, because the sign of each is free. Take
an orthonormal basis H of the symmetric matrices without trace, ``y_k = (s_kᵀ H_a s_k)_a`` and
y = (1, y_1, …, y_p). The moments of degree four are then one matrix ``X = E[y yᵀ]``, in which

* ``X_0k`` and ``X_jk`` are free,
* ``X_kk = c I + κ Σ_a X_0k,a G_a + Q_k``, where G_a is the product of harmonics of degree two and
  Q_k a free harmonic of degree four,

and no equations are left. What has to be positive semidefinite is X itself, for every pair
``E[(s_j ⊗ s_k)(s_j ⊗ s_k)ᵀ]``, for every floor ``E[(s_k1² − ρ_k²) s_j s_jᵀ]``, and for the worst
pair the numbers ``t − E r_jk²``: all of them linear in X.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import numpy as np

from skcoral.bounds.moments import MomentDual
from skcoral.core.arrays import Array, Index
from skcoral.exceptions import InvalidArgumentError
from skcoral.solvers.support.caps import Caps

Blocks = list[Array]  # stacks of symmetric matrices of equal size

LARGEST = 2000  # size of X: a step takes some seconds there, and all blocks together 1 GB


class Harmonics:
    """Symmetric matrices without trace of size n, and how their products decompose."""

    def __init__(self, n: int) -> None:
        basis = []
        for k in range(n - 1):  # the first one is e₁e₁ᵀ without its trace
            v = np.where(np.arange(n) < k, 0.0, -1.0)
            v[k] = n - 1 - k
            basis.append(np.diag(v / np.linalg.norm(v)))
        for a, b in zip(*np.triu_indices(n, 1), strict=True):
            E = np.zeros((n, n))
            E[a, b] = E[b, a] = np.sqrt(0.5)
            basis.append(E)
        self.n, self.d = n, len(basis)
        H = np.array(basis).reshape(self.d, n, n)
        self.flat = H.reshape(self.d, n * n)
        self.with_one = np.concatenate((np.eye(n).reshape(1, -1) / n, self.flat))
        G = np.einsum("aij,bjk,cki->cab", H, H, H, optimize=True)
        self.G = 0.5 * (G + G.swapaxes(1, 2))
        size = float(np.sum(self.G[:1] ** 2))
        self.kappa = (1 - 2 / n) / size if n > 2 else 0.0
        self.square = self.kappa**2 * size  # length of κ G_a
        self.mean = 2 / (n * (n + 2))  # c, of the uniform distribution
        self.krojector = self.G / size if n > 2 else 0.0 * self.G

    def quartic(self, P: Array) -> Array:
        """Harmonic parts of degree four of forms (…, d, d) in y_k."""
        n, d = self.n, self.d
        P = P - np.trace(P, axis1=1, axis2=2)[:, None, None] / max(d, 1) * np.eye(d)
        P = P - np.tensordot(np.tensordot(P, self.krojector, ([1, 2], [1, 2])), self.G, 1)
        T = (self.flat.T @ P @ self.flat).reshape(-1, n, n, n, n)
        T = (T + T.transpose(0, 1, 3, 2, 4) + T.transpose(0, 1, 4, 3, 2)) / 3.0
        return np.asarray(self.flat @ T.reshape(-1, n * n, n * n) @ self.flat.T)


class PairGroup:
    """All pairs of columns of two given sizes, as one stack."""

    def __init__(self, sides: tuple[Harmonics, Harmonics], J: Index, K: Index, B: Array) -> None:
        self.first, self.second = sides
        self.J, self.K = J, K
        self.at = J[:, :, None], K[:, None, :]  # their part of X; J and K begin with that of 1
        b = B.reshape(len(B), -1)
        self.cost = self.down(b[:, :, None] * b[:, None, :])  # r_jk² as parts of X

    def up(self, X: Array) -> Array:
        """``E[(s_j ⊗ s_k)(s_j ⊗ s_k)ᵀ]``."""
        n, m = self.first.n, self.second.n
        T = self.first.with_one.T @ X[self.at] @ self.second.with_one
        T = T.reshape(-1, n, n, m, m).transpose(0, 1, 3, 2, 4)
        return np.ascontiguousarray(T).reshape(-1, n * m, n * m)

    def down(self, Z: Array) -> Array:
        """Coefficients of the parts of X in ⟨Z, up(X)⟩."""
        n, m = self.first.n, self.second.n
        T = Z.reshape(-1, n, m, n, m).transpose(0, 1, 3, 2, 4).reshape(-1, n * n, m * m)
        return np.asarray(self.first.with_one @ T @ self.second.with_one.T)

    def add(self, A: Array, parts: Array) -> None:
        """Add coefficients of parts of X to those of X, half of them below its diagonal."""
        A[0, 0] += parts[:, 0, 0].sum()
        half = 0.5 * parts
        A[self.J[:, 1:, None], self.K[:, None, 1:]] += half[:, 1:, 1:]
        A[self.K[:, 1:, None], self.J[:, None, 1:]] += half[:, 1:, 1:].swapaxes(1, 2)
        for columns, side in ((self.J[:, 1:], half[:, 1:, 0]), (self.K[:, 1:], half[:, 0, 1:])):
            np.add.at(A[0], columns, side)
            np.add.at(A[:, 0], columns, side)


class Relaxation:
    """The relaxation of one support problem; pairs of the same two sizes are stacked."""

    def __init__(self, caps: Caps, *, worst: bool) -> None:
        sizes = caps.valid.sum(axis=1)
        N = int(np.sum(sizes * (sizes + 1) // 2 - 1)) + 1
        if N > LARGEST:
            raise InvalidArgumentError(
                f"proof='moments' has a block of size {N:,} for this support, and {LARGEST:,} is "
                "the largest: use a thinner support, or proof='quick'."
            )
        self.sizes, self.k, self.worst = sizes, caps.k, worst
        self.harmonics = {int(n): Harmonics(int(n)) for n in np.unique(self.sizes)}
        self.offsets = np.cumsum([1, *(self.harmonics[int(n)].d for n in self.sizes)])
        self.N = int(self.offsets[-1])
        self.members = {  # positions in X of the columns of each size
            n: self.offsets[np.flatnonzero(self.sizes == n)][:, None] + np.arange(H.d)
            for n, H in self.harmonics.items()
        }
        frames = [W[:n] for W, n in zip(caps.frames, sizes, strict=True)]
        self.pairs = list(self._pairs_by_size())
        self.groups = []
        for J, K in self.pairs:
            sides = self._harmonics_of(J), self._harmonics_of(K)
            B = np.stack([frames[j] @ frames[k].T for j, k in zip(J, K, strict=True)])
            self.groups.append(PairGroup(sides, self._with_one(J), self._with_one(K), B))
        self.floored = np.flatnonzero((caps.floors > 0) & (sizes > 1))
        n = sizes[self.floored]
        # The polynomials s_k1² − ρ_k² in y, one column each: the first H is e₁e₁ᵀ without trace.
        self.floors = np.zeros((self.N, len(n)))
        self.floors[0] = 1 / n - caps.floors[self.floored] ** 2
        self.floors[self.offsets[self.floored], np.arange(len(n))] = np.sqrt((n - 1) / n)
        # Squared lengths of the directions of X in X and the pairs, where they are orthogonal.
        self.scale = np.full((self.N, self.N), 1.5)
        for n, at in self.members.items():
            others = np.sum(1 / self.sizes) - 1 / n
            self.scale[0, at] = self.scale[at, 0] = 1.0 + 0.5 * (self.harmonics[n].square + others)
            self.scale[at[:, :, None], at[:, None, :]] = 1.0

    def _pairs_by_size(self) -> Iterator[tuple[Index, Index]]:
        j, k = np.triu_indices(self.k, 1)
        kind = self.sizes[j] * (self.k + 1) + self.sizes[k]
        for one in np.unique(kind):
            yield j[kind == one], k[kind == one]

    def _harmonics_of(self, columns: Index) -> Harmonics:
        return self.harmonics[int(self.sizes[columns[0]])]

    def _with_one(self, columns: Index) -> Index:
        at = self.offsets[columns][:, None] + np.arange(self._harmonics_of(columns).d)
        return np.concatenate((np.zeros((len(columns), 1), dtype=np.intp), at), axis=1)

    # The free parts x of X are a matrix with X_0k, X_jk and Q_k in their places. Its corner is no
    # moment: it holds the level t of the worst pair.

    def moments(self, x: Array, *, constant: float = 1.0) -> Array:
        """X from its free parts; zero instead of one leaves the constants out."""
        X = x.copy()
        X[0, 0] = constant
        for n, at in self.members.items():
            H = self.harmonics[n]
            linear = H.kappa * np.tensordot(x[0, at], H.G, 1)
            X[at[:, :, None], at[:, None, :]] += linear + constant * H.mean * np.eye(H.d)
        return X

    def free_parts(self, A: Array, level: float) -> Array:
        """Adjoint of :meth:`moments` without its constants."""
        x = A.copy()
        x[0, 0] = level
        for n, at in self.members.items():
            H = self.harmonics[n]
            P = A[at[:, :, None], at[:, None, :]]
            linear = 0.5 * H.kappa * np.tensordot(P, H.G, ([1, 2], [1, 2]))
            x[0, at] += linear
            x[at, 0] += linear
            x[at[:, :, None], at[:, None, :]] = H.quartic(P)
        return x

    def objective(self) -> Array:
        """Coefficients of the free parts in the criterion."""
        none = np.zeros((self.N, self.N))
        if self.worst:
            return self.free_parts(none, 1.0)
        return self.free_parts(self._weighted(np.ones(self.k * (self.k - 1) // 2)), 0.0)

    def blocks(self, x: Array, *, constant: float = 1.0) -> Blocks:
        """Everything that has to be positive semidefinite: X, the pairs, floors and levels."""
        X = self.moments(x, constant=constant)
        return [X[None], *(group.up(X) for group in self.groups), *self._further(X, x[0, 0])]

    def collected(self, blocks: Blocks) -> tuple[Array, float]:
        """Coefficients of X and of the level in the sum of the blocks' inner products."""
        A, level = self._from_further(blocks[1 + len(self.groups) :])
        A += blocks[0][0]
        for group, Z in zip(self.groups, blocks[1:], strict=False):
            group.add(A, group.down(Z))
        return A, level

    def normal(self, x: Array) -> Array:
        """``F*F x`` for the map F from the free parts to the blocks."""
        out = self.scale * x
        out[0, 0] = 0.0
        if len(self.floored) or self.worst:
            X = self.moments(x, constant=0.0)
            out += self.free_parts(*self._from_further(self._further(X, x[0, 0])))
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
            for n, at in self.members.items():
                V = np.tensordot(moved[at], self.harmonics[n].flat, ([1], [0]))
                V = V.reshape(len(at), -1, n, n) + moved[0][:, None, None] / n * np.eye(n)
                out.append(V.reshape(-1, n, n))
        if self.worst:
            out.append((level - self._expected(X))[:, None, None])
        return out

    def _from_further(self, blocks: Blocks) -> tuple[Array, float]:
        A, level = np.zeros((self.N, self.N)), 0.0
        if len(self.floored):
            g = np.zeros_like(self.floors)
            for (n, at), block in zip(self.members.items(), blocks, strict=False):
                V = block.reshape(len(at), -1, n * n)
                g[at] = np.tensordot(V, self.harmonics[n].flat, ([2], [1])).swapaxes(1, 2)
                g[0] += np.einsum("jkaa->k", V.reshape(len(at), -1, n, n)) / n
            both = g @ self.floors.T
            A += 0.5 * (both + both.T)
        if self.worst:
            weights = blocks[-1][:, 0, 0]
            A, level = A - self._weighted(weights), float(weights.sum())
        return A, level

    def _expected(self, X: Array) -> Array:
        """``E r_jk²``, in the order of the groups."""
        return np.concatenate([np.sum(g.cost * X[g.at], axis=(1, 2)) for g in self.groups])

    def _weighted(self, weights: Array) -> Array:
        """Coefficients of X in ``Σ ω_jk E r_jk²``, the ω in the order of the groups."""
        C = np.zeros((self.N, self.N))
        cuts = np.cumsum([len(group.cost) for group in self.groups])[:-1]
        for group, own in zip(self.groups, np.split(weights, cuts), strict=True):
            group.add(C, own[:, None, None] * group.cost)
        return C

    def completed(self, duals: Blocks) -> tuple[Array, float, Array]:
        """S with a zero corner, the constant, and ω: the equations hold whatever the duals are.

        ``Σ ω_jk E r_jk² = ⟨S, X⟩ + constant`` + what the pairs and floors contribute.
        """
        weights = np.ones(self.k * (self.k - 1) // 2)
        if self.worst:
            weights = duals[-1][:, 0, 0] / max(float(duals[-1].sum()), 1e-300)
            duals = [*duals[:-1], np.zeros_like(duals[-1])]
        first = duals[0][0]
        S = self._weighted(weights) - self.collected([np.zeros_like(duals[0]), *duals[1:]])[0]
        constant, S[0, 0] = float(S[0, 0]), 0.0
        for n, at in self.members.items():
            H, own = self.harmonics[n], (at[:, :, None], at[:, None, :])
            P = first[own] + H.quartic(S[own] - first[own])
            over = S[own] - P
            constant += H.mean * float(np.einsum("kaa->", over))
            linear = 0.5 * H.kappa * np.tensordot(over, H.G, ([1, 2], [1, 2]))
            S[0, at] += linear
            S[at, 0] += linear
            S[own] = P
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
            H = self.harmonics[int(n)]
            twice = (2.0 - np.eye(H.n))[np.triu_indices(H.n)]
            rows = H.flat.reshape(-1, H.n, H.n)[:, *np.triu_indices(H.n)] * twice
            Q[self.offsets[k] : self.offsets[k + 1], starts[k] : starts[k + 1]] = rows
        omega = np.zeros((self.k, self.k))
        J, K = (np.concatenate(side) for side in zip(*self.pairs, strict=True))
        omega[J, K] = omega[K, J] = weights
        pairs = {
            (j, k): W
            for (J, K), stack in zip(self.pairs, duals[1:], strict=False)
            for j, k, W in zip(J, K, stack, strict=True)
        }
        floors = {}
        for n, stack in zip(self.members, duals[1 + len(self.groups) :], strict=False):
            among = product(np.flatnonzero(self.sizes == n), self.floored)
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
