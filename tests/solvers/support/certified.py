"""Support problems solved and certified, with arguments of the solver."""

from skcoral.certificates.certify import certify
from skcoral.core.problem import Problem
from skcoral.solvers.support import solve_support as solve


def solve_support(R, floors, mask, **options):
    problem = Problem.of(R, criterion=options.get("criterion", "squared"))
    return certify(problem, solve(R, floors, mask, **options))
