"""The exact regime where the matrix lies: NumPy on the processor against PyTorch or CuPy on a card.

    python benchmarks/device.py --library torch --sizes 1000 2000 4000

prints one line of Markdown per size: seconds for ``threshold`` in both places, their ratio, the gap
of the certificate and the difference between the two answers. NumPy is left out above
``--largest-numpy``, where it takes minutes.
"""

from __future__ import annotations

import argparse
import time
from importlib import import_module
from typing import Any

import numpy as np

from skcoral import threshold
from skcoral.datasets import make_factor_system, make_system


def on_card(library: str, R: np.ndarray) -> Any:
    """``R`` on the graphics card."""
    xp = import_module(library)
    return xp.asarray(R, device="cuda") if library == "torch" else xp.asarray(R)


def timed(R: Any) -> tuple[float, Any]:
    """Seconds that ``threshold`` takes; its result is in NumPy, so nothing is left running."""
    start = time.perf_counter()
    result = threshold(R)
    return time.perf_counter() - start, result


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--library", choices=["torch", "cupy"], default="torch")
    parser.add_argument("--sizes", type=int, nargs="+", default=[500, 1000, 2000])
    parser.add_argument("--largest-numpy", type=int, default=2000)
    options = parser.parse_args()
    timed(on_card(options.library, make_system(50)))  # loads the card's libraries
    print("| system | p | NumPy, s | card, s | ratio | ρ★ | gap | difference |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    for p in options.sizes:
        for name, make in (("simulated", make_system), ("factors", make_factor_system)):
            R = make(p)
            seconds, there = timed(on_card(options.library, R))
            row = [name, str(p), "", f"{seconds:.2f}", "", f"{there.value:.9f}", f"{there.gap:.0e}"]
            if p <= options.largest_numpy:
                slow, here = timed(R)
                row[2], row[4] = f"{slow:.2f}", f"{slow / seconds:.0f}"
                row.append(f"{abs(here.value - there.value):.0e}")
            else:
                row.append("")
            print("|", " | ".join(row), "|", flush=True)


if __name__ == "__main__":
    main()
