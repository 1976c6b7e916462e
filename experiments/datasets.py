"""Real data sets, read from the folder that ``XGB_DP_DATA`` names.

Every file has its features first and ``target`` last; text columns are categories. The domain of a
category is taken from the whole file and declared: it is the public code book of the data set.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pandas as pd


@dataclass(frozen=True)
class Dataset:
    """One learning task.

    Attributes:
        name: Name of the task.
        file: Stem of the Parquet file.
        objective: XGBoost objective.
        threshold: "median" makes a binary task of a regression target, above its median.
        bounds: Public bounds of a regression target.
        drop: Columns to leave out.
        complete_rows: Whether rows with a missing value are left out.
    """

    name: str
    file: str
    objective: str = "binary:logistic"
    threshold: str | None = None
    bounds: tuple[float, float] | None = None
    drop: tuple[str, ...] = field(default_factory=tuple)
    complete_rows: bool = False


BAR = (
    Dataset("Adult", "adult"),
    Dataset("Bank", "bank_full"),
    Dataset("Credit 1", "credit1_gmsc"),
    Dataset("Credit 2", "credit2_default"),
    Dataset("California", "california_housing", threshold="median"),
    Dataset("Electricity", "electricity"),
    Dataset("House 16H", "house_16h_bin"),
    Dataset("Pol", "pol_bin"),
    Dataset("Eye movements", "eye_movements"),
    Dataset("Abalone", "abalone", "reg:squarederror", bounds=(0.0, 30.0)),
)


def folder() -> Path:
    """The data folder.

    Raises:
        FileNotFoundError: If ``XGB_DP_DATA`` is unset or no folder.
    """
    path = os.environ.get("XGB_DP_DATA", "")
    if not path or not Path(path).is_dir():
        raise FileNotFoundError("Set XGB_DP_DATA to the folder of the Parquet files.")
    return Path(path)


def load(data: Dataset) -> tuple[pd.DataFrame, np.ndarray, dict[str, list[str]]]:
    """Features, target and the declared categories of a task."""
    frame = pd.read_parquet(folder() / f"{data.file}.parquet")
    frame = frame.drop(columns=[c for c in ("split", *data.drop) if c in frame])
    if data.complete_rows:
        frame = frame.dropna()
    y = frame.pop("target").to_numpy(dtype=np.float32)
    if data.threshold == "median":
        y = (y > np.median(y)).astype(np.float32)
    categories: dict[str, list[str]] = {}
    for name in frame.columns:
        if not pd.api.types.is_numeric_dtype(frame[name]):
            names = sorted(str(v) for v in frame[name].dropna().unique())
            frame[name] = pd.Categorical(frame[name].astype("object"), categories=names)
            categories[str(name)] = names
        else:
            frame[name] = frame[name].astype(np.float32)
    return frame, y, categories
