"""
Proving an answer without the package
=====================================

An optimiser says "this is the best". A certificate lets you check that without trusting the
optimiser, or this package: a few numbers that, put into an inequality, leave no room for anything
better. This page saves a certificate, checks it in a few lines of NumPy, and then runs the complete
verifier, one file that imports NumPy and nothing of ours.
"""

# %%
# The sender
# ----------
# How much of 13 wine measurements can be kept if no correlation is to remain? The answer and its
# proof go into a JSON file.

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from skcoral import decorrelate, threshold
from skcoral.certificates import save_certificate
from skcoral.datasets import load_wine

R = load_wine().to_frame().corr()
folder = Path(tempfile.mkdtemp())
path = folder / "threshold.json"
save_certificate(threshold(R), R, path)
print(f"{path.name}: {path.stat().st_size / 1024:.0f} KiB")

# %%
# The receiver, with NumPy alone
# ------------------------------
# The claim has two sides. *At least*: the transformation T in the file decorrelates exactly, and
# every output keeps this much of its variable. That is a matrix product.

file = json.loads(path.read_text("utf-8"))
content, claim = file["content"], file["content"]["result"]
C, T = np.array(content["R"]["$array"]), np.array(claim["T"]["$array"])
assert np.abs(C - R.to_numpy()).max() < 1e-12  # it is about our matrix
assert np.abs(T.T @ C @ T - np.eye(len(C))).max() < 1e-12  # uncorrelated, unit variances
at_least = np.diag(C @ T).min()

# %%
# *At most*: for any weights λ ≥ 0 and any positive definite S, every exact decorrelator has an
# output with a fidelity of at most
#
# .. math:: \frac{\operatorname{tr}(S^{-1} D R D) + \operatorname{tr} S}{2 \sum_j \lambda_j},
#           \qquad D = \operatorname{diag}(\lambda).
#
# The file brings a good pair (λ, S). How it was found does not matter: the inequality holds for
# any.

arrays = {name: np.array(a["$array"]) for name, a in claim["certificate"]["arrays"].items()}
weights, S = arrays["weights"], arrays["S"]
on = weights > 0
D = np.diag(weights[on])
part = C[np.ix_(on, on)]
assert (weights >= 0).all()
assert np.linalg.eigvalsh(S).min() > 0
at_most = (np.trace(np.linalg.solve(S, D @ part @ D)) + np.trace(S)) / (2 * weights.sum())
print(f"at least {at_least:.12f}\nat most  {at_most:.12f}")
assert abs(at_most - at_least) < 1e-9

# %%
# In a picture. Blue: the weakest fidelity of 20,000 random exact decorrelators. Orange: the bounds
# that 20,000 random weights prove. No decorrelator can be right of any bound; the two numbers of
# the certificate are where both sides meet. (Random search does not come near: that is why the
# answer needs a proof, not a larger number of starts.)

rng = np.random.default_rng(0)
root = np.linalg.cholesky(C)
q = np.linalg.qr(rng.normal(size=(20_000, 13, 13)))[0]
polar = np.linalg.svd(root)
nearest = polar[2].T @ polar[0].T  # turns the Cholesky root into the symmetric one
mixed = nearest + 0.25 * q  # random turns of ZCA-cor, which is a good start
u, _, vt = np.linalg.svd(mixed)
found = np.einsum("ij,njk->nik", root, u @ vt)
weakest = np.diagonal(found, axis1=1, axis2=2).min(axis=1)
lam = rng.dirichlet(np.ones(13), size=20_000)
scaled = lam[:, :, None] * C * lam[:, None, :]
bounds = np.sqrt(np.clip(np.linalg.eigvalsh(scaled), 0, None)).sum(axis=1)
print(f"best of the random decorrelators {weakest.max():.4f}, best random bound {bounds.min():.4f}")
assert weakest.max() < at_least
assert bounds.min() > at_most

figure, ax = plt.subplots(figsize=(6.4, 4.2), layout="constrained")
bins = np.linspace(min(weakest.min(), 0.5), max(bounds.max(), 0.95), 120)
ax.hist(weakest, bins, color="#0072B2", alpha=0.85, label="reached by random decorrelators")
ax.hist(bounds, bins, color="#D55E00", alpha=0.85, label="not exceeded: bounds from random weights")
ax.axvline(at_least, color="#1f2933", linewidth=2)
ax.annotate(
    f"both sides of\nthe certificate\n{at_least:.6f}", (at_least, 0.62),
    xycoords=("data", "axes fraction"), xytext=(-6, 0), textcoords="offset points", ha="right",
)  # fmt: skip
ax.set_xlabel("weakest fidelity of an exact decorrelator")
ax.set_yticks([])
ax.legend(frameon=False, loc="upper left", fontsize=9)
ax.margins(y=0.3)
ax.spines[["top", "right", "left"]].set_visible(False)

# %%
# With a floor
# ------------
# Above ρ★ some correlation has to stay. For any λ ≥ 0 and positive definite H, no transformation
# with fidelities of at least ρ has a sum of squared correlations below
#
# .. math:: 2 \rho^\top \lambda - \operatorname{tr} H
#           - \tfrac12 \lVert \operatorname{off} H \rVert^2 - \operatorname{tr}(D R D H^{-1}).

answer = decorrelate(R, 0.9)
lam, H = answer.certificate.arrays["multipliers"], answer.certificate.arrays["H"]
D = np.diag(lam)
off = H - np.diag(np.diag(H))
bound = 2 * 0.9 * lam.sum() - np.trace(H) - (off**2).sum() / 2
bound -= np.trace(np.linalg.solve(H, D @ C @ D))
G = answer.T.T @ C @ answer.T
reached = ((G - np.diag(np.diag(G))) ** 2).sum() / 2
print(f"reached {reached:.12f}\nbound   {bound:.12f}")
assert np.diag(C @ answer.T).min() > 0.9 - 1e-10
assert np.linalg.eigvalsh(H).min() > 0
assert lam.min() >= 0
assert abs(reached - bound) < 1e-9

# %%
# The complete verifier
# ---------------------
# ``examples/verify_certificate.py`` does this for every kind of result, in NumPy alone, to be read
# before it is run. A file that claims more than it proves is refused.

places = ("..", "examples", ".")  # from the gallery, from the repository, or beside this page
VERIFIER = next(path for p in places if (path := Path(p, "verify_certificate.py")).exists())
np.save(folder / "matrix.npy", R.to_numpy())


def verify(name):
    command = [sys.executable, str(VERIFIER), folder / name, folder / "matrix.npy"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    print(f"{name}, exit status {done.returncode}: {done.stdout.strip()}")
    return done.returncode


assert verify("threshold.json") == 0
claim["lower"] += 1e-6
(folder / "altered.json").write_text(json.dumps(file), "utf-8")
assert verify("altered.json") == 1
plt.show()

# %%
# The command ``coral verify wine.csv threshold.json`` does the same with the rows instead of the
# matrix, and ``--rigorous`` in ball arithmetic, where rounding is part of the proof. In the
# guide: :doc:`certificates and how to audit them </guide/certificates>`.
