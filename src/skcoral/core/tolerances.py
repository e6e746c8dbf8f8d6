"""The tolerances of what is promised, in one place.

Solvers aim at smaller ones, so that their answers pass a check; certificates and reports use these.
"""

UNIT_VARIANCE_TOL = 1e-10  # variances of outputs
FLOOR_TOL = 1e-10  # by how much a fidelity floor may be missed
EXACT_TOL = 1e-8  # largest residual correlation of outputs that are called uncorrelated
MEAN_TOL = 1e-8  # by how much the largest mean fidelity, or the highest floors, may be missed
OPTIMAL_GAP = 1e-7  # residual less its lower bound, relative to max(1, residual): "optimal"
LIMIT_GAP = 1e-6  # by how much the highest floor for a limit on the VIF may be missed
BUDGET_TOL = 1e-9  # by how much a residual budget may be exceeded, relative to max(1, budget)
REPORTED_TOL = 1e-9  # a reported number against its definition, relative to max(1, number)
PRICE_TOL = 1e-6  # prices that are no multipliers themselves, relative to max(1, price)
FACTOR_TOL = 1e-10  # entries of AᵀA against those of a singular R
CORRELATED = 1e-10  # a residual correlation from which on a floor of one has an infinite price
BOUND_TOL = 1e-12  # by how much a bound on the threshold may be overstated
SYMMETRY_TOL = 1e-8  # halves of a given matrix, and its diagonal off one: files have 8 digits
# Eigenvalues up to this times the largest count as zero: those of a matrix that is singular in
# exact arithmetic are computed as 1e-16 to 1e-13, and outputs that amplify smaller ones have no
# correct digits.
SINGULAR_TOL = 1e-12
