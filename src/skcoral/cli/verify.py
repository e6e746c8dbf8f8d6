"""``coral verify``: judge a certificate file against a table or a matrix."""

from __future__ import annotations

from argparse import Namespace
from typing import Any

from skcoral.certificates import load_certificate
from skcoral.cli import console
from skcoral.cli.loading import check_made, load
from skcoral.cli.run import NOT_CERTIFIED, OK
from skcoral.core.results import Threshold
from skcoral.core.solution import Budget, VifLimit
from skcoral.exceptions import CertificateError
from skcoral.show import sentences

_SAME = "Give --weights, --covariance and --na as in the fit."


def verify(options: Namespace) -> int:
    """Judge every claim of the file, and whether it is about the matrix of the table."""
    check_made(options.certificate, "certificate")
    certificate = load_certificate(options.certificate)
    options.columns = options.columns or list(certificate.sources)
    R = load(options).estimate.R
    try:
        with console.progress("Checking"):
            verdict = certificate.verify(R, rigorous=options.rigorous)
        problems = list(verdict.problems)
    except CertificateError as error:
        problems = [f"{error} {_SAME}"]
    if problems:
        console.say(f"{options.certificate}: NOT true of {options.file}.", "red")
        console.say_each(f"- {problem}" for problem in problems)
        return NOT_CERTIFIED
    console.say(f"{options.certificate}: true of {options.file}.", "green")
    result: Any = certificate.result
    claims = {claim.name for claim in verdict.claims}
    how = "proved in ball arithmetic" if options.rigorous else "re-checked, rounding included"
    status, least, goal = str(result.status), "the threshold", None
    if not isinstance(result, Threshold):
        status, least, goal = sentences.status(result), "the least possible residual", result.goal
    console.say(f"{console.counted(len(claims), 'claim')}, {how}; status: {status}.")
    if not isinstance(goal, VifLimit):  # of whose residual nothing is claimed
        console.say(f"{verdict.lower:.9g} ≤ {least} ≤ {verdict.upper:.9g}")
    if isinstance(goal, Budget | VifLimit):
        within = "limit on the VIF" if isinstance(goal, VifLimit) else "budget"
        if result.criterion == "worst":
            within = "limit on the largest correlation"
        low, top = result.rho_min.min(), goal.rho_upper
        console.say(f"{low:.9g} ≤ the highest common floor within the {within} ≤ {top:.9g}")
    return OK
