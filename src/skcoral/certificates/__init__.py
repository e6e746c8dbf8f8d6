"""Certificates: every claim of a result, computed again from R, T and the dual point alone."""

from skcoral.certificates.checking import check, prove
from skcoral.certificates.ledger import Check, Claim

__all__ = ["Check", "Claim", "check", "prove"]
