"""The claims about a limit on the variance inflation factors (VIF) of the outputs."""

from __future__ import annotations

import numpy as np

from skcoral.bounds.arithmetic import Arithmetic
from skcoral.bounds.enclosures import exactly
from skcoral.bounds.exact import floor_room
from skcoral.bounds.vif import least_unique, limited_room
from skcoral.certificates.attained import Attained
from skcoral.certificates.ledger import Ledger
from skcoral.certificates.reading import VIF_PARTS
from skcoral.core.arrays import Array
from skcoral.core.results import Decorrelation
from skcoral.core.solution import VifLimit
from skcoral.core.tolerances import BUDGET_TOL, LIMIT_GAP, REPORTED_TOL


def claim_limit(
    ledger: Ledger,
    result: Decorrelation,
    goal: VifLimit,
    attained: Attained,
    R: Array,
    arithmetic: Arithmetic,
) -> None:
    """Judge a limit on the VIF: that it is kept, and the bound on the common floor within it.

    A VIF is compared by its reciprocal, the share of a variance that the other outputs leave.
    """
    limit, largest, reported = goal.max_vif, goal.largest_vif, goal.rho_upper
    unique = least_unique(attained.correlation, arithmetic)
    ledger.claim(
        "VIF",
        limit >= 1.0 and unique.lower >= 1.0 / limit - BUDGET_TOL,
        f"a VIF of {1.0 / max(float(unique.lower), 1e-300):.9g} exceeds the limit of {limit:.9g}",
    )
    ledger.claim(
        "largest VIF",
        largest >= 1.0 - REPORTED_TOL and (unique - 1.0 / largest).size() <= REPORTED_TOL,
        f"the largest VIF is {1.0 / max(float(unique.upper), 1e-300):.9g}, not {largest:.9g}",
    )
    floor, arrays, room = float(result.rho_min.max()), result.certificate.arrays, exactly(np.inf)
    told = "within a limit there is one common floor, here are several"
    ledger.claim("VIF", result.rho_min.min() == floor, told)
    if set(arrays) >= VIF_PARTS:
        room = limited_room(arrays, limit, attained, R, arithmetic)
    elif limit == 1.0 and result.certificate.is_exact:  # exact decorrelators only
        room = floor_room(arrays, attained, R, arithmetic)
    top = float((room + floor).upper)
    top = top if top < 1.0 else 1.0
    ledger.claim(
        "largest floor",
        reported >= top - REPORTED_TOL,
        f"only floors above {top:.9g} are proved to exceed the limit, not {reported:.9g}",
    )
    ledger.claim(
        "largest floor",
        reported <= max(top, floor) + REPORTED_TOL,
        f"floors above {top:.9g} are proved to exceed the limit, and {reported:.9g} is reported",
        modest=True,
    )
    if result.certificate.is_exact:
        return  # judged as an exact decorrelator
    closed, told = reported - floor, f"the bound on the floor leaves {reported - floor:.1e}"
    if result.status == "optimal":
        ledger.claim("status", closed <= LIMIT_GAP, told)
    else:
        told = f"{told}, so the status is 'optimal'"
        ledger.claim("status", closed > 0.5 * LIMIT_GAP, told, modest=True)
