"""Empirical audits: lower bounds on epsilon, with confidence, from what a trainer really puts out.

An audit cannot prove privacy; it can refute a claim. Two-neighbour audits repeat a mechanism or a
training many times on two neighbouring data sets (:func:`audit_scores`,
:func:`audit_neighbours`); a one-run audit looks for many canary rows in a single training
(:func:`audit_one_run`). All take any trainer. ``python -m xgb_dp.audit`` runs some of both on this
library. ``docs/audit.md`` has the method and ``experiments/pages/audits.md`` the results.
"""

from .bounds import (
    ApproximateClaim,
    AuditResult,
    Claim,
    GaussianClaim,
    clopper_pearson,
    epsilon_lower_bound,
    one_run_lower_bound,
    one_run_p_value,
    violates,
)
from .training import PreparedTraining, audit_neighbours, audit_one_run, audit_scores, ratio_scores

__all__ = [
    "ApproximateClaim",
    "AuditResult",
    "Claim",
    "GaussianClaim",
    "PreparedTraining",
    "audit_neighbours",
    "audit_one_run",
    "audit_scores",
    "clopper_pearson",
    "epsilon_lower_bound",
    "one_run_lower_bound",
    "one_run_p_value",
    "ratio_scores",
    "violates",
]
