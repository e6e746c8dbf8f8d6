"""Verify a certificate file (version 1): python verify_certificate.py file.json [matrix.npy].

Exit status 0: verified; 1: refused; 2: not covered (rank < p). Not judged: prices on a support, and
what takes more than double precision; `coral verify` does. docs/guide/certificates.md explains it.
"""

import hashlib
import json
import sys

import numpy as np

VARIANCE, FLOOR, EXACT, MEAN, GAP, REPORTED = 1e-10, 1e-10, 1e-8, 1e-8, 1e-7, 1e-9
problems = []
root, numbers = np.linalg.cholesky, np.float64  # "inf" and "nan" are read as what they say


def expect(holds, problem):
    problems.extend([] if bool(holds) else [problem])


def trace_form(S, d, C):  # tr(S⁻¹ D C D) + tr S
    half = np.linalg.solve(root(S), np.diag(d))
    return float(np.sum(half * (half @ C)) + np.trace(S))


def mean_room(kind, dual, T, B, R, rho, f):  # how much larger the mean fidelity can be
    free, part = dual["weights"] * (kind == "threshold") == 0, "rest_" * (kind == "threshold")
    fixed, own = T[:, ~free], B[:, free]  # at a threshold: beside the outputs that bind
    if not free.any():
        return 0.0
    d, own = dual[part + "weights"][free], own - fixed @ (fixed.T @ R @ own)
    expect((d >= 1).all(), "weights below one prove nothing")
    most = trace_form(dual[part + "S"], d, own.T @ R @ own) / 2 - d @ rho[free]
    return float(most + (rho - f)[free].sum()) / len(f)


def less_conjugate(name, value, h, w):  # with h pulled into the domain of the conjugate
    expect((w[h > 0] > 0).all(), "H is not zero at a pair without a weight")
    h, w = h[w > 0], w[w > 0]
    outside = (2 * h / w).sum() if name == "worst" else (2 * h / w).max(initial=0)
    return value - (h**2 / w).sum() if name == "squared" else value / max(1.0, float(outside))


def highest_floor(dual, C, limit):  # that no transformation with VIFs up to the limit exceeds
    lam, H, s, Y = (dual[f"vif_{name}"] for name in ("weights", "H", "roots", "vectors"))
    left = np.abs(H + Y @ Y.T)
    spent = np.sum(Y**2) + left.sum() - np.trace(left) + limit * s @ s - 2 * s @ np.diag(Y)
    return float(trace_form(H, lam, C) + spent) / 2 / lam.sum()


def verify(file, matrix=None):
    claim, proof = file["claim"], file["proof"]
    content = json.dumps({"claim": claim, "proof": proof}, sort_keys=True, separators=(",", ":"))
    checksum = "sha256:" + hashlib.sha256(content.encode()).hexdigest()
    given = file["format"], file["version"], file["checksum"]
    expect(given == ("scikit-coral certificate", 1, checksum), "another version, or altered")
    if claim["rank"] is not None:
        raise NotImplementedError("not covered here; use verify_singular_certificate.py")
    R, T, f = (numbers(claim[name]) for name in ("R", "T", "fidelity"))
    kind, info, k, wide = proof["kind"], proof["info"], T.shape[1], np.longdouble
    dual = {name: numbers(a) for name, a in proof["arrays"].items()}
    for name in {"weights", "multipliers", "eta", "vif_weights"} & set(dual):
        expect((dual[name] >= 0).all(), "a multiplier is negative")
    for A in [R, *(dual[name] for name in {"S", "H", "P", "rest_S", "vif_H"} & set(dual))]:
        expect(np.array_equal(A, A.T), "a matrix is not symmetric")
    expect(matrix is None or np.abs(matrix - R).max() <= REPORTED, "about another matrix")
    expect((np.diag(R) == 1).all() and root(R).size, "R is no correlation matrix")
    G = numbers(T.T.astype(wide) @ R.astype(wide) @ T.astype(wide))
    B = np.eye(len(R)) if claim.get("anchors") is None else numbers(claim["anchors"])
    B = B / np.sqrt(np.diag(B.T @ R @ B))
    reached = numbers(np.sum((R @ B).astype(wide) * T.astype(wide), axis=0))
    expect(np.abs(reached - f).max() <= REPORTED, "the fidelities are not those of T")
    C, off = B.T @ R @ B, np.abs(G - np.diag(np.diag(G))).max(initial=0)
    if kind == "threshold":
        d, on = dual["weights"], dual["weights"] > 0
        bound = trace_form(dual["S"], d[on], C[on][:, on]) / 2
    if claim["what"] == "threshold":
        zca = np.linalg.eigh(R)[1] ** 2 @ np.sqrt(np.linalg.eigvalsh(R))
        expect(off <= EXACT, "T leaves residual correlation")
        room = mean_room(kind, dual, T, B, R, np.full(k, claim["lower"]), reached)
        expect(room <= MEAN or claim["upper"] - claim["lower"] > GAP, "a larger mean is possible")
        values = reached.min(), bound / d.sum(), zca.min(), zca.mean()
        for name, value in zip(("lower", "upper", "zca", "trace"), values, strict=True):
            expect(abs(claim[name] - value) <= REPORTED, f"{name} is {value:.12g}")
        return
    rho, name = numbers(claim["rho_min"]), claim["criterion"]
    w, pairs = claim["pair_weights"], np.triu_indices(k, 1)
    w = np.ones((k, k))[pairs] if w is None else numbers(w)[pairs]
    prices, weights = numbers(claim["prices"]), numbers(claim["weights"])
    expect(np.abs(np.diag(G) - 1).max() <= VARIANCE, "a variance is not one")
    expect((reached >= rho - FLOOR).all() and (rho <= 1).all(), "a floor is missed")
    r, close = np.abs(G[pairs]), REPORTED * max(1.0, claim["objective"])
    objective = {"squared": w @ r**2, "absolute": w @ r, "worst": (w * r).max(initial=0)}[name]
    expect(abs(objective - claim["objective"]) <= close, f"T leaves {objective:.12g}")
    budget, vif, top = claim["budget"], claim.get("vif"), np.inf  # top: of the common floor
    if vif:
        largest = np.diag(np.linalg.inv(G)).max()
        expect(abs(1 / largest - 1 / vif["largest_vif"]) <= REPORTED, "another largest VIF")
        expect(1 / largest >= 1 / vif["max_vif"] - REPORTED, "a VIF exceeds the limit")
        top = highest_floor(dual, C, vif["max_vif"]) if "vif_H" in dual else top
    nothing = budget["budget"] if budget else vif["max_vif"] - 1 if vif else 1
    top = bound / d.sum() if kind == "threshold" and nothing == 0 else top
    expect(not budget or objective <= budget["budget"] + close, "over budget")
    if kind in ("exact", "threshold"):
        lower, room = 0.0, mean_room(kind, dual, T, B, R, rho, reached)
        room = max(room, (bound - float(d @ rho)) / d.sum()) if kind == "threshold" else room
        expect(not prices.any() and np.array_equal(weights, dual["weights"]), "prices or weights")
        follows = "exact" if off <= EXACT and room <= MEAN else "open"
    else:
        expect(info["criterion"] == name, "the proof is about another criterion")
        if kind == "tradeoff":
            lam, H, low = dual["multipliers"], dual["H"], rho < 1
            on = (lam > 0) | H.any(axis=0)
            spent = trace_form(H[on][:, on], lam[on], C[on][:, on])
            lower = less_conjugate(name, 2 * float(rho @ lam) - spent, np.abs(H[pairs]), w)
            if budget:
                top = rho.max() + (budget["budget"] - lower) / max(2 * lam.sum(), 1e-99)
            expect(np.array_equal(weights, lam), "the weights are others")
            prices = np.where(low | ~np.isin(prices, (0, np.inf)), prices, 2 * weights)
            expect(np.allclose(prices, 2 * weights, REPORTED, REPORTED), "prices are wrong")
        else:
            mask, own = numbers(claim["support"]), dual["support"]
            mask, own = (np.where(rho >= 1, np.eye(k), m) > 0 for m in (mask, own))
            expect(np.array_equal(mask, own) and not T[~mask].any(), "not its support")
            from verify_support import support_bound  # the file beside this one

            lower = support_bound(dual, info, name, rho, R, mask, less_conjugate)
        follows = "optimal" if objective <= max(lower, 0) + GAP * max(1, objective) else "open"
        follows = "exact" if kind == "support" and off <= EXACT else follows
        follows = "open" if budget and budget["rho_upper"] - rho.min() > GAP else follows
    stated = (budget or vif or {"rho_upper": 1.0})["rho_upper"]
    expect(stated >= min(top, 1.0) - 10 * REPORTED, f"floors up to {top:.12g} are possible")
    expect(claim["status"] == follows, f"the status that follows is {follows}")
    above, limit = claim["lower_bound"] - lower, GAP * max(1.0, objective)
    expect(above <= max(-lower, 0) + 10 * close, f"the proof gives only {lower:.12g}")
    expect(above >= -limit and lower <= objective + limit, "the bounds cross, or are others")


if __name__ == "__main__":
    try:
        with open(sys.argv[1], encoding="utf-8") as stream:
            verify(json.load(stream), *map(np.load, sys.argv[2:3]))
    except (ValueError, LookupError, TypeError) as error:  # a matrix not definite, a part missing
        problems.append(str(error))
    except NotImplementedError as left:
        sys.exit(print(left) or 2)
    print("\n".join(f"refused: {problem}" for problem in problems) or "verified")
    sys.exit(1 if problems else 0)
