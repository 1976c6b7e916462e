"""Attacks that outsiders know, on stock XGBoost and on private training.

``python -m experiments.attacks`` runs them. docs/audit.md says what they find,
and experiments/pages/audits.md has the figures.
"""
