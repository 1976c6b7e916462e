"""A first private look at a table: what its columns may contain, as a schema, for a stated cost.

Imports ``budget``, ``data``, ``calibrate`` and what is below them.
"""

from .result import Discovery, FoundColumn
from .run import discover

__all__ = ["Discovery", "FoundColumn", "discover"]
