"""Recomputes epsilon of a ledger in interval arithmetic, without the accountants.

Proof: docs/proofs/certificate.md
"""

from .certificate import Certificate, NotCertifiedError, certified, certify

__all__ = ["Certificate", "NotCertifiedError", "certified", "certify"]
