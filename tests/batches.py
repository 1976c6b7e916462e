"""Rows in batches, which XGBoost keeps on disk."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import xgboost as xgb


class Batches(xgb.DataIter):
    """Hands over each (features, labels) of `parts`, or whatever else an argument of the matrix is.

    Pages are kept in `folder`, or where the process is.
    """

    def __init__(self, parts: Sequence[Any], folder: Path | None = None) -> None:
        self.parts, self.at = parts, 0
        super().__init__(cache_prefix=None if folder is None else str(folder / "cache"))

    def next(self, input_data: Callable[..., None]) -> bool:
        """Called by XGBoost."""
        if self.at == len(self.parts):
            return False
        part = self.parts[self.at]
        input_data(**(part if isinstance(part, dict) else {"data": part[0], "label": part[1]}))
        self.at += 1
        return True

    def reset(self) -> None:
        """Called by XGBoost."""
        self.at = 0
