"""Privacy budgets: a total shared by several trainings, stored in a file.

Imports ``accounting``, the parameter parsers in ``request``, and warnings from ``record``.
"""

from .budget import Budget
from .entries import Entry

__all__ = ["Budget", "Entry"]
