"""Attacks that outsiders know, on stock XGBoost and on private training.

``python -m experiments.attacks`` runs them. docs/audit.md has the results and says how to read
them.
"""
