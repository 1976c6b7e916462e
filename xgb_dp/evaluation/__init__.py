"""Judging a model on private rows: one noisy table of counts, and all figures from it.

Everything is drawn in ``noisy_sums``.
"""

from ..data.split_rows import SplitMatrix, SplitTable
from .binary import ComparisonReport
from .calibration import CalibratedModel
from .evaluation_report import EvaluationReport
from .figure import Figure
from .figures import TwoClasses
from .measure import evaluate
from .multiclass import SeveralClasses
from .parting import Split, split
from .regression_errors import Errors
from .values import Values

__all__ = [
    "CalibratedModel",
    "ComparisonReport",
    "Errors",
    "EvaluationReport",
    "Figure",
    "SeveralClasses",
    "Split",
    "SplitMatrix",
    "SplitTable",
    "TwoClasses",
    "Values",
    "evaluate",
    "split",
]
