"""Second-order moments of supported columns: the relaxation, and its solution by ADMM.

The columns are unit vectors s_k, and no odd moment matters, because the sign of each is free. Take
an orthonormal basis H of the symmetric matrices without trace, ``y_k = (s_kᵀ H_a s_k)_a`` and
y = (1, y_1, …, y_p). The moments of degree four are then one matrix ``X = E[y yᵀ]``, of which only
the corner is known. What it has to satisfy is linear in X:

* X itself, for every pair of columns ``E[(s_j ⊗ s_k)(s_j ⊗ s_k)ᵀ]``, and for every floor
  ``E[(s_k1² − ρ_k²) s_j s_jᵀ]`` are positive semidefinite,
* for every column ``E[s_k ⊗ s_k ⊗ s_k ⊗ s_k]`` is a symmetric tensor,
* for the worst pair the numbers ``t − E r_jk²`` are not negative.

One step of the alternating direction method projects onto the moments, where the equations hold,
and onto these cones; the difference gives multipliers, and any multipliers give a bound.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from itertools import combinations, pairwise, permutations

import numpy as np
from scipy import sparse

from skcoral.core.arrays import Array
from skcoral.core.linalg import conjugate_gradient
from skcoral.exceptions import InvalidArgumentError
from skcoral.solvers.support.caps import Caps

#: Seconds of processor time after which a search for a bound by moments ends.
TIME_LIMIT = 300.0

Blocks = list[Array]  # symmetric matrices, or stacks of them

LARGEST = 2000  # size of X: a step takes some seconds there, and all blocks together 1 GB
# Of the tensors of columns beside the other blocks. After 600 steps the bound of the paper's system
# (p = 18) is .2320 with 2, .2318 with 3, .2316 with 1.5, .229 with 1, and far behind with about a
# tenth or ten times as much: .166 with .15, .169 with 15.
_COLUMN_WEIGHT = 2.0
_CHECK = 25  # steps from one bound to the next
_RELAXATION = 1.8  # beyond 1.9 the steps of small problems begin to oscillate
_PENALTY = 0.15
# The bound profits from small dual residuals: the primal one may be this many times larger.
_RATIO = 15.0
_CHANGE = 1.2
# The search ends where this many checks close less than this share of the gap to the goal.
_PATIENCE = 40
_STALLED = 3e-4
# Relative residual of the equations where floors couple them: each step starts from the last one.
_EQUATIONS = 1e-6


def bound_by_moments(
    caps: Caps, goal: float, tell: Callable[[float], bool], *, worst: bool = False
) -> dict[str, Array]:
    """Maximise the bound until it reaches ``goal``, the value of the best transformation known.

    ``tell`` is given the best bound from time to time, and ends the search by returning True; so
    does the processor time.
    """
    end = time.process_time() + TIME_LIMIT
    relaxation = Relaxation(caps, worst=worst)
    objective = relaxation.objective()
    x = np.zeros_like(objective)
    cone = state = relaxation.blocks(x)
    shift = relaxation.collected(state)
    penalty, history, finished = _PENALTY, list[float](), False
    while not finished:
        for _ in range(_CHECK):
            # The moments nearest to the state, less the gradient of the criterion.
            x, _, _ = conjugate_gradient(
                relaxation.normal,
                relaxation.collected(state) - shift - objective / penalty,
                lambda r: r / relaxation.scale,
                rtol=_EQUATIONS,
                max_iter=50,
                start=x,
            )
            moments, previous = relaxation.blocks(x), cone
            reflected = [2.0 * X - V for X, V in zip(moments, state, strict=True)]
            cone = relaxation.projected(reflected)
            moves = zip(state, cone, moments, strict=True)
            state = [V + _RELAXATION * (P - X) for V, P, X in moves]
        duals = [penalty * (P - A) for P, A in zip(cone, reflected, strict=True)]
        S, weights, value = relaxation.completed(duals)
        if not history or value > history[-1]:
            best = S, weights, duals
        history.append(max([value, *history[-1:]]))
        finished = tell(history[-1]) or history[-1] >= goal or time.process_time() > end
        gained = history[-1] - history[-_PATIENCE:][0]
        finished |= len(history) > _PATIENCE and gained <= _STALLED * (goal - history[-1])
        # Balances the residuals; the state is that of the same multipliers.
        primal, dual = _distance(cone, moments), penalty * _distance(cone, previous)
        factor = _CHANGE if primal > 3 * _RATIO * dual else 1.0
        factor = 1 / _CHANGE if 3 * primal < _RATIO * dual else factor
        penalty *= factor
        state = [P + (V - P) / factor for P, V in zip(cone, state, strict=True)]
    return relaxation.in_products(*best)


class Relaxation:
    """The relaxation of one support problem.

    The corner of X is no moment: that of the unknown x holds the level t of the worst pair.
    """

    def __init__(self, caps: Caps, *, worst: bool) -> None:
        self.sizes = [int(n) for n in caps.valid.sum(axis=1)]
        ends = np.cumsum([1, *(n * (n + 1) // 2 - 1 for n in self.sizes)])
        self.N, self.worst = int(ends[-1]), worst
        if self.N > LARGEST:
            raise InvalidArgumentError(
                f"proof='moments' has a block of size {self.N:,} for this support, and {LARGEST:,} "
                "is the largest: use a thinner support, or proof='quick'."
            )
        bases = {n: forms(n) for n in set(self.sizes)}
        self.forms = [bases[n] for n in self.sizes]
        self.at = [np.r_[0, a:b] for a, b in pairwise(ends)]  # where 1 and y_k stand in X
        self.parts = [[np.ix_(rows, columns) for columns in self.at] for rows in self.at]
        self.pairs = list(combinations(range(caps.k), 2))
        self.tensors = [*((k, k) for k in range(caps.k)), *self.pairs]
        costs = []  # r_jk² as coefficients of X
        for j, k in self.pairs:
            b = (caps.frames[j, : self.sizes[j]] @ caps.frames[k, : self.sizes[k]].T).ravel()
            cost = self._placed([(j, k)], [self._down(np.outer(b, b), j, k)])
            costs.append(sparse.csr_array(cost.reshape(1, -1)))
        self.costs = sparse.vstack([sparse.csr_array((0, self.N**2)), *costs])
        self.floored = [k for k, n in enumerate(self.sizes) if n > 1 and caps.floors[k] > 0]
        # The polynomials s_k1² − ρ_k² in y, one column each: the first H is e₁e₁ᵀ without trace.
        self.floors = np.zeros((self.N, len(self.floored)))
        for i, k in enumerate(self.floored):
            self.floors[0, i] = 1 / self.sizes[k] - caps.floors[k] ** 2
            self.floors[self.at[k][1], i] = np.sqrt((self.sizes[k] - 1) / self.sizes[k])
        # Squared lengths of the directions of X in X, columns and pairs, where all are orthogonal.
        self.scale = np.full((self.N, self.N), 1.5)
        inverse = 1 / np.array(self.sizes)
        for at, share in zip(self.at, inverse, strict=True):
            first = 1.0 + _COLUMN_WEIGHT**2 * share + 0.5 * (inverse.sum() - share)
            self.scale[np.ix_(at[1:], at[1:])] = 1.0 + _COLUMN_WEIGHT**2
            self.scale[0, at[1:]] = self.scale[at[1:], 0] = first
        self.scale[0, 0] = len(self.pairs)

    def _up(self, X: Array, j: int, k: int) -> Array:
        """``E[(s_j ⊗ s_k)(s_j ⊗ s_k)ᵀ]``, times the weight of a column where j is k."""
        n, m = self.sizes[j], self.sizes[k]
        T = self.forms[j].T @ X[self.parts[j][k]] @ self.forms[k]
        T = T.reshape(n, n, m, m).transpose(0, 2, 1, 3).reshape(n * m, n * m)
        return np.asarray(T * (_COLUMN_WEIGHT if j == k else 1.0))

    def _down(self, Z: Array, j: int, k: int) -> Array:
        """Coefficients of the part of X in ``⟨Z, up(X)⟩``."""
        n, m = self.sizes[j], self.sizes[k]
        T = Z.reshape(n, m, n, m).transpose(0, 2, 1, 3).reshape(n * n, m * m)
        part = self.forms[j] @ T @ self.forms[k].T
        return np.asarray(part * (_COLUMN_WEIGHT if j == k else 1.0))

    def objective(self) -> Array:
        """Coefficients of the unknown in the criterion."""
        C = self._weighted(np.full(len(self.pairs), float(not self.worst)))
        C[0, 0] = float(self.worst)
        return C

    def blocks(self, x: Array, *, constant: float = 1.0) -> Blocks:
        """X, the columns, the pairs, floors and levels; zero leaves the constants out."""
        X = x.copy()
        X[0, 0] = constant
        return [X, *(self._up(X, j, k) for j, k in self.tensors), *self._further(X, x[0, 0])]

    def projected(self, blocks: Blocks) -> Blocks:
        """The nearest symmetric tensors of columns, and positive semidefinite matrices."""
        last = 1 + len(self.sizes)
        tensors = []
        for n, M in zip(self.sizes, blocks[1:last], strict=True):
            # All permutations, as rounding must not grow in what fewer of them leave alone.
            every = [M.reshape((n,) * 4).transpose(order) for order in permutations(range(4))]
            tensors.append(np.mean(every, axis=0).reshape(M.shape))
        first, *others = _positive([blocks[0], *blocks[last:]])
        return [first, *tensors, *others]

    def collected(self, blocks: Blocks) -> Array:
        """Coefficients of the unknown in the sum of the blocks' inner products."""
        A, level = self._from_further(blocks[1 + len(self.tensors) :])
        A += self._from_tensors(blocks) + blocks[0]
        A[0, 0] = level
        return A

    def normal(self, x: Array) -> Array:
        """``F*F x`` for the map F from the unknown to the blocks."""
        X = x.copy()
        X[0, 0] = 0.0
        A, level = self._from_further(self._further(X, x[0, 0]))
        A += self.scale * X
        A[0, 0] = level
        return A

    def _further(self, X: Array, level: float) -> Blocks:
        """``E[(s_k1² − ρ_k²) s_j s_jᵀ]`` for every j, and ``t − E r_jk²`` for the worst pair."""
        moved = X @ self.floors
        out = [
            (moved[at].T @ basis).reshape(-1, n, n)
            for at, basis, n in zip(self.at, self.forms, self.sizes, strict=True)
        ]
        if self.worst:
            out.append((level - self.costs @ X.ravel())[:, None, None])
        return out

    def _from_further(self, blocks: Blocks) -> tuple[Array, float]:
        g, level = np.zeros_like(self.floors), 0.0
        for block, at, basis in zip(blocks, self.at, self.forms, strict=False):
            g[at] += basis @ block.reshape(-1, basis.shape[1]).T
        both = g @ self.floors.T
        A = np.asarray(0.5 * (both + both.T))
        if self.worst:
            weights = blocks[-1][:, 0, 0]
            A, level = A - self._weighted(weights), float(weights.sum())
        return A, level

    def _from_tensors(self, blocks: Blocks) -> Array:
        each = zip(self.tensors, blocks[1:], strict=False)
        return self._placed(self.tensors, [self._down(Z, j, k) for (j, k), Z in each])

    def _placed(self, tensors: list[tuple[int, int]], parts: list[Array]) -> Array:
        """Coefficients of X from those of its parts, half of them below its diagonal."""
        A = np.zeros((self.N, self.N))
        for (j, k), part in zip(tensors, parts, strict=True):
            A[self.parts[j][k]] += 0.5 * part
        return np.asarray(A + A.T)

    def _weighted(self, weights: Array) -> Array:
        """Coefficients of X in ``Σ ω_jk E r_jk²``."""
        return np.asarray(self.costs.T @ weights).reshape(self.N, self.N)

    def completed(self, duals: Blocks) -> tuple[Array, Array, float]:
        """S and ω for which the equations hold whatever the duals are, and the bound.

        ``Σ ω_jk E r_jk² = ⟨S, X⟩ + constant`` + what the pairs and floors contribute. Columns
        contribute nothing: their duals are orthogonal to symmetric tensors. The constant may be
        split between the corner of S and the bound, and E ‖y_k‖² is 1 − 1/n_k, so that any ε gives

            constant − ε Σ(1 − 1/n_k) − gᵀ(S + εI)⁻¹g,    g the first column of S.
        """
        further = duals[1 + len(self.tensors) :]
        weights = np.ones(len(self.pairs))
        if self.worst:
            weights = further[-1][:, 0, 0] / max(float(further[-1].sum()), 1e-300)
            further = [*further[:-1], np.zeros_like(further[-1])]
        S = self._weighted(weights) - self._from_tensors(duals) - self._from_further(further)[0]
        values, vectors = np.linalg.eigh(S[1:, 1:])
        g = (vectors.T @ S[1:, 0]) ** 2
        shifts = max(0.0, -float(values.min(initial=0.0)))
        shifts = shifts + np.abs(values).max(initial=1e-300) * np.geomspace(1e-12, 1.0, 49)
        corners = (g / (values + shifts[:, None])).sum(axis=1)
        bounds = S[0, 0] - shifts * sum(1 - 1 / n for n in self.sizes) - corners
        best = int(np.argmax(bounds))
        S += shifts[best] * np.eye(self.N)
        S[0, 0] = corners[best]
        return S, weights, float(bounds[best])

    def in_products(self, S: Array, weights: Array, duals: Blocks) -> dict[str, Array]:
        """A dual point in the products of entries, as the bound takes it."""
        lengths = [n * (n + 1) // 2 for n in self.sizes]
        Q = np.zeros((self.N, 1 + sum(lengths)))
        Q[0, 0] = 1.0
        for at, basis, n, end in zip(
            self.at, self.forms, self.sizes, np.cumsum([1, *lengths])[1:], strict=True
        ):
            rows = basis[1:].reshape(-1, n, n) * (2.0 - np.eye(n))
            upper = np.triu_indices(n)
            Q[at[1:], end - len(upper[0]) : end] = rows[:, *upper]
        omega = np.zeros((len(self.sizes),) * 2)
        omega[np.triu_indices_from(omega, 1)] = weights
        first, then = 1 + len(self.sizes), 1 + len(self.tensors)
        floors = duals[then : then + len(self.sizes)]
        return {
            "S": 0.5 * (Q.T @ S @ Q + (Q.T @ S @ Q).T),
            "weights": omega + omega.T,
            "pairs": _packed(duals[first:then]),
            "floors": _packed([V[i] for i in range(len(self.floored)) for V in floors]),
        }


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


def _packed(blocks: Blocks) -> Array:
    """Symmetric matrices as one row of numbers, each by its upper triangle."""
    parts = [(0.5 * (A + A.T))[np.triu_indices(len(A))] for A in blocks]
    return np.concatenate([np.zeros(0), *parts])


def _positive(blocks: Blocks) -> Blocks:
    """Nearest positive semidefinite matrices, in one call for all blocks of a size."""
    out = list(blocks)
    for shape in {A.shape for A in blocks}:
        at = [i for i, A in enumerate(blocks) if A.shape == shape]
        values, vectors = np.linalg.eigh(np.array([blocks[i] for i in at]))
        values = np.maximum(values, 0.0)[..., None, :]
        for i, A in zip(at, (vectors * values) @ vectors.swapaxes(-1, -2), strict=True):
            out[i] = A
    return out


def _distance(A: Blocks, B: Blocks) -> float:
    return float(np.sqrt(sum(np.sum((a - b) ** 2) for a, b in zip(A, B, strict=True))))
