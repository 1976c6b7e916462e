"""Judging a model on private rows: one noisy table of counts, and all figures from it.

Everything is drawn in ``noisy_sums``.
"""

from .calibration import CalibratedModel
from .compare import ComparisonReport
from .figure import Figure
from .figures import TwoClasses
from .parting import Split, split
from .regression import Errors
from .report import EvaluationReport
from .run import evaluate
from .several import SeveralClasses
from .values import Values

__all__ = [
    "CalibratedModel",
    "ComparisonReport",
    "Errors",
    "EvaluationReport",
    "Figure",
    "SeveralClasses",
    "Split",
    "TwoClasses",
    "Values",
    "evaluate",
    "split",
]
