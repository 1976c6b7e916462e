"""Weighted rows of persons with each objective that has a loss of its own."""

from typing import Any

import numpy as np
import pytest
import xgboost as xgb

import xgb_dp
from tests.conftest import private
from tests.training.test_losses import tanh_loss
from xgb_dp.errors import PrivacyParameterError

CASES: dict[str, dict[str, Any]] = {
    **{o: {"objective": o} for o in ("reg:absoluteerror", "reg:pseudohubererror",
                                     "reg:squaredlogerror", "reg:logistic", "count:poisson",
                                     "reg:gamma", "reg:tweedie", "survival:aft")},
    "quantiles": {"objective": "reg:quantileerror", "quantile_alpha": [0.2, 0.8]},
    "own": {"dp_objective": tanh_loss},
}  # fmt: skip


def matrix(case: str, n: int = 500) -> xgb.DMatrix:
    """Labels within (0, 1) that rise with the first column and fall with the second."""
    rng = np.random.default_rng(4)
    X, weight = rng.normal(size=(n, 3)), np.resize([0.5, 2.5, 0.0], n)
    y = 1 / (1 + np.exp(-0.5 * X[:, 0] + 0.5 * X[:, 1] - rng.normal(size=n)))
    if case == "survival:aft":
        upper = np.where(y > 0.6, np.inf, y)
        return xgb.DMatrix(X, label_lower_bound=y, label_upper_bound=upper, weight=weight)
    return xgb.DMatrix(X, y, weight=weight)


@pytest.mark.parametrize("case", CASES)
def test_a_model_is_continued_by_its_objective_alone(case):
    def train(rounds: int, start: Any = None, **objective: Any) -> xgb.Booster:
        params = private(
            dp_epsilon=0.5, nthread=1, dp_target_bounds=(0.01, 1.0), dp_max_weight=2.0,
            dp_privacy_id=np.arange(500) // 4, **objective,
        )  # fmt: skip
        return xgb.train(params, matrix(case), rounds, xgb_model=start)

    first = train(4, **CASES[case])
    second = train(3, first, **CASES[case])
    assert second.num_boosted_rounds() == 7
    after, before = xgb_dp.privacy_report(second), xgb_dp.privacy_report(first)
    assert after.epsilon > before.epsilon
    assert after.ledger["trainings"][1]["public"]["unit"] == "person"
    assert np.isfinite(second.predict(matrix(case))).all()
    with pytest.raises(PrivacyParameterError, match="objective"):
        train(3, first)
