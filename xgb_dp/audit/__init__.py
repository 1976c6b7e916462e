"""Empirical audits: statistical lower bounds on epsilon from the actual outputs of a trainer.

An audit cannot prove privacy, but it can refute a claim. Two-neighbour audits repeat a mechanism or
a training many times on two neighbouring data sets (:func:`audit_scores`,
:func:`audit_neighbours`). A one-run audit searches for many canary rows in a single training
(:func:`audit_one_run`). Both work with any trainer. ``python -m xgb_dp.audit`` runs a selection of
them on this library. ``docs/audit.md`` describes the method, and ``experiments/pages/audits.md``
the results.
"""

from .bounds import (
    ApproximateClaim,
    AuditResult,
    Claim,
    clopper_pearson,
    epsilon_lower_bound,
    one_run_lower_bound,
    one_run_p_value,
)
from .training import PreparedTraining, audit_neighbours, audit_one_run, audit_scores

__all__ = [
    "ApproximateClaim",
    "AuditResult",
    "Claim",
    "PreparedTraining",
    "audit_neighbours",
    "audit_one_run",
    "audit_scores",
    "clopper_pearson",
    "epsilon_lower_bound",
    "one_run_lower_bound",
    "one_run_p_value",
]
