"""Verify a certificate file (version 3): python verify_certificate.py file.json [matrix.npy].

Exit status 0: verified; 1: refused; 2: not covered (rank < p). Not judged: prices on a support, and
what takes more than double precision there. docs/guide/certificates.md explains it.
"""

import json
import sys
from hashlib import sha256

import numpy as np
from verify_bounds import (  # the file beside this one
    completed_square,
    exactly,
    highest_floor,
    numbers,
    root,
    support_bound,
    tradeoff_bound,
)

VARIANCE, FLOOR, EXACT, MEAN, GAP, REPORTED = 1e-10, 1e-10, 1e-8, 1e-8, 1e-7, 1e-9
LIMIT = 1e-6  # of the floor within a limit on the VIF
problems = []


def expect(holds, problem):
    problems.extend([] if bool(holds) else [problem])


def mean_room(kind, dual, T, B, R, rho, f):  # how much larger the mean fidelity can be
    free, part = dual["weights"] * (kind == "threshold") == 0, "rest_" * (kind == "threshold")
    fixed, own = T[:, ~free], B[:, free]  # at a threshold: beside the outputs that bind
    if not free.any():
        return 0.0
    d, own = dual[part + "weights"][free], own - fixed @ (fixed.T @ R @ own)
    expect((d >= 1).all(), "weights below one prove nothing")
    most = -completed_square(dual[part + "S"], d, exactly(own.T, R, own), rho[free]) / 2
    return float(most + (rho - f)[free].sum()) / len(f)


def verify(file, matrix=None):
    content, claim = file["content"], file["content"]["result"]
    digest = sha256(json.dumps(content, sort_keys=True, separators=(",", ":")).encode())
    sealed = ["scikit-coral certificate", 3, "sha256:" + digest.hexdigest()]
    expect([file[key] for key in ("format", "version", "checksum")] == sealed, "altered, or new")
    proof = claim["certificate"]
    if "rank" in proof["info"]:
        raise NotImplementedError("not covered here; use verify_singular_certificate.py")
    R, T, f = (numbers(a) for a in (content["R"], claim["T"], claim["fidelity"]))
    kind, info, k = proof["kind"], proof["info"], T.shape[1]
    dual = {name: numbers(a) for name, a in proof["arrays"].items()}
    for name in {"weights", "multipliers", "eta", "vif_weights"} & set(dual):
        expect((dual[name] >= 0).all(), "a multiplier is negative")
    pairs = [numbers(w)] if (w := claim.get("pair_weights")) else []
    for A in [R, *pairs, *(dual[name] for name in {"S", "H", "Q", "rest_S", "vif_H"} & set(dual))]:
        expect(np.array_equal(A, A.T), "a matrix is not symmetric")
    expect(matrix is None or np.abs(matrix - R).max() <= REPORTED, "about another matrix")
    one, anchors = np.eye(len(R)), claim.get("anchors")
    above = R + 1e-10 * one if anchors else R  # the rank of R matters only without composites
    expect((np.diag(R) == 1).all() and root(above).size, "R is no correlation matrix")
    B, G = numbers(anchors or one), exactly(T.T, R, T)
    C, reached = exactly(B.T, R, B), np.diag(exactly(B.T, R, T))
    length, off = np.sqrt(np.diag(C)), np.abs(G - np.diag(np.diag(G))).max(initial=0)
    given, B, C, reached = B, B / length, C / np.outer(length, length), reached / length
    np.fill_diagonal(C, 1.0)  # as it is without rounding, which multipliers of 1e9 would show
    expect(np.abs(reached - f).max() <= REPORTED, "the fidelities are not those of T")
    if kind == "threshold":
        d, on = dual["weights"], dual["weights"] > 0
        common = -completed_square(dual["S"], d[on], C[on][:, on], 0 * d[on]) / 2 / d.sum()
    if claim["$record"] == "Threshold":
        room = mean_room(kind, dual, T, B, R, np.full(k, claim["lower"]), reached)
        room = room if claim["upper"] - claim["lower"] <= GAP else 0.0
        expect(np.array_equal(numbers(claim["weights"]), d), "the weights are not those proved")
        expect(off <= EXACT, f"T leaves residual correlations of {off:.1e}")
        expect(room <= MEAN, f"a mean fidelity {room:.1e} larger is possible")
        for name, value in (("lower", reached.min()), ("upper", common)):
            expect(abs(claim[name] - value) <= REPORTED, f"{name} is {value:.12g}")
        return
    rho, name, pairs = numbers(claim["rho_min"]), claim["criterion"], np.triu_indices(k, 1)
    w = numbers(claim["pair_weights"] or np.ones((k, k)))[pairs]
    prices, weights = numbers(claim["prices"]), numbers(claim["weights"])
    expect(np.abs(np.diag(G) - 1).max() <= VARIANCE, "a variance is not one")
    expect(np.abs(numbers(claim["correlation"]) - G).max() <= REPORTED, "other correlations")
    expect((reached >= rho - FLOOR).all() and (rho <= 1).all(), "a floor is missed")
    r, close = np.abs(G[pairs]), REPORTED * max(1.0, claim["objective"])
    objective = {"squared": w @ r**2, "absolute": w @ r, "worst": (w * r).max(initial=0)}[name]
    expect(abs(objective - claim["objective"]) <= close, f"T leaves {objective:.12g}")
    goal, top = claim["goal"], np.inf  # top: of the common floor
    budget, vif = (goal if goal["$record"] == which else None for which in ("Budget", "VifLimit"))
    if vif:
        largest = np.diag(np.linalg.inv(G)).max()
        fits = abs(1 / largest - 1 / vif["largest_vif"]) <= REPORTED
        expect(fits and 1 / largest >= 1 / vif["max_vif"] - REPORTED, "the largest VIF, or limit")
        top = highest_floor(dual, C, vif["max_vif"]) if "vif_H" in dual else top
    limit = budget["budget"] if budget else vif["max_vif"] - 1 if vif else np.inf
    top = common if kind == "threshold" and limit == 0 else top
    expect(vif or objective <= limit + close, "over budget")
    if kind in ("exact", "threshold"):
        lower, room = 0.0, mean_room(kind, dual, T, B, R, rho, reached)
        room = max(room, common - float(d @ rho) / d.sum()) if kind == "threshold" else room
        expect(not prices.any() and np.array_equal(weights, dual["weights"]), "prices or weights")
        best, slack = "exact", max(off / EXACT, room / MEAN)  # 1: as far as the word may be off
    else:
        expect(info["criterion"] == name, "the proof is about another criterion")
        if kind == "tradeoff":
            lower, lam, low = tradeoff_bound(dual, name, C, rho, w), dual["multipliers"], rho < 1
            reach = (limit - lower) / max(2 * lam.sum(), 1e-99)
            top = rho.max() + reach if budget else top
            prices = np.where(low | ~np.isin(prices, (0, np.inf)), prices, 2 * lam)
            fits = np.array_equal(weights, lam) and np.allclose(prices, 2 * lam, REPORTED, REPORTED)
            expect(fits, "prices or weights")
        else:
            mask = np.where(rho >= 1, B != 0, dual["support"] > 0)
            expect(not T[~mask].any() and mask.any(axis=0).all(), "not its support")
            lower = support_bound(dual, info, name, rho, R, mask, given)
        best, slack = "optimal", (objective - max(lower, 0)) / GAP / max(1, objective)
        best, slack = ("exact", 0) if kind == "support" and off <= EXACT else (best, slack)
        slack = max(slack, (budget["rho_upper"] - rho.min()) / GAP) if budget else slack
        slack = (vif["rho_upper"] - rho.min()) / LIMIT if vif else slack  # about the floor
    stated = (budget or vif or {"rho_upper": 1.0})["rho_upper"]
    expect(stated >= min(top, 1.0) - 10 * REPORTED, f"floors up to {top:.12g} are possible")
    word = claim["status"]  # the others say that something is open
    fits = slack <= 1 and word == best if word in ("exact", "optimal") else slack > 0.5
    expect(fits, f"the status that follows is {best if slack <= 1 else 'open'}")
    above, order = claim["lower_bound"] - lower, lower <= objective + 100 * close
    expect(above <= max(-lower, 0) + 10 * close, f"the proof gives only {lower:.12g}")
    expect(above >= -100 * close and order, "the bounds cross, or are others")


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
