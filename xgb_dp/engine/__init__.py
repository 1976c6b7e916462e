"""The private build of libxgboost: loading it, saved models, other workers, and the noise of tests.

Imports nothing of this package but its errors.
"""
