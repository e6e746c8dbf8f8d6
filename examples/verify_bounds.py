"""The bounds behind certificate files, for the verifiers beside this file: NumPy and nothing else.

Products are exact, so floors next to one and nearly singular matrices lose no digits. The formulas
are those of docs/guide/certificates.md; docs/theory/certificates.md has the completed square.
"""

import numpy as np

root = np.linalg.cholesky


def numbers(values):
    """The floats of an array in a file, "inf" and "nan" among them."""
    cells = values["$array"] if isinstance(values, dict) else values
    return np.asarray(cells, dtype=np.float64)


def exactly(*matrices):
    """The product of matrices: in integers over a power of two, and rounded once."""
    whole, scale = None, 1
    for A in matrices:
        ratios = [a.as_integer_ratio() for a in A.ravel().tolist()]
        most = max(d for _, d in ratios)
        own = np.array([n * (most // d) for n, d in ratios], dtype=object).reshape(A.shape)
        whole, scale = own if whole is None else whole @ own, scale * most
    return numbers(whole / scale)


def completed_square(H, d, C, rho):
    """``2ρᵀd - tr H - tr(H⁻¹DCD)``, by the square completed at a float matrix X near ``DH⁻¹``."""
    one, D, none = np.eye(len(d)), np.diag(d), np.zeros((len(d), len(d)))
    half = np.linalg.solve(root(H), D)
    X = np.linalg.solve(root(H).T, half).T
    fidelity = exactly(np.hstack([C, -np.diag(rho)]), np.vstack([X, one]))  # CX - Diag(ρ)
    both = np.block([[C, none], [none, one]])
    defect = exactly(np.hstack([X.T, -one]), both, np.vstack([X, one]))  # XᵀCX - I
    Z = exactly(np.hstack([X, -D]), np.vstack([H, one]))  # XH - D, a rounding
    rest = np.sum(np.linalg.solve(root(H), Z.T) ** 2) * np.abs(C).sum(axis=0).max()
    return float(np.sum(defect * H) - 2 * d @ np.diag(fidelity) - rest)


def less_conjugate(name, value, h, w):
    """A bound less the conjugate of the criterion, pulled into its domain; nan if H is outside."""
    if (h[w == 0] > 0).any():
        return np.nan  # H is not zero at a pair without a weight
    h, w = h[w > 0], w[w > 0]
    outside = (2 * h / w).sum() if name == "worst" else (2 * h / w).max(initial=0)
    return value - (h**2 / w).sum() if name == "squared" else value / max(1.0, float(outside))


def rank_bound(dual, A, rho):
    """D2 ≥ 2ρᵀλ - tr(D_λRD_λH⁻¹) - Σ(H_jj - S_jj) - p/2 - ½Σ_{i≤r} s_i², S = H but for S_jj."""
    if "V" in dual:
        return factored_rank_bound(dual, A, rho)
    (r, p), S, H = A.shape, dual["H"].copy(), dual["H"]
    np.fill_diagonal(S, dual["diagonal"])
    squares = np.sort(np.linalg.eigvalsh(S) ** 2)[p - r :]
    square = completed_square(H, dual["multipliers"], A.T @ A, rho * np.linalg.norm(A, axis=0))
    return square + dual["diagonal"].sum() - p / 2 - squares.sum() / 2


def factored_rank_bound(dual, A, rho):
    """D2 ≥ νp - p/2 - ½‖VVᵀ + νI‖² + 2ρᵀλ - Σκ_j - tr(D_λRD_λH⁻¹), H = VᵀV + Diag(κ), ν ≥ 0."""
    (r, p), V, lam, kappa = A.shape, dual["V"], dual["multipliers"], dual["kappa"]
    N, half = V @ V.T, np.linalg.solve(root(V.T @ V + np.diag(kappa)), (A * lam).T)
    nu = max((p - np.trace(N)) / r, 0)
    whole = nu * p - p / 2 - np.sum((N + nu * np.eye(r)) ** 2) / 2
    return whole + 2 * (rho * np.linalg.norm(A, axis=0)) @ lam - kappa.sum() - np.sum(half**2)


def tradeoff_bound(dual, name, C, rho, w):
    """φ ≥ 2ρᵀλ - tr H - φ*(off H) - tr(D C D H⁻¹), with H pulled into the domain of φ*."""
    lam, H = dual["multipliers"], dual["H"]
    on = (lam > 0) | H.any(axis=0)
    value = completed_square(H[on][:, on], lam[on], C[on][:, on], rho[on]) if on.any() else 0.0
    return less_conjugate(name, value, np.abs(H[np.triu_indices(len(H), 1)]), w)


def highest_floor(dual, C, limit):
    """A common floor that no transformation with VIFs up to the limit exceeds."""
    lam, H, s, Y = (dual[f"vif_{name}"] for name in ("weights", "H", "roots", "vectors"))
    left = np.abs(H + Y @ Y.T)
    spent = np.sum(Y**2) + left.sum() - np.trace(left) + limit * s @ s - 2 * s @ np.diag(Y)
    return 1.0 + float(spent - completed_square(H, lam, C, np.ones(len(lam)))) / 2 / lam.sum()


def left_over(terms, spheres):
    """Coefficients of a sum of products of four entries, the last square of a sphere replaced.

    Entry 0 is the number one. Returns the constant, and the sum of all other sizes.
    """
    quads = np.concatenate([np.stack(np.broadcast_arrays(*q), -1).reshape(-1, 4) for q, _ in terms])
    value = np.concatenate([np.broadcast_to(c, np.broadcast(*q).shape).ravel() for q, c in terms])
    for inside in spheres:  # s_l² = 1 - Σ s_a² for the last entry l, at most twice in a product
        for _ in range(2):
            twice = np.sum(quads == inside[-1], axis=1) > 1
            rest = np.sort(np.where(quads[twice] == inside[-1], 10**6, quads[twice]), axis=1)
            rest[rest == 10**6] = inside[-1]  # the two at the end go, others stay
            new = [
                np.concatenate([rest[:, :2], np.full((len(rest), 2), a)], 1) for a in inside[:-1]
            ]
            new = [np.concatenate([rest[:, :2], np.zeros((len(rest), 2), int)], 1), *new]
            signs = np.repeat([1.0] + [-1.0] * (len(inside) - 1), len(rest))
            quads = np.concatenate([quads[~twice], *new])
            value = np.concatenate([value[~twice], signs * np.tile(value[twice], len(inside))])
    codes = np.sort(quads, axis=1) @ (10**4) ** np.arange(3, -1, -1)
    found, place = np.unique(codes, return_inverse=True)
    sums = np.bincount(place.ravel(), value)
    return float(sums[found == 0].sum()), float(np.abs(sums[found > 0]).sum())


def axes(R, b, allowed, fixed):
    """Sources of a column, K with K R Kᵀ = I, its first row along the anchor b, and its reach."""
    omega = np.flatnonzero(allowed)
    top = omega[np.argmax(np.abs(b[omega]))]
    omega = np.concatenate(([top], omega[omega != top]))
    K = np.linalg.inv(root(R[np.ix_(omega, omega)]))
    g, length = K @ (R @ b)[omega], (b @ R @ b) ** 0.5
    reach = np.linalg.norm(g) / length
    if reach > 0:  # a reflection takes g to the first axis
        g = g / np.linalg.norm(g)
        sign = 1.0 if g[0] > -0.73 else -1.0
        g[0] += sign
        K = K - np.outer(g, 2 * (g @ K) / (g @ g))
        K[0] *= -sign
    return omega, K[:1] if fixed else K, reach


def moment_bound(dual, rho, R, columns, K):
    """Σω r² less yᵀSy, zᵀWz and (s₁² - ρ²)sᵀVs, on unit vectors s_k with t_k = Kᵀs_k."""
    p, sizes = len(K), [len(rows) for rows in K]
    s = [1 + sum(sizes[:k]) + np.arange(n) for k, n in enumerate(sizes)]
    y = np.concatenate([[[0], [0]], *(i[np.array(np.triu_indices(len(i)))] for i in s)], axis=1)
    terms = [((y[0][:, None], y[1][:, None], y[0], y[1]), -dual["S"])]
    costs, parts = (
        [(1 + p) * np.linalg.eigvalsh(dual["S"])[0]],
        dict.fromkeys(("pairs", "floors"), 0),
    )

    def block(name, n):
        A, start = np.zeros((n, n)), parts[name]
        parts[name] += n * (n + 1) // 2
        A[np.triu_indices(n)] = dual[name][start : parts[name]]
        A = A + np.triu(A, 1).T
        costs.append(np.linalg.eigvalsh(A)[0])
        return A

    for j in range(p):
        for k in range(j + 1, p):
            B = (K[j] @ R[np.ix_(columns[j], columns[k])] @ K[k].T).ravel()
            square = dual["weights"][j, k] * np.outer(B, B) - block("pairs", len(B))
            a, c = np.repeat(s[j], sizes[k]), np.tile(s[k], sizes[j])
            terms.append(((a[:, None], c[:, None], a, c), square))
    for k in (k for k in range(p) if sizes[k] > 1 and rho[k] > 0):
        for j in range(p):
            V, first = block("floors", sizes[j]), s[k][0]
            terms.append(((first, first, s[j][:, None], s[j]), -V))
            terms.append(((0, 0, s[j][:, None], s[j]), rho[k] ** 2 * V))
    constant, others = left_over(terms, s)
    whole = parts["pairs"] == len(dual["pairs"]) and parts["floors"] == len(dual["floors"])
    return max(constant - others + sum(min(cost, 0.0) for cost in costs), 0.0) if whole else np.nan


def support_bound(dual, info, name, rho, R, mask, B):
    """The bound on a support: moments, the lifted dual, or that of a frame, P = RQR.

    The anchors B count by their projections X onto the supports, and their floors over its length.
    """
    k, alone = len(rho), (rho >= 1) | (mask.sum(axis=0) == 1)
    each = [axes(R, B[:, j], mask[:, j], alone[j]) for j in range(k)]
    columns, K, reach = zip(*each, strict=True)
    rho = np.where(alone, 1.0, np.minimum(rho / np.where(rho > 0, reach, 1.0), 1.0))
    X = np.zeros(B.shape)
    for j in range(k):
        X[columns[j], j] = K[j][0]
    if info["bound"] == "moments":
        w, value = dual["weights"][np.triu_indices(k, 1)], moment_bound(dual, rho, R, columns, K)
        if name == "worst":
            return (value / w.sum()) ** 0.5 if (w >= 0).all() else np.nan
        value = value if name == "squared" or value > 1 else value**0.5
        return value if (w == 1).all() else np.nan
    if info["bound"] == "lifted":  # columns without freedom are constants
        free, lam, H = (
            np.where(alone, False, mask),
            np.where(alone, 0, dual["multipliers"]),
            dual["H"],
        )
        (j, i), fixed = np.nonzero(free.T), np.where(alone, X, 0.0)
        target = (R @ (X * lam - fixed @ H))[i, j]
        half = (
            np.linalg.solve(root(R[np.ix_(i, i)] * H[np.ix_(j, j)]), target) if len(i) else target
        )
        value = 2 * rho @ lam - np.trace(H) - half @ half + np.sum(fixed.T @ R @ fixed * H)
        h = np.abs(H[np.triu_indices(k, 1)])
        return less_conjugate(name, value, h, np.ones(len(h)))
    P, M = R @ dual["Q"] @ R, root(R).T @ dual["Q"] @ root(R)
    total = -np.trace(M)
    for j, omega in enumerate(columns):
        pull = K[j] @ (R @ X[:, j])[omega]
        form = K[j] @ P[np.ix_(omega, omega)] @ K[j].T - dual["eta"][j] * np.outer(pull, pull)
        total += float(np.linalg.eigvalsh(form)[0]) + dual["eta"][j] * rho[j] ** 2
    missing = len(R) - k  # eigenvalues of the frame operator that k outputs leave at zero
    if info["norm"] == "nuclear":
        return 0.5 * (total / max(1.0, float(np.abs(np.linalg.eigvalsh(M)).max())) - missing)
    value = max(total - 0.5 * np.sum(M * M) - 0.5 * missing, 0.0)
    pairs = k * (k - 1) / 2 if name == "worst" else 1
    return value if name == "squared" or value / pairs > 1 else (value / pairs) ** 0.5
