"""A total over several trainings: the book, its file, and the gate that every training passes.

Imports ``accounting``, and the parameters' readers from ``request``.
"""

from .budget import Budget
from .entry import Entry

__all__ = ["Budget", "Entry"]
