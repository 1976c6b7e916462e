"""Doors to libxgboost: loading it, opening models, talking to other workers, noise of tests.

Imports nothing of this package but its errors.
"""
