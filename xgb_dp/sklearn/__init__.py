"""Estimators in the manner of scikit-learn.

Imports ``selection``, ``budget``, ``training`` and what is below them.
"""

from .estimators import DPXGBClassifier, DPXGBRegressor

__all__ = ["DPXGBClassifier", "DPXGBRegressor"]
