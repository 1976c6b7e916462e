"""A total over several trainings: the book, its file, and the gate that every training passes.

Imports ``accounting``, the parameters' readers from ``request``, and from ``record`` when to warn.
"""

from .budget import Budget
from .entry import Entry

__all__ = ["Budget", "Entry"]
