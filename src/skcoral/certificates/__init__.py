"""Certificates: both sides of every claim, computed again from R, T and the dual point alone."""

from skcoral.certificates.floating import Check, check
from skcoral.certificates.rigorous import prove

__all__ = ["Check", "check", "prove"]
