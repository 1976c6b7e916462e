"""What a ledger that is written by hand says was enforced."""

from typing import Any

from xgb_dp.accounting.enforced import Enforced
from xgb_dp.accounting.sensitivity import RowBound

UNIT2 = 1 << 40
"""Squared sensitivity of leaves, and of histograms of one feature."""


def enforced(**changes: Any) -> list[dict[str, Any]]:
    """Rows whose gradients and Hessians together have the norm 2^20, in two sums of one leaf."""
    figures: dict[str, Any] = {
        "unit": "row",
        "bound": RowBound("prediction", 1.0, 1.0),
        "grid_bits": 20,
        "trees": 1,
        "depth": 3,
        "split": "exponential",
        "columns": 1,
        "features_per_tree": 1,
        "score": "l1",
        "score_clip": 1.0,
        "score_range": 2 << 20,
        "joint": False,
        "leaf_noise": "gaussian",
        "spread": False,
        "cells": 1,
        "candidates": None,
        "label_range": None,
        "labels": None,
        "by_column": None,
        "corrects": False,
    }
    return [Enforced(**(figures | changes)).to_json()]
