"""``coral verify``: judge a certificate file against a table or a matrix."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from skcoral import words
from skcoral.certificates import load_certificate
from skcoral.cli import console
from skcoral.cli.fit import FitOptions, fitted
from skcoral.cli.loading import load
from skcoral.cli.options import TableOptions
from skcoral.cli.run import NOT_CERTIFIED, OK, UsageError
from skcoral.exceptions import CertificateError
from skcoral.results import Decorrelation, Threshold

_SAME = "Give the options of the fit: --covariance, --missing, --shrinkage, --margins, --weights."


def verify(
    options: TableOptions,
    file: Path,
    *,
    margins: str,
    shrinkage: str | None,
    rigorous: bool,
    as_json: bool,
) -> int:
    """Judge every claim of the file, and whether it is about the matrix of the table."""
    certificate = load_certificate(file)
    asked = FitOptions(
        table=replace(options, columns=options.columns or certificate.sources),
        rho_min=("0",),
        margins=margins,
        shrinkage=shrinkage,
    )
    R = _correlations(asked)
    try:
        with console.progress("Checking"):
            verdict = certificate.verify(R, rigorous=rigorous)
        problems, claims = list(verdict.problems), verdict.claims
        lower, upper = verdict.lower, verdict.upper
    except CertificateError as error:
        problems, claims, lower, upper = [f"{error} {_SAME}"], (), float("nan"), float("nan")
    passed = not problems
    result = certificate.result
    what = "threshold" if isinstance(result, Threshold) else "decorrelation"
    limits = getattr(result, "details", {})
    if as_json:
        console.machine(
            {
                "certificate": str(file),
                "file": options.file,
                "what": what,
                "status": result.status,
                "passed": passed,
                "rigorous": rigorous,
                "lower": lower if np.isfinite(lower) else None,
                "upper": upper if np.isfinite(upper) else None,
                "rho_upper": limits.get("rho_upper"),
                "claims": sorted({claim.name for claim in claims}),
                "problems": problems,
            }
        )
        return OK if passed else NOT_CERTIFIED
    how = "proved in ball arithmetic" if rigorous else "re-checked, rounding included"
    if passed:
        console.say(console.bold(f"{file}: true of {options.file}.", "green"))
        kinds = len({claim.name for claim in claims})
        status = words.status(result) if isinstance(result, Decorrelation) else result.status
        console.say(f"{console.counted(kinds, 'claim')}, {how}; status: {status}.")
        least = "the threshold" if what == "threshold" else "the least possible residual"
        console.say(f"{lower:.9g} ≤ {least} ≤ {upper:.9g}")
        if isinstance(result, Decorrelation) and "rho_upper" in limits:
            within = "budget" if "budget" in limits else "limit on the VIF"
            low, high = result.rho_min.min(), limits["rho_upper"]
            console.say(f"{low:.9g} ≤ the highest common floor within the {within} ≤ {high:.9g}")
        return OK
    console.say(console.bold(f"{file}: NOT true of {options.file}.", "red"))
    for problem in problems:
        console.say(f"- {problem}")
    return NOT_CERTIFIED


def _correlations(asked: FitOptions) -> Any:
    loaded = load(asked.table)
    if loaded.matrix is not None:
        if asked.shrinkage is not None or asked.margins != "none":
            raise UsageError(
                "--shrinkage and --margins are about rows, and the file holds a matrix.\n"
                "Give the matrix that the certificate is about, or the table that it came from."
            )
        return loaded.matrix.R
    return fitted(loaded, asked)[0].correlation_
