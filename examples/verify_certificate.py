"""Verify a certificate file (version 3): python verify_certificate.py file.json [matrix.npy].

NumPy and nothing else. Exit status 0: verified; 1: refused. docs/guide/certificates.md has the
inequalities and explains the file, docs/theory/certificates.md the completed square. First come the
bounds, one function each, then the claims.

At full rank what T does and the bounds without a support come from exact products, so floors next
to one and nearly singular matrices lose no digits. The rest is computed in double precision: with
floors within 1e-6 of one a true claim may be refused there, and `coral verify` decides. Prices of
floors on a support are not judged.
"""

import json
import sys
from hashlib import sha256

import numpy as np

VARIANCE, FLOOR, EXACT, MEAN, GAP, REPORTED = 1e-10, 1e-10, 1e-8, 1e-8, 1e-7, 1e-9
LIMIT, FACTOR, PRICE = 1e-6, 1e-10, 1e-6  # of the floor within a limit on the VIF; of rank r < p
problems = []


def expect(holds, problem):
    problems.extend([] if bool(holds) else [problem])


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
    """``2ρᵀd - tr H - tr(H⁻¹DCD)``, by the square completed at a float matrix X near ``DH⁻¹``.

    C is a matrix, or the factors of it, whose product is then not rounded.
    """
    factors = [C] if isinstance(C, np.ndarray) else C
    one, D, none = np.eye(len(d)), np.diag(d), np.zeros
    X, Z = none(D.shape), -D
    for _ in range(3):  # the first step solves XH = D, the others mend what rounding took
        X = X - np.linalg.solve(root(H).T, np.linalg.solve(root(H), Z.T)).T
        Z = exactly(np.hstack([X, -D]), np.vstack([H, one]))  # XH - D, a rounding
    point = np.vstack([X, one])
    both = [
        np.block([[M, none((len(M), len(d)))], [none((len(d), M.shape[1])), one]]) for M in factors
    ]
    first = np.hstack([factors[0], -np.diag(rho)])
    fidelity = exactly(first, *both[1:], point)  # CX - Diag(ρ)
    defect = exactly(np.hstack([X.T, -one]), *both, point)  # XᵀCX - I
    size = np.abs(exactly(*factors)).sum(axis=0).max()
    rest = np.sum(np.linalg.solve(root(H), Z.T) ** 2) * size
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
    square = completed_square(H, dual["multipliers"], [A.T, A], rho * np.linalg.norm(A, axis=0))
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
    on, A = (lam > 0) | H.any(axis=0), dual.get("factor")
    C = C[on][:, on] if A is None else [A[:, on].T, A[:, on]]
    value = completed_square(H[on][:, on], lam[on], C, rho[on]) if on.any() else 0.0
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


def spent(dual, weights, A):
    """Σκ_j + Σ_j λ_j² a_jᵀ(N + κ_j I)⁻¹a_j, in the eigenbasis of N."""
    values, Q = np.linalg.eigh(dual["N"])
    kappa = dual["kappa"] + 1e-14 * max(1e-12, values[-1])  # the inequality holds for any κ
    expect(values[0] + kappa.min() > 0, "N is not positive semidefinite")
    return kappa.sum() + weights**2 @ ((Q.T @ A) ** 2 / (values[:, None] + kappa)).sum(axis=0)


def frame_bound(dual, A, rho):
    """D2 ≥ νp - p/2 - ½‖N + νI‖² + 2ρᵀλ - Σκ_j - Σ_j λ_j² a_jᵀ(N + κ_j I)⁻¹a_j."""
    (r, p), N, lam = A.shape, dual["N"], dual["multipliers"]
    nu = (p - np.trace(N)) / r
    whole = nu * p - p / 2 - np.sum((N + nu * np.eye(r)) ** 2) / 2
    return whole + 2 * (rho * np.linalg.norm(A, axis=0)) @ lam - spent(dual, lam, A)


def common_floor(dual, C):
    """No exact decorrelator has a higher common floor: [tr(S⁻¹DCD) + tr S] / (2 Σλ)."""
    lam, on = dual["weights"], dual["weights"] > 0
    return -completed_square(dual["S"], lam[on], C[on][:, on], 0 * lam[on]) / 2 / lam.sum()


def mean_room(dual, T, B, R, rho, f):
    """By how much the mean fidelity can be larger, beside the outputs that bind (λ > 0)."""
    free = dual.get("weights", np.zeros(len(f))) == 0
    if not free.any():
        return 0.0
    d, fixed = dual["mean_weights"], T[:, ~free]
    expect((d[free] >= 1).all() and not d[~free].any(), "weights that prove nothing of the mean")
    own = B[:, free] - fixed @ (fixed.T @ R @ B[:, free])
    most = -completed_square(dual["mean_S"], d[free], exactly(own.T, R, own), rho[free]) / 2
    return float(most + (rho - f)[free].sum()) / len(f)


def check_rank(R, A, rank):
    """R has this rank below p, and A is a factor of it."""
    p, values = len(R), np.linalg.eigvalsh(R)
    expect(0 < rank < p, "the rank is none below p")
    fits = np.abs(values[: p - rank]).max() <= FACTOR * p and values[p - rank] > 1e-13 * values[-1]
    expect(fits and np.abs(np.diag(R) - 1).max() <= FACTOR, "R has another rank")
    fits = A is None or (len(A) == rank and np.abs(A.T @ A - R).max() <= FACTOR)
    expect(fits, "the factor is not one of R")


def verify_threshold(claim, dual, T, B, R, C, G, f):
    """Both ends of ρ★; for rank r < p, of the floors at which D2 has its least, (p²/r - p)/2."""
    A, lam, p = dual.get("factor"), dual["weights"], len(f)
    pairs = np.triu_indices(p, 1)
    if A is None:
        off, upper = np.abs(G[pairs]).max(initial=0), common_floor(dual, C)
        expect(off <= EXACT, f"T leaves residual correlations of {off:.1e}")
        if claim["upper"] - claim["lower"] <= GAP:
            room = mean_room(dual, T, B, R, np.full(p, claim["lower"]), f)
            expect(room <= MEAN, f"a mean fidelity {room:.1e} larger is possible")
    else:
        least, squares = p * (p / len(A) - 1) / 2, np.sum(G[pairs] ** 2)
        expect(abs(squares - least) <= GAP * max(1, least), "T leaves more than the least residual")
        upper = (p / len(A) * np.trace(dual["N"]) + spent(dual, lam, A)) / 2 / lam.sum()
        upper = max(min(upper, 1), f.min())
        expect(np.abs(np.diag(G) - 1).max() <= VARIANCE, "a variance is not one")
    expect(np.array_equal(numbers(claim["weights"]), lam), "the weights are not those proved")
    for name, value in (("lower", f.min()), ("upper", upper)):
        expect(abs(claim[name] - value) <= REPORTED, f"{name} is {value:.12g}")


def rank_or_frame(kind, name, dual, A, rho, most, weighted):
    """The bound of rank r < p, its slopes, and how far it is from the budget ``most``."""
    slopes, n = 2 * dual["multipliers"], len(rho) * (len(rho) - 1) / 2
    lower = squares = {"frame": frame_bound, "rank": rank_bound}[kind](dual, A, rho)
    if name == "worst":  # not less than the root of the mean square
        lower, most = (max(lower, 0.0) / n) ** 0.5, most**2 * n
        slopes = slopes * 0.5 * lower / squares
    if name == "absolute" and not slopes.any():  # by the projection on the null space
        lower = max(lower, len(rho) - len(A))
    expect(kind == "frame" or name == "squared", "such a proof is about squares")
    expect(not (weighted and slopes.any()), "a frame is not combined with pair weights")
    return (0.0, slopes, np.inf) if weighted else (lower, slopes, most - squares)


def verify_decorrelation(claim, kind, info, dual, T, given, B, R, C, G, f):
    rho, name, k, low = numbers(claim["rho_min"]), claim["criterion"], len(f), "rank" in info
    pairs, weighted = np.triu_indices(k, 1), claim["pair_weights"] is not None
    w = numbers(claim["pair_weights"]) if weighted else np.ones((k, k))
    expect((w >= 0).all() and np.array_equal(w, w.T), "weights of pairs that are none")
    w, r = w[pairs], np.abs(G[pairs])
    prices, weights = numbers(claim["prices"]), numbers(claim["weights"])
    expect(np.abs(np.diag(G) - 1).max() <= VARIANCE, "a variance is not one")
    U = numbers(claim["correlation"].get("factor", []))  # of a wide table
    off = np.abs((U.T @ U if U.size else numbers(claim["correlation"])) - G).max()
    expect(off <= REPORTED, "other correlations than those of T")
    expect((f >= rho - FLOOR).all(), "a floor is missed")
    expect((rho >= 0).all() and (rho <= 1).all(), "a floor is none")
    objective = {"squared": w @ r**2, "absolute": w @ r, "worst": (w * r).max(initial=0)}[name]
    close = REPORTED * max(1.0, objective)
    expect(abs(objective - claim["objective"]) <= close, f"T leaves {objective:.12g}")
    goal, top, slopes = claim["goal"], np.inf, prices  # top: of the common floor
    budget, vif = (goal if goal["$record"] == which else None for which in ("Budget", "VifLimit"))
    limit = budget["budget"] if budget else np.inf
    expect(objective <= limit + close, "over budget")
    expect(np.ptp(rho) == 0 or not (budget or vif), "several floors")
    if vif:
        limit, largest = vif["max_vif"] - 1, np.diag(np.linalg.inv(G)).max()
        fits = abs(1 / largest - 1 / vif["largest_vif"]) <= REPORTED
        expect(fits and 1 / largest >= 1 / vif["max_vif"] - REPORTED, "the largest VIF, or limit")
        top = highest_floor(dual, C, vif["max_vif"]) if "vif_H" in dual else top
    if kind == "exact":
        lower, own = 0.0, dual.get("weights", dual.get("mean_weights"))
        room, best = mean_room(dual, T, B, R, rho, f), "exact"
        if "weights" in dual:
            common = common_floor(dual, C)
            room = max(room, common - float(own @ rho) / own.sum())
            top = common if limit == 0 else top
        expect(not prices.any() and np.array_equal(weights, own), "prices or weights")
        slack = max(r.max(initial=0) / EXACT, room / MEAN)  # 1: as far as the word may be off
    else:
        expect(info["criterion"] == name, "the proof is about another criterion")
        best, reach = "optimal", np.inf
        if kind == "support":
            mask = np.where(rho >= 1, B != 0, dual["support"] > 0)
            expect(np.isin(dual["support"], (0, 1)).all(), "a support is zeros and ones")
            expect(not T[~mask].any() and mask.any(axis=0).all(), "not its support")
            lower = support_bound(dual, info, name, rho, R, mask, given)
        else:
            if kind == "tradeoff":
                lower, slopes = tradeoff_bound(dual, name, C, rho, w), 2 * dual["multipliers"]
                reach = limit - lower
            else:
                args = kind, name, dual, dual["factor"], rho, limit, weighted
                lower, slopes, reach = rank_or_frame(*args)
            near = PRICE if low else REPORTED
            one = rho >= 1  # infinite, or of an output without correlation
            fits = np.isin(prices[one], (0, np.inf)).all()
            fits = fits and np.allclose(prices[~one], slopes[~one], near, near)
            expect(fits and np.allclose(2 * weights, slopes, near * low, near * low), "prices")
        if budget and dual.get("multipliers", np.zeros(1)).any():  # linear in the floors
            top = rho.max() + reach / (2 * dual["multipliers"].sum())
        slack = (objective - max(lower, 0)) / GAP / max(1, objective)
        exact = kind == "support" and r.max(initial=0) <= EXACT
        best, slack = ("exact", 0) if exact else (best, slack)
        slack = max(slack, (budget["rho_upper"] - rho.min()) / GAP) if budget else slack
        slack = (vif["rho_upper"] - rho.min()) / LIMIT if vif else slack  # about the floor
    stated = (budget or vif or {"rho_upper": 1.0})["rho_upper"]
    expect(stated >= min(top, 1.0) - 10 * REPORTED, f"floors up to {top:.12g} are possible")
    word = claim["status"]  # the others say that something is open
    fits = slack <= 1 and word == best if word in ("exact", "optimal") else slack > 0.5
    expect(fits, f"the status that follows is {best if slack <= 1 else 'open'}")
    stated, proved = claim["lower_bound"], max(lower, 0.0)
    expect(stated <= proved + 10 * close, f"the proof gives only {lower:.12g}")
    expect(stated >= min(lower, objective) - 100 * close, "less is claimed than proved")
    expect(lower <= objective + 100 * close, "the bounds cross")


def verify(file, matrix=None):
    content, claim = file["content"], file["content"]["result"]
    digest = sha256(json.dumps(content, sort_keys=True, separators=(",", ":")).encode())
    sealed = ["scikit-coral certificate", 3, "sha256:" + digest.hexdigest()]
    expect([file[key] for key in ("format", "version", "checksum")] == sealed, "altered, or new")
    proof, wide, f = claim["certificate"], content["R"] is None, numbers(claim["fidelity"])
    kind, info, low = proof["kind"], proof["info"], "rank" in proof["info"]
    dual = {name: numbers(a) for name, a in proof["arrays"].items()}
    for name in {"weights", "mean_weights", "multipliers", "eta", "vif_weights"} & set(dual):
        expect((dual[name] >= 0).all(), "a multiplier is negative")
    A, T = dual.get("factor"), claim["T"]
    R = A.T @ A if wide else numbers(content["R"])
    one, anchors = np.eye(len(R)), claim.get("anchors")
    T = one + numbers(T["left"]) @ numbers(T["right"]) if wide else numbers(T)
    square = [dual[name] for name in {"S", "H", "Q", "N", "mean_S", "vif_H"} & set(dual)]
    expect(all(np.array_equal(M, M.T) for M in [R, *square]), "a matrix is not symmetric")
    expect(matrix is None or np.abs(matrix - R).max() <= REPORTED, "about another matrix")
    if low:
        check_rank(R, A, info["rank"])
        expect(anchors is None, "anchors go with full rank")
    else:
        above = R + 1e-10 * one if anchors else R  # the rank of R matters only without composites
        expect((np.diag(R) == 1).all() and root(above).size, "R is no correlation matrix")
    given, product = numbers(anchors or one), np.linalg.multi_dot if low else lambda M: exactly(*M)
    G, C, reached = (product([M.T, R, V]) for M, V in ((T, T), (given, given), (given, T)))
    if low:
        B, reached = given, np.diag(reached)
    else:
        length = np.sqrt(np.diag(C))
        B, C, reached = given / length, C / np.outer(length, length), np.diag(reached) / length
        np.fill_diagonal(C, 1.0)  # as it is without rounding, which multipliers of 1e9 would show
    expect(np.abs(reached - f).max() <= REPORTED, "the fidelities are not those of T")
    if claim["$record"] in ("Threshold", "SingularThreshold"):
        verify_threshold(claim, dual, T, B, R, C, G, reached)
    else:
        verify_decorrelation(claim, kind, info, dual, T, given, B, R, C, G, reached)


if __name__ == "__main__":
    try:
        with open(sys.argv[1], encoding="utf-8") as stream:
            verify(json.load(stream), *map(np.load, sys.argv[2:3]))
    except (ValueError, LookupError, TypeError, ArithmeticError, AttributeError) as error:
        problems.append(str(error))
    print("\n".join(f"refused: {problem}" for problem in problems) or "verified")
    sys.exit(1 if problems else 0)
