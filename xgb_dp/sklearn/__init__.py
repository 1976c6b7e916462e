"""Scikit-learn estimators.

Imports ``selection``, ``budget``, ``training`` and lower layers.
"""

from .estimators import DPXGBClassifier, DPXGBRegressor

__all__ = ["DPXGBClassifier", "DPXGBRegressor"]
