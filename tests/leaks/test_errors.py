"""Error messages hold no value, row or count."""

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
import xgboost as xgb

from xgb_dp.testing import fixed_noise

from .scan import COMMON, DATA, OBJECTIVE, columns, distinctive, numbers, statistics_in


def bad_rows() -> dict[str, tuple[Callable[[], Any], dict[str, Any]]]:
    """Trainings with one bad row whose value is 8128.1875, in row 41; and their parameters."""
    X, y = (v[:300].copy() for v in DATA["binary"])
    odd = 8128.1875

    def labelled(value: float, **kwargs: Any) -> xgb.DMatrix:
        bad = y.copy()
        bad[41] = value
        return xgb.DMatrix(X, bad, **kwargs)

    def weighted(value: float) -> xgb.DMatrix:
        w = np.ones(300)
        w[41] = value
        return xgb.DMatrix(X, y, weight=w)

    def category(value: float) -> xgb.DMatrix:
        bad = X.copy()
        bad[:, 0] = 0
        bad[41, 0] = value
        return xgb.DMatrix(bad, y, feature_types=["c", "q", "q"], enable_categorical=True)

    def names() -> xgb.DMatrix:
        frame = pd.DataFrame({"a": X[:, 0], "c": pd.Categorical(["mallory", "trent"] * 150)})
        return xgb.DMatrix(frame, y, enable_categorical=True)

    infinite = X.copy()
    infinite[41, 1] = np.inf
    regression = OBJECTIVE["regression"]
    return {
        "label": (lambda: labelled(odd), {}),
        "class": (lambda: labelled(odd), OBJECTIVE["multiclass"]),
        "missing label": (lambda: labelled(np.nan), regression),
        "infinite label": (lambda: labelled(np.inf), regression),
        "weight": (lambda: weighted(-odd), {}),
        "weights without a bound": (lambda: weighted(odd), regression),
        "category": (lambda: category(odd), {"dp_categories": {0: 2}}),
        "large category": (lambda: category(8128.0), {"dp_categories": {0: 2}}),
        "undeclared category": (lambda: category(odd), {}),
        "names": (names, {"dp_categories": {"c": ["alice", "bob"]}}),
        "undeclared names": (names, {}),
        "infinite feature": (lambda: xgb.DMatrix(infinite, y), {}),
        "infinite feature, allowed": (lambda: xgb.DMatrix(-infinite, y, missing=np.inf), {}),
        "base margin": (
            lambda: labelled(0.0, base_margin=np.r_[np.inf, np.full(299, odd)]),
            {"dp_base_margin": True},
        ),
        "undeclared base margin": (lambda: labelled(0.0, base_margin=np.full(300, odd)), {}),
        "number of labels": (lambda: xgb.DMatrix(X, y[:299]), {}),
        "query groups": (lambda: labelled(0.0, qid=np.arange(300) // 2), {}),
        "query groups with weights": (
            lambda: xgb.DMatrix(X, y, qid=np.arange(300) // 2, weight=np.full(150, odd)),
            {},
        ),
    }


# XGBoost itself counts rows and labels when a DMatrix is made, before any training.
BEFORE_TRAINING = "number of labels"


@pytest.mark.parametrize("case", sorted(bad_rows().keys() - {BEFORE_TRAINING}))
def test_errors_say_nothing_exact(case, capfd):
    """Neither the value nor the row of the defect, nor how many rows there are."""
    make, params = bad_rows()[case]
    shown = ""
    try:
        with fixed_noise(1):
            xgb.train(COMMON | OBJECTIVE["binary"] | params, make(), 2)
    except ValueError as error:  # XGBoostError is one
        # The stack trace holds addresses; the head holds the time, a path and the line in it.
        shown = re.sub(r"^\[[\d:]+\]|\S+\.(cc|h|cu):\d+", "", str(error).split("Stack trace")[0])
    captured = capfd.readouterr()
    shown += captured.out + captured.err
    for cell in ("8128", "mallory", "trent"):
        assert cell not in shown
    assert not numbers(shown) & {41.0, 42.0, 150.0, 299.0, 300.0}
    for value in columns(DATA["binary"][0][:300]).values():
        assert not distinctive(value) or not statistics_in(shown, {"": value})
