"""The bound of second-order moments on a support: sums of squares on a product of spheres.

With ``t_k = K_kᵀ s_k`` on Ω_k and ``K_k R_Ω K_kᵀ = I`` every column is a unit vector, ρ_k the floor
of its first entry (:mod:`skcoral.bounds.columns`), and the residuals are ``r_jk = s_jᵀ B_jk s_k``.
Let y hold 1 and the products ``s_a s_b``, a ≤ b, of the entries of each column. For any symmetric
S, W_jk (j < k) and V_kj (for the k with a floor) and ω ≥ 0,

    Σ_{j<k} ω_jk r_jk² = yᵀ S y + Σ_{j<k} (s_j ⊗ s_k)ᵀ W_jk (s_j ⊗ s_k)
                         + Σ_kj (s_k1² − ρ_k²) s_jᵀ V_kj s_j + left

where ``left`` is a polynomial of the same kind. Its value on unit vectors is at least the constant
that its harmonic parts of degree zero add up to, less the lengths of the other parts; a negative
eigenvalue of a block costs itself times the largest trace of its moments: 1 + p for S, else one.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations, combinations_with_replacement, pairwise, product

import numpy as np

from skcoral.bounds.arithmetic import UNIT, WIDER, Arithmetic, Enclosure, exactly
from skcoral.bounds.columns import Proved
from skcoral.bounds.dual import definite, least_shift, part
from skcoral.bounds.frame import from_squares
from skcoral.core.arrays import Array
from skcoral.core.solution import Certificate
from skcoral.exceptions import CertificateError

# Of the lengths of all tensors in ``left``: at most two dozen roundings of an entry that is a sum
# of a tensor and of parts of it that are at most nine times as long. Forms are sums over columns.
_ROUNDINGS = 256 * UNIT


def moment_bound(
    certificate: Certificate, proved: Proved, R: Array, arithmetic: Arithmetic
) -> Enclosure:
    """The bound of sums of squares; the weights select the worst pair."""
    arrays, criterion, p = certificate.arrays, certificate.info["criterion"], len(proved.columns)
    sizes = [len(one.K) for one in proved.columns]
    pairs = list(combinations(range(p), 2))
    floored = [k for k in range(p) if sizes[k] > 1 and proved.floors.lower[k] > 0]
    ends = np.cumsum([1, *(n * (n + 1) // 2 for n in sizes)])  # of the products in y
    S, weights = part(arrays, "S", ends[-1], ends[-1]), part(arrays, "weights", p, p)
    W = _unpacked(arrays, "pairs", [sizes[j] * sizes[k] for j, k in pairs])
    V = _unpacked(arrays, "floors", [n for _ in floored for n in sizes])
    above = weights[np.triu_indices(p, 1)]
    if criterion != "worst" and np.any(above != 1.0):
        raise CertificateError("the weights of a sum over pairs are one.")

    B, radius, e, squares = _spheres(proved, R, arithmetic)
    left, cost = _Left(sizes, -float(S[0, 0])), 0.0
    for (j, k), block in zip(pairs, W, strict=True):
        b, n, m = B[j][k], sizes[j], sizes[k]
        left.add(j, k, weights[j, k] * np.multiply.outer(b, b).swapaxes(1, 2))
        left.add(j, k, -block.reshape(n, m, n, m).swapaxes(1, 2))
        # |B| ≤ 1 + e as a form, and the entries of B are known up to their radius
        cost += 3 * float(weights[j, k]) * _norm(radius[j][k])
    for (k, j), block in zip(product(floored, range(p)), V, strict=True):
        g = (np.arange(sizes[k]) == 0) * np.eye(sizes[k]) - squares[k] * np.eye(sizes[k])
        left.add(min(j, k), max(j, k), -np.multiply.outer(*((block, g) if j < k else (g, block))))
    products = [_products(n, start) for n, start in zip(sizes, ends[:-1], strict=True)]
    for k, (at, half) in enumerate(products):
        left.forms[k].append(-2.0 * S[0, at] * half)
    for j, k in combinations_with_replacement(range(p), 2):
        (rows, half), (columns, other) = products[j], products[k]
        block = S[rows[:, :, None, None], columns] * np.multiply.outer(half, other)
        left.add(j, k, -block if j == k else -2.0 * block)

    constants, lengths, size = left.parts()
    cost += lengths + (_ROUNDINGS + 4 * p * UNIT) * size
    cost += (1 + p) * _lack(arithmetic, S) + sum(_lack(arithmetic, A) for A in (*W, *V))
    value = exactly(np.asarray(constants)).total() - cost * WIDER
    value = value.at_least(0.0) / ((exactly(1.0) + e) * (exactly(1.0) + e))
    return from_squares(criterion, exactly(float(value.lower)), exactly(above).total())


def _spheres(
    proved: Proved, R: Array, arithmetic: Arithmetic
) -> tuple[list[list[Array]], list[list[Array]], float, Array]:
    """All B_jk and their radii, how far columns are off unit length, and the squares ρ_k²."""
    cuts = np.cumsum([0, *(len(one.K) for one in proved.columns)])
    at = [slice(a, b) for a, b in pairwise(cuts)]
    K = np.zeros((int(cuts[-1]), len(R)))
    for rows, one in zip(at, proved.columns, strict=True):
        K[rows, one.sources] = one.K
    gram = arithmetic.enclosed(K, R, K.T, minus=np.eye(len(K)))
    B, radius = ([[A[i, j] for j in at] for i in at] for A in gram.spread())
    # sᵀ(I + E_k)s = 1, so that ‖s‖² is at least 1/(1 + e), and s₁/‖s‖ at least ρ(1 − e) − ‖E_k e₁‖.
    e = max(_norm(gram[i, i].size()) for i in at)
    if not e < 0.1:
        raise CertificateError("R is too nearly singular to prove a bound for this support.")
    first = np.array([_norm(gram[i, i].size()[:, 0]) for i in at])
    lowered = np.maximum((1 - 4 * e) * proved.floors.lower - 2 * first, 0.0)
    return B, radius, e, lowered**2 * (1 - 8 * UNIT)


class _Left:
    """The polynomial that the squares leave: tensors over (a, a', c, c') of degree two in s_j, s_k.

    Tensors of the same pair add up, and so do the forms of degree two on each column.
    """

    def __init__(self, sizes: list[int], constant: float) -> None:
        self.sizes, self.constant = sizes, constant
        self.tensors: dict[tuple[int, int], list[Array]] = {}
        self.forms: list[list[Array]] = [[] for _ in sizes]

    def add(self, j: int, k: int, tensor: Array) -> None:
        """Add a tensor of a pair of columns, or of one column to itself."""
        self.tensors.setdefault((j, k), []).append(tensor)

    def parts(self) -> tuple[list[float], float, float]:
        """Constants, the lengths of all other harmonic parts, and those of all that was added."""
        constants, lengths, size = [self.constant], 0.0, 0.0
        for (j, k), tensors in self.tensors.items():
            size += sum(map(_norm, tensors))
            T, n, m = np.sum(tensors, axis=0), self.sizes[j], self.sizes[k]
            inner = np.einsum("abcc->ab", T)
            if j < k:
                # T = T° + A ⊗ I + I ⊗ C, whatever A and C are; these make T° the shortest.
                T = 0.5 * (T + T.swapaxes(2, 3))
                A, C = inner / m, np.einsum("aacd->cd", T) / n
                C = C - float(np.trace(A)) / n * np.eye(m)
                share = np.multiply.outer(A, np.eye(m)) + np.multiply.outer(np.eye(n), C)
                self.forms[k].append(C)
            else:
                # T = T° + sym(A ⊗ I): the trace of sym(A ⊗ I) is ((n + 4) A + tr(A) I) / 6.
                T = _symmetric(T)
                inner = np.einsum("abcc->ab", T)
                A = (6.0 * inner - 3.0 * np.trace(inner) / (n + 2) * np.eye(n)) / (n + 4)
                share = _symmetric(np.multiply.outer(A, np.eye(n)))
            self.forms[j].append(A)
            lengths += _norm(T - share)
        for n, forms in zip(self.sizes, self.forms, strict=True):
            size += sum(map(_norm, forms))
            form = np.sum(forms, axis=0)
            constants.append(float(np.trace(form)) / n)
            lengths += _norm(form - constants[-1] * np.eye(n))
        return constants, lengths, size


def _unpacked(arrays: Mapping[str, Array], name: str, sizes: list[int]) -> list[Array]:
    """The symmetric matrices of these sizes whose upper triangles an array holds as one row."""
    lengths = [n * (n + 1) // 2 for n in sizes]
    values, blocks = part(arrays, name, sum(lengths)), []
    for n, end in zip(sizes, np.cumsum(lengths), strict=True):
        A = np.zeros((n, n))
        A[np.triu_indices(n)] = values[end - n * (n + 1) // 2 : end]
        blocks.append(A + np.triu(A, 1).T)
    return blocks


def _products(n: int, start: int) -> tuple[Array, Array]:
    """Where ``s_a s_b`` stands in y, those with a ≤ b from ``start`` on, and its share of two."""
    at = np.zeros((n, n), dtype=np.intp)
    at[np.triu_indices(n)] = start + np.arange(n * (n + 1) // 2)
    return np.maximum(at, at.T), np.where(np.eye(n) > 0, 1.0, 0.5)


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
