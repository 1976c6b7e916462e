"""Evaluation of models on private rows: one noisy table of counts, from which all figures follow.

All noise is drawn in ``noisy_sums``.
"""

from ..data.matrices import SplitMatrix, SplitTable
from .classification import ComparisonReport, SeveralClasses, TwoClasses
from .figures import Figure, Values
from .measure import evaluate
from .regression import Errors
from .report import CalibratedModel, EvaluationReport
from .row_split import Split, split

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
