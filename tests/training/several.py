"""What models of several outputs of a row have in common."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import xgboost as xgb

import xgb_dp

from ..models import starts


def check_choice(model: xgb.Booster, data: xgb.DMatrix, base_score: Any, epsilon: float) -> None:
    """A model of three outputs predicts, starts where it was told, and has spent no more.

    Args:
        model: What was trained.
        data: Rows to predict.
        base_score: The public intercept of all outputs or of each; None for a released one.
        epsilon: What was asked for.
    """
    assert np.isfinite(model.predict(data)).all()
    if base_score is not None:
        assert starts(model) == pytest.approx(list(np.broadcast_to(base_score, 3)))
    assert 0 < xgb_dp.privacy_report(model).epsilon <= epsilon
