"""Evaluate models on private rows: release one noisy table of counts, compute all figures from it.

All noise is drawn in ``noisy_sums``.
"""

from ..data.matrices import SplitMatrix, SplitTable
from .classification import SeveralClasses, TwoClasses, TwoModels
from .figures import Figure, Values
from .measure import evaluate
from .regression import DoubleLift, Errors
from .report import EvaluationReport
from .row_split import Split, split

__all__ = [
    "DoubleLift",
    "Errors",
    "EvaluationReport",
    "Figure",
    "SeveralClasses",
    "Split",
    "SplitMatrix",
    "SplitTable",
    "TwoClasses",
    "TwoModels",
    "Values",
    "evaluate",
    "split",
]
