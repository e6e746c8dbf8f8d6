"""Verify a certificate file (version 3) of a matrix of rank r < p, such as that of a wide table.

    python verify_singular_certificate.py file.json [matrix.npy]

Exit status 0: verified; 1: refused; 2: not covered (full rank). It computes in double precision, so
floors within 1e-6 of one may be refused although they are true; `coral verify` judges all of them.
docs/guide/certificates.md has the inequalities.
"""

import json
import sys
from hashlib import sha256

import numpy as np
from verify_bounds import numbers, rank_bound, tradeoff_bound  # beside this file

TINY, REPORTED, GAP, PRICE = 1e-10, 1e-9, 1e-7, 1e-6
problems = []


def expect(holds, problem):
    problems.extend([] if bool(holds) else [problem])


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


def verify_threshold(claim, dual, A, G, f):
    """Both ends of the largest common floor at which D2 has its least value, (p²/r - p)/2."""
    (r, p), N, weights = A.shape, dual["N"], dual["weights"]
    least, squares = p * (p / r - 1) / 2, np.sum(G[np.triu_indices(p, 1)] ** 2)
    expect(np.array_equal(numbers(claim["weights"]), weights), "the weights are not those proved")
    expect(abs(squares - least) <= GAP * max(1, least), "T leaves more than the least residual")
    upper = (p / r * np.trace(N) + spent(dual, weights, A)) / 2 / weights.sum()
    for key, value in (("lower", f.min()), ("upper", max(min(upper, 1), f.min()))):
        expect(abs(claim[key] - value) <= REPORTED, f"{key} is {value:.12g}")


def verify_decorrelation(claim, proof, dual, A, R, G, f):
    p, kind, name, rho = len(R), proof["kind"], claim["criterion"], numbers(claim["rho_min"])
    pairs, weighted = np.triu_indices(p, 1), claim["pair_weights"] is not None
    w, r = numbers(claim["pair_weights"]) if weighted else np.ones((p, p)), np.abs(G[pairs])
    expect((f >= rho - TINY).all() and (rho <= 1).all(), "a floor is missed")
    expect((w >= 0).all() and np.array_equal(w, w.T), "weights of pairs that are none")
    prices, weights, w = numbers(claim["prices"]), numbers(claim["weights"]), w[pairs]
    objective = {"squared": w @ r**2, "absolute": w @ r, "worst": (w * r).max()}[name]
    close, limit = REPORTED * max(1.0, objective), GAP * max(1.0, objective)
    expect(abs(objective - claim["objective"]) <= close, f"T leaves {objective:.12g}")
    expect(proof["info"]["criterion"] == name, "the proof is about another criterion")
    expect(claim["anchors"] is None, "anchors go with full rank")
    stated, slopes = claim["correlation"], 2 * dual.get("multipliers", np.zeros(p))
    U = numbers(stated.get("factor", []))  # of a wide table
    off = np.abs((U.T @ U if U.size else numbers(stated)) - G).max()
    expect(off <= REPORTED, "other correlations than of T")
    budget = claim["goal"] if claim["goal"]["$record"] == "Budget" else None
    most = budget["budget"] if budget else np.inf
    if kind == "tradeoff":
        lower = tradeoff_bound(dual, name, R, rho, w)
        reach = most - lower
    else:
        lower = {"frame": frame_bound, "rank": rank_bound}[kind](dual, A, rho)
        reach = (most**2 * len(r) if name == "worst" else most) - lower
        if name == "worst":  # not less than the root of the mean square
            squares, lower = lower, (max(lower, 0.0) / len(r)) ** 0.5
            slopes = slopes * 0.5 * lower / squares
        if name == "absolute" and not slopes.any():  # by the projection on the null space
            lower = max(lower, p - len(A))
        expect(kind != "rank" or name == "squared", "such a proof is about squares")
        expect(not (weighted and slopes.any()), "a frame is not combined with pair weights")
        lower, reach = (0.0, np.inf) if weighted else (lower, reach)
    free = (rho >= 1) & np.isin(prices, (0, np.inf))  # infinite, or of an uncorrelated output
    expect(np.allclose(np.where(free, slopes, prices), slopes, PRICE, PRICE), "prices are wrong")
    expect(np.allclose(2 * weights, slopes, PRICE, PRICE), "the weights are wrong")
    gap, best = (objective - max(lower, 0)) / limit, "optimal"
    if budget:  # the bound is linear in the floors
        rise = 2 * dual.get("multipliers", np.zeros(1)).sum()
        top = rho.max() + reach / rise if rise > 0 else np.inf
        expect(objective <= most + close and np.ptp(rho) == 0, "over budget, or several floors")
        expect(budget["rho_upper"] >= min(top, 1) - REPORTED * 10, f"floors up to {top:.12g}")
        gap = max(gap, (budget["rho_upper"] - rho.max()) / GAP)
    word = claim["status"]  # the others say that something is open
    fits = gap <= 1 and word == best if word in ("exact", "optimal") else gap > 0.5
    expect(fits, f"the status that follows is {best if gap <= 1 else 'open'}")
    expect(claim["lower_bound"] <= max(lower, 0) + 10 * close, f"only {lower:.12g} is proved")
    expect(claim["lower_bound"] >= min(lower, objective) - limit, "less is claimed than proved")
    expect(lower <= objective + limit, "the bounds cross")


def verify(file, matrix=None):
    content, claim = file["content"], file["content"]["result"]
    digest = sha256(json.dumps(content, sort_keys=True, separators=(",", ":")).encode())
    sealed = ["scikit-coral certificate", 3, "sha256:" + digest.hexdigest()]
    expect([file[key] for key in ("format", "version", "checksum")] == sealed, "altered, or new")
    proof, T, f = claim["certificate"], claim["T"], numbers(claim["fidelity"])
    if "rank" not in proof["info"]:
        raise NotImplementedError("not covered here: full rank is for verify_certificate.py")
    dual = {key: numbers(a) for key, a in proof["arrays"].items()}
    A, rank, p, wide = dual.get("factor"), proof["info"]["rank"], len(f), content["R"] is None
    T = np.eye(p) + numbers(T["left"]) @ numbers(T["right"]) if wide else numbers(T)
    R = A.T @ A if wide else numbers(content["R"])
    values = np.linalg.eigvalsh(R)
    expect(0 < rank < p, "the rank is none below p")
    fits = np.abs(values[: p - rank]).max() <= TINY * p and values[p - rank] > 1e-13 * values[-1]
    expect(fits, "R has another rank")
    expect(matrix is None or np.abs(matrix - R).max() <= REPORTED, "about another matrix")
    expect(np.abs(np.diag(R) - 1).max() <= TINY, "R is no correlation matrix")
    if A is not None:
        expect(len(A) == rank and np.abs(A.T @ A - R).max() <= TINY, "the factor is not one of R")
    for M in [R, *(dual[key] for key in {"N", "H"} & set(dual))]:
        expect(np.array_equal(M, M.T), "a matrix is not symmetric")
    for key in {"weights", "multipliers"} & set(dual):
        expect((dual[key] >= 0).all(), "a multiplier is negative")
    G, stated, f = T.T @ R @ T, f, np.sum(R * T, axis=0)
    expect(np.abs(np.diag(G) - 1).max() <= TINY, "a variance is not one")
    expect(np.abs(f - stated).max() <= REPORTED, "other fidelities than of T")
    if claim["$record"] == "SingularThreshold":
        verify_threshold(claim, dual, A, G, f)
    else:
        verify_decorrelation(claim, proof, dual, A, R, G, f)


if __name__ == "__main__":
    try:
        with open(sys.argv[1], encoding="utf-8") as stream:
            verify(json.load(stream), *map(np.load, sys.argv[2:3]))
    except (ValueError, LookupError, TypeError, ArithmeticError, AttributeError) as error:
        problems.append(str(error))
    except NotImplementedError as left:
        sys.exit(print(left) or 2)
    print("\n".join(f"refused: {problem}" for problem in problems) or "verified")
    sys.exit(1 if problems else 0)
