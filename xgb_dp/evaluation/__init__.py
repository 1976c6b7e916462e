"""Judging a model on private rows: one noisy table of counts, and all figures from it.

Imports ``accounting``, ``engine``, ``request``, ``data``, ``record`` and ``budget``.
"""

from .figures import Figure, TwoClasses
from .parting import Split, split
from .report import EvaluationReport
from .run import evaluate

__all__ = ["EvaluationReport", "Figure", "Split", "TwoClasses", "evaluate", "split"]
