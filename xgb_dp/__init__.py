"""Differentially private gradient boosting with XGBoost.

``xgboost.train`` with ``tree_method="dp_hist"`` trains privately; this package calibrates the noise
and reports the privacy cost.

``from xgb_dp import xgboost as xgb`` imports the private build of XGBoost, even if stock XGBoost is
also installed.

Names are imported lazily, so that code that only reads models (:func:`verify`) does not load
libxgboost.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .engine.native import is_dp_build, private_xgboost, use_private_build, warn_if_stock
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

if TYPE_CHECKING:
    from . import accounting, plotting, presets, testing
    from .budget import Budget
    from .discovery.discover import discover
    from .discovery.result import Discovery
    from .domain.coding import Schema
    from .evaluation import EvaluationReport, Split, evaluate, split
    from .record.model_card import model_card
    from .record.privacy_report import PrivacyReport, PrivacyTotal, privacy_report
    from .record.verify import Verification, verify
    from .selection.best_run import Selection, select
    from .selection.scores import Score
    from .sklearn import DPXGBClassifier, DPXGBRegressor

__all__ = [
    "Budget",
    "BudgetError",
    "DPXGBClassifier",
    "DPXGBRegressor",
    "Discovery",
    "EvaluationReport",
    "LedgerError",
    "NativeLibraryError",
    "PrivacyError",
    "PrivacyParameterError",
    "PrivacyRefusal",
    "PrivacyReport",
    "PrivacyTotal",
    "PrivacyWarning",
    "RowDomainError",
    "Schema",
    "Score",
    "Selection",
    "Split",
    "Verification",
    "accounting",
    "discover",
    "evaluate",
    "is_dp_build",
    "model_card",
    "plotting",
    "presets",
    "privacy_report",
    "select",
    "split",
    "testing",
    "verify",
    "xgboost",
]
__version__ = "0.1.0"

_LAZY = {
    "Budget": "budget",
    "DPXGBClassifier": "sklearn",
    "DPXGBRegressor": "sklearn",
    "Discovery": "discovery.result",
    "EvaluationReport": "evaluation",
    "PrivacyReport": "record.privacy_report",
    "PrivacyTotal": "record.privacy_report",
    "Schema": "domain.coding",
    "Score": "selection.scores",
    "Selection": "selection.best_run",
    "Split": "evaluation",
    "Verification": "record.verify",
    "discover": "discovery.discover",
    "evaluate": "evaluation",
    "model_card": "record.model_card",
    "privacy_report": "record.privacy_report",
    "select": "selection.best_run",
    "split": "evaluation",
    "verify": "record.verify",
}
"""Module of each lazily imported name."""
_MODULES = ("accounting", "plotting", "presets", "testing")


def __getattr__(name: str) -> Any:
    if name == "xgboost":
        return private_xgboost()
    if name in _MODULES:
        return import_module(f".{name}", __name__)
    if name in _LAZY:
        return getattr(import_module(f".{_LAZY[name]}", __name__), name)
    raise AttributeError(
        f"module {__name__!r} has no attribute {name!r}. Train with xgboost.train(...), "
        "DPXGBClassifier or DPXGBRegressor; `xgb_dp.__all__` lists all names."
    )


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


use_private_build()
warn_if_stock()
