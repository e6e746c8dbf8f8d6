"""Floors that cannot all be raised: the largest mean beside the outputs that bind."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.linalg import block_diag

from skcoral import decorrelate, maximize_fidelity, threshold
from skcoral.certificates import certificate_text, check, parse_certificate, prove
from skcoral.core.problem import Settings
from skcoral.solvers.exact import solve_threshold

from .conftest import failed, verdict, with_arrays

# Three variables bind; four are free but for the floor, and correlated with the first three.
STRONG, WEAK = np.full((3, 3), 0.8), 0.6 ** np.abs(np.subtract.outer(range(4), range(4)))
np.fill_diagonal(STRONG, 1.0)
L = np.linalg.cholesky(block_diag(STRONG, WEAK))
L[3:, :3] += 0.1 * np.random.default_rng(0).normal(size=(4, 3))
L /= np.linalg.norm(L, axis=1, keepdims=True)
R = L @ L.T
np.fill_diagonal(R, 1.0)
ANCHORS = np.eye(7)[:, ::-1] * np.arange(1.0, 8.0)
MADE: dict[str, Any] = {
    "threshold": threshold(R),
    "edge": decorrelate(R),
    "floors": decorrelate(R, np.full(7, threshold(R).lower + 3e-11)),
    "anchors": decorrelate(R, anchors=ANCHORS),
    "budget": maximize_fidelity(R, 0.0),
}
judges = pytest.mark.parametrize("judge", [check, prove])
kinds = pytest.mark.parametrize("kind", list(MADE))


def free(result: Any) -> np.ndarray:
    return np.flatnonzero(result.certificate.arrays["weights"] == 0)


def turned(result: Any, angle: float) -> Any:
    """Two outputs that do not bind, turned in their plane: uncorrelated as before."""
    i, j = free(result)[:2]
    T = result.T.copy()
    T[:, i] = np.cos(angle) * result.T[:, i] - np.sin(angle) * result.T[:, j]
    T[:, j] = np.sin(angle) * result.T[:, i] + np.cos(angle) * result.T[:, j]
    B = np.eye(7) if getattr(result, "anchors", None) is None else result.anchors / np.arange(1, 8)
    changes: dict[str, Any] = {"T": T, "fidelity": np.einsum("ij,ij->j", R @ B, T)}
    if hasattr(result, "correlation"):
        changes["correlation"] = T.T @ R @ T
    return replace(result, **changes)


@judges
@kinds
def test_true_results_pass(judge: Any, kind: str) -> None:
    result = MADE[kind]
    assert len(free(result)) >= 2
    assert not verdict(judge, result, R)
    names = [claim.name for claim in judge(result, R).claims]
    assert "largest mean fidelity" in names
    assert parse_certificate(certificate_text(result, R)).verify(R).passed


@judges
@kinds
def test_a_smaller_mean_beside_what_binds(judge: Any, kind: str) -> None:
    """Uncorrelated and above every floor, but five times the tolerance below the largest mean."""
    result = MADE[kind]

    def loss(angle: float) -> float:
        return float(np.mean(result.fidelity - turned(result, angle).fidelity))

    angle = np.sqrt(5e-8 * 1e-6 / (0.5 * (loss(1e-3) + loss(-1e-3))))
    for size, refused in ((angle, True), (0.3 * angle, False)):
        lie = turned(result, size)
        assert failed(lie, R, judge) == ({"largest mean fidelity"} if refused else set())
    if kind == "threshold":  # nothing is said of the mean while the threshold is open
        assert not failed(replace(turned(result, angle), tol=1e-300), R, judge)


@judges
@kinds
def test_parts_that_prove_nothing(judge: Any, kind: str) -> None:
    result = MADE[kind]
    weights = result.certificate.arrays["mean_weights"]
    S = result.certificate.arrays["mean_S"]
    j, b = free(result)[0], np.flatnonzero(weights == 0)[0]

    def put(k: int, value: float) -> np.ndarray:
        out = weights.copy()
        out[k] = value
        return out

    for arrays, words in (
        ({"mean_weights": None, "mean_S": None}, "nothing is proved"),
        ({"mean_S": None}, "holds no array mean_S"),
        ({"mean_weights": None}, "holds no array mean_weights"),
        ({"mean_weights": put(j, 0.999)}, "below one"),
        ({"mean_weights": put(j, 0.0)}, "mean_S"),
        ({"mean_weights": put(b, 1.0)}, "binds|mean_S"),
        ({"mean_weights": put(j, 2 * weights[j])}, "largest mean"),
        ({"mean_S": -S}, "positive definite"),
        ({"mean_S": 1.01 * S}, "largest mean"),
        ({"mean_S": S[:-1, :-1]}, "mean_S"),
    ):
        problems = verdict(judge, with_arrays(result, **arrays), R)
        assert any(word in problems for word in words.split("|")), (arrays, problems)


def test_a_binding_output_is_not_counted_twice() -> None:
    """With a matrix of the size that fits, so that only the meaning is wrong."""
    result = MADE["edge"]
    arrays = result.certificate.arrays
    b = int(np.flatnonzero(arrays["weights"] > 0)[0])
    weights, at = arrays["mean_weights"].copy(), int(np.sum(free(result) < b))
    weights[b] = 1.0
    S = np.insert(np.insert(arrays["mean_S"], at, 0.0, axis=0), at, 0.0, axis=1)
    S[at, at] = 1.0
    for judge in (check, prove):
        assert "binds" in verdict(judge, with_arrays(result, mean_weights=weights, mean_S=S), R)


def test_a_threshold_that_is_open_says_nothing_of_the_mean() -> None:
    open_ended = solve_threshold(R, Settings(tuple(map(str, range(len(R)))), max_iter=1))
    assert open_ended.status != "optimal"
    for judge in (check, prove):
        assert not verdict(judge, open_ended, R)
        assert not verdict(judge, with_arrays(open_ended, mean_weights=None, mean_S=None), R)
