"""Differentially private gradient boosting on XGBoost.

``xgboost.train`` with ``tree_method="dp_hist"`` trains privately; this package calibrates it and
reports on it.

``from xgb_dp import xgboost as xgb`` gives the private build of XGBoost, also beside a stock one.

Names are imported when they are asked for: what only reads models (:func:`verify`) loads no
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
    from .evaluation import CalibratedModel, EvaluationReport, Split, evaluate, split
    from .record.model_card import model_card
    from .record.privacy_report import PrivacyReport, PrivacyTotal, privacy_report
    from .record.verify import Verification, verify
    from .selection.best_run import Selection, select
    from .selection.scores import Score
    from .sklearn import DPXGBClassifier, DPXGBRegressor

__all__ = [
    "Budget",
    "BudgetError",
    "CalibratedModel",
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

_ROOMS = {
    "Budget": "budget",
    "CalibratedModel": "evaluation",
    "DPXGBClassifier": "sklearn",
    "DPXGBRegressor": "sklearn",
    "Discovery": "discovery.result",
    "EvaluationReport": "evaluation",
    "PrivacyReport": "record.privacy_report",
    "PrivacyTotal": "record.privacy_report",
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
"""Where each name is that is imported when it is asked for."""
_MODULES = ("accounting", "plotting", "presets", "testing")


def __getattr__(name: str) -> Any:
    if name == "xgboost":
        return private_xgboost()
    if name in _MODULES:
        return import_module(f".{name}", __name__)
    if name in _ROOMS:
        return getattr(import_module(f".{_ROOMS[name]}", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


use_private_build()
warn_if_stock()
