"""``coral verify``: judge a certificate file against a table or a matrix."""

from __future__ import annotations

from argparse import Namespace
from typing import Any

import numpy as np

from skcoral.certificates import load_certificate
from skcoral.cli import console
from skcoral.cli.loading import load
from skcoral.cli.run import NOT_CERTIFIED, OK
from skcoral.core.results import Threshold
from skcoral.core.solution import Budget, Floors
from skcoral.exceptions import CertificateError
from skcoral.show import sentences

_SAME = "Give the options of the fit: --covariance, --weights."


def verify(options: Namespace) -> int:
    """Judge every claim of the file, and whether it is about the matrix of the table."""
    certificate = load_certificate(options.certificate)
    options.columns = options.columns or list(certificate.sources)
    R = load(options).estimate.R
    try:
        with console.progress("Checking"):
            verdict = certificate.verify(R, rigorous=options.rigorous)
        problems, claims = list(verdict.problems), {claim.name for claim in verdict.claims}
        lower, upper = verdict.lower, verdict.upper
    except CertificateError as error:
        problems, claims, lower, upper = [f"{error} {_SAME}"], set(), np.nan, np.nan
    status = NOT_CERTIFIED if problems else OK
    result: Any = certificate.result
    is_threshold = isinstance(result, Threshold)
    goal: Any = Floors() if is_threshold else result.goal
    top = getattr(goal, "rho_upper", None)
    if options.json:
        console.print_json(
            {
                "certificate": str(options.certificate),
                "file": options.file,
                "what": "threshold" if is_threshold else "decorrelation",
                "status": result.status,
                "passed": not problems,
                "rigorous": options.rigorous,
                "lower": lower,
                "upper": upper,
                "rho_upper": top,
                "claims": sorted(claims),
                "problems": problems,
            }
        )
        return status
    if problems:
        console.say(f"{options.certificate}: NOT true of {options.file}.", "red")
        console.say_each(f"- {problem}" for problem in problems)
        return status
    console.say(f"{options.certificate}: true of {options.file}.", "green")
    how = "proved in ball arithmetic" if options.rigorous else "re-checked, rounding included"
    told = result.status if is_threshold else sentences.status(result)
    console.say(f"{console.counted(len(claims), 'claim')}, {how}; status: {told}.")
    least = "the threshold" if is_threshold else "the least possible residual"
    console.say(f"{lower:.9g} ≤ {least} ≤ {upper:.9g}")
    if top is not None:
        within = "budget" if isinstance(goal, Budget) else "limit on the VIF"
        low = result.rho_min.min()
        console.say(f"{low:.9g} ≤ the highest common floor within the {within} ≤ {top:.9g}")
    return status
