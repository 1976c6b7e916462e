"""Rows in batches, which XGBoost keeps on disk."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import xgboost as xgb


class Batches(xgb.DataIter):
    """Hands over each (features, labels) of `parts`; `folder` is where the pages are kept."""

    def __init__(self, parts: Sequence[tuple[Any, Any]], folder: Path) -> None:
        self.parts, self.at = parts, 0
        super().__init__(cache_prefix=str(folder / "cache"))

    def next(self, input_data: Callable[..., None]) -> bool:
        """Called by XGBoost."""
        if self.at == len(self.parts):
            return False
        X, y = self.parts[self.at]
        input_data(data=X, label=y)
        self.at += 1
        return True

    def reset(self) -> None:
        """Called by XGBoost."""
        self.at = 0
