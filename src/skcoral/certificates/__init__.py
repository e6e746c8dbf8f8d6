"""Certificates: every claim of a result, computed again from R, T and the dual point alone."""

from skcoral.certificates.checking import check, prove
from skcoral.certificates.ledger import Check, Claim
from skcoral.certificates.settling import rounding_matters, settle

__all__ = ["Check", "Claim", "check", "prove", "rounding_matters", "settle"]
