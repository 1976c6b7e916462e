"""Populations of real rows for the coverage of intervals: what did not train a private model."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import xgboost as xgb

from xgb_dp.evaluation.rows import read_evaluated_model

from . import datasets, objectives
from .datasets import Dataset

Floats = npt.NDArray[np.float64]

DELTA = 1e-6
MOST = 40_000  # rows that train the model
TASKS = {
    "California": datasets.PRICES,
    "House": datasets.HOUSE_PRICES,
    "Abalone": datasets.ABALONE,
    "California, quantiles": replace(
        datasets.PRICES, objective="reg:quantileerror", quantiles=datasets.LEVELS
    ),
    "Claims": datasets.CLAIMS,
    "Amounts above 0": datasets.SEVERITIES,
    "Survival": datasets.SURVIVAL,
}


def held_out(data: Dataset) -> tuple[Any, Floats, Floats]:
    """A private model at epsilon = 1, and predictions and labels of the rows that it did not read.

    Labels of times are both ends.
    """
    rows, categories = objectives.loaded(data)
    mixed = np.random.default_rng(0).permutation(len(rows.y))
    half = min(len(mixed) // 2, MOST)
    train, rest = rows[mixed[:half]], rows[mixed[half:]]
    params = objectives.shared(data) | {
        "tree_method": "dp_hist",
        "dp_epsilon": 1.0,
        "dp_delta": DELTA,
        "dp_target_bounds": data.bounds,
        "nthread": 1,
    }
    if categories:
        params["dp_categories"] = categories
    if data.exposure:
        params |= {"dp_base_margin": True, "dp_exposure_bounds": (0.001, 1.0)}
    model = read_evaluated_model(xgb.train(params, train.matrix(data, 1)))
    predictions = model.booster.predict(rest.matrix(data, 1)).astype(np.float64)
    labels = rest.y.astype(np.float64)
    if data.event:
        labels = np.stack([labels, np.where(rest.seen, labels, np.inf)], axis=1)
    return model, predictions, labels
