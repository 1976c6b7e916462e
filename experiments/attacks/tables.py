"""The tables that are attacked: small ones, of which two need no download."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from sklearn import datasets as bundled

from ..datasets import Dataset, load

__all__ = ["TASKS", "Task", "rows_of"]

Floats = npt.NDArray[np.float64]
_MOST = 1_000  # rows


@dataclass(frozen=True)
class Task:
    """A table and what is predicted.

    Attributes:
        name: As the results call it.
        objective: Of XGBoost.
        file: A data set of :mod:`experiments.datasets`; none for one that scikit-learn carries.
    """

    name: str
    objective: str = "binary:logistic"
    file: str = ""

    @property
    def is_regression(self) -> bool:
        """Whether targets are numbers."""
        return self.objective.startswith("reg:")


TASKS = {
    task.name: task
    for task in (
        Task("Diabetes"),
        Task("Breast cancer"),
        Task("HELOC", file="heloc"),
        Task("Diabetes, progression", "reg:squarederror"),
        Task("California", "reg:squarederror", "california_housing"),
    )
}
"""The tables by name."""


def rows_of(task: Task) -> tuple[Floats, Floats]:
    """Columns and targets of at most 1,000 rows."""
    if task.name == "Breast cancer":
        x, y = bundled.load_breast_cancer(return_X_y=True)
    elif not task.file:
        x, y = bundled.load_diabetes(return_X_y=True, scaled=False)
        y = y if task.is_regression else y > np.median(y)
    else:
        frame, y, _ = load(Dataset(task.name, task.file, objective=task.objective))
        some = np.random.default_rng(1).permutation(len(y))[:_MOST]
        x, y = frame.to_numpy(dtype=np.float64)[some], y[some]
    return np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
