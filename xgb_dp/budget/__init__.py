"""Budgets: a total over several trainings, its file, and the authorization of every release.

Imports ``accounting``, the readers of parameters in ``request``, and warnings from ``record``.
"""

from .budget import Budget
from .entries import Entry

__all__ = ["Budget", "Entry"]
