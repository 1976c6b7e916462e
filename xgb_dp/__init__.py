"""Differentially private gradient boosting on XGBoost.

``xgboost.train`` with ``tree_method="dp_hist"`` trains privately; this package calibrates it and
reports on it.
"""

from . import accounting, plotting, presets, testing
from .budget import Budget
from .engine.native import is_dp_build, warn_if_stock
from .errors import (
    BudgetError,
    LedgerError,
    NativeLibraryError,
    PrivacyError,
    PrivacyParameterError,
    PrivacyRefusal,
    PrivacyWarning,
    RowDomainError,
)
from .record.card import model_card
from .record.report import PrivacyReport, privacy_report
from .sklearn import DPXGBClassifier, DPXGBRegressor
from .tuning import Score, Selection, select

__all__ = [
    "Budget",
    "BudgetError",
    "DPXGBClassifier",
    "DPXGBRegressor",
    "LedgerError",
    "NativeLibraryError",
    "PrivacyError",
    "PrivacyParameterError",
    "PrivacyRefusal",
    "PrivacyReport",
    "PrivacyWarning",
    "RowDomainError",
    "Score",
    "Selection",
    "accounting",
    "is_dp_build",
    "model_card",
    "plotting",
    "presets",
    "privacy_report",
    "select",
    "testing",
]
__version__ = "0.1.0"

warn_if_stock()
