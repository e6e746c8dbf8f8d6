"""Large systems where the matrix lies: NumPy on the processor against PyTorch or CuPy on a card.

    python benchmarks/device.py --package torch --sizes 1000 2000 4000

prints lines of Markdown: seconds for ρ★ and for the least residual half-way above it, in both
places, their ratio, the gap of the certificate and the difference between the two answers. NumPy is
left out above ``--largest-numpy``, where it takes minutes.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np

from skcoral import decorrelate, threshold
from skcoral.datasets import make_factor_system, make_system


def on_card(library: str, R: np.ndarray) -> Any:
    """``R`` on the graphics card."""
    xp = import_module(library)
    return xp.asarray(R, device="cuda") if library == "torch" else xp.asarray(R)


def timed(question: Callable[..., Any], *arguments: Any) -> tuple[float, Any]:
    """Seconds to the answer, which is in NumPy, so that nothing is left running."""
    start = time.perf_counter()
    answer = question(*arguments)
    return time.perf_counter() - start, answer


def row(name: str, question: Callable[..., Any], R: Any, there: Any, slow: bool, *more: Any) -> str:
    """One line of the table."""
    seconds, found = timed(question, there, *more)
    value = found.value if question is threshold else found.objective
    cells = [name, str(len(R)), "", f"{seconds:.2f}", "", f"{value:.9g}", f"{found.gap:.0e}", ""]
    if slow:
        longer, same = timed(question, R, *more)
        cells[2], cells[4] = f"{longer:.2f}", f"{longer / seconds:.0f}"
        cells[7] = f"{abs(value - (same.value if question is threshold else same.objective)):.0e}"
    return f"| {' | '.join(cells)} |"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--package", choices=["torch", "cupy"], default="torch")
    parser.add_argument("--sizes", type=int, nargs="+", default=[500, 1000, 2000])
    parser.add_argument("--largest-numpy", type=int, default=2000)
    options = parser.parse_args()
    decorrelate(on_card(options.package, make_system(50)), 0.97)  # loads the card's libraries
    print("| question | p | NumPy, s | card, s | ratio | answer | gap | difference |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    for p in options.sizes:
        slow = p <= options.largest_numpy
        for name, make in (("simulated", make_system), ("factors", make_factor_system)):
            R = make(p)
            there = on_card(options.package, R)
            print(row(f"{name}: ρ★", threshold, R, there, slow), flush=True)
            floor = 0.5 * (1 + threshold(there).value)
            print(row(f"{name}: floor {floor:.3f}", decorrelate, R, there, slow, floor), flush=True)


if __name__ == "__main__":
    main()
