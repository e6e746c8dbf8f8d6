"""The lower bounds of answers on a support, for verify_certificate.py: NumPy and nothing else.

Two kinds: the lifted dual of docs/theory/support.md, and the bound of a frame operator P.
"""

import numpy as np

root = np.linalg.cholesky


def support_bound(dual, info, name, rho, R, mask, less_conjugate):
    p, columns = len(R), [np.flatnonzero(mask[:, k]) for k in range(len(R))]
    rho = np.where(mask.sum(axis=0) == 1, 1.0, rho)
    if info["bound"] == "lifted":
        lam, H = dual["multipliers"], dual["H"]
        i, j = np.concatenate(columns), np.repeat(np.arange(p), [len(c) for c in columns])
        half = np.linalg.solve(root(R[np.ix_(i, i)] * H[np.ix_(j, j)]), (R * lam)[i, j])
        value, h = 2 * rho @ lam - np.trace(H) - half @ half, np.abs(H[np.triu_indices(p, 1)])
        return less_conjugate(name, value, h, np.ones(len(h)))
    M = np.linalg.solve(root(R), np.linalg.solve(root(R), dual["P"]).T)
    total = -np.trace(M)
    for k, omega in enumerate(columns):
        K = np.linalg.inv(root(R[np.ix_(omega, omega)]))
        form = K @ (dual["P"] - dual["eta"][k] * np.outer(R[k], R[k]))[np.ix_(omega, omega)] @ K.T
        total += float(np.linalg.eigvalsh(form)[0]) + dual["eta"][k] * rho[k] ** 2
    if info["norm"] == "nuclear":
        return 0.5 * total / max(1.0, float(np.abs(np.linalg.eigvalsh(M)).max()))
    value, pairs = max(total - 0.5 * np.sum(M * M), 0.0), p * (p - 1) / 2 if name == "worst" else 1
    return value if name == "squared" else (value / pairs) ** 0.5
