"""Certificates: every claim of a result, computed again from R, T and the dual point alone."""

from skcoral.certificates.checking import check, prove
from skcoral.certificates.files import (
    CertificateFile,
    certificate_text,
    load_certificate,
    parse_certificate,
    save_certificate,
)
from skcoral.certificates.ledger import Check, Claim

__all__ = [
    "CertificateFile",
    "Check",
    "Claim",
    "certificate_text",
    "check",
    "load_certificate",
    "parse_certificate",
    "prove",
    "save_certificate",
]
