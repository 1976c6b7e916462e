"""Public preferences with each objective that has a loss of its own: they hold, and are free."""

from typing import Any

import numpy as np
import pytest
import xgboost as xgb

import xgb_dp
from xgb_dp.errors import PrivacyParameterError

from .test_losses import tanh_loss

NAMES = ["age", "dose", "site"]
CASES: dict[str, dict[str, Any]] = {
    **{o: {"objective": o} for o in ("reg:absoluteerror", "reg:pseudohubererror",
                                     "reg:squaredlogerror", "reg:logistic", "count:poisson",
                                     "reg:gamma", "reg:tweedie", "survival:aft")},
    "quantiles": {"objective": "reg:quantileerror", "quantile_alpha": [0.2, 0.8]},
    "own": {"dp_objective": tanh_loss},
}  # fmt: skip


def matrix(case: str, n: int = 500, weight: Any = None) -> xgb.DMatrix:
    """Labels within (0, 1) that rise with age and fall with dose, under much noise."""
    rng = np.random.default_rng(4)
    X = rng.normal(size=(n, 3)).astype(np.float32)
    y = 1 / (1 + np.exp(-0.5 * X[:, 0] + 0.5 * X[:, 1] - rng.normal(size=n)))
    if case == "survival:aft":
        return xgb.DMatrix(X, label_lower_bound=y, label_upper_bound=np.where(y > 0.6, np.inf, y),
                           feature_names=NAMES, weight=weight)  # fmt: skip
    return xgb.DMatrix(X, y, feature_names=NAMES, weight=weight)


def train(
    case: str, weight: Any = None, rounds: int = 12, xgb_model: Any = None, **changes: Any
) -> xgb.Booster:
    params = {"tree_method": "dp_hist", "dp_epsilon": 0.5, "dp_delta": 1e-6, "nthread": 1,
              "dp_target_bounds": (0.01, 1.0), **CASES.get(case, {}), **changes}  # fmt: skip
    return xgb.train(params, matrix(case, weight=weight), rounds, xgb_model=xgb_model)


@pytest.mark.parametrize("case", CASES)
def test_persons_weights_and_continuation(case):
    given: dict[str, Any] = {
        "dp_max_weight": 2.0,
        "dp_privacy_id": np.arange(500) // 4,
        "weight": np.resize([0.5, 2.5, 0.0], 500),
    }
    first = train(case, rounds=4, **given)
    second = train(case, rounds=3, xgb_model=first, **given)
    assert second.num_boosted_rounds() == 7
    after, before = xgb_dp.privacy_report(second), xgb_dp.privacy_report(first)
    assert after.epsilon > before.epsilon
    assert after.ledger["trainings"][1]["public"]["unit"] == "person"
    assert np.isfinite(second.predict(matrix(case))).all()
    with pytest.raises(PrivacyParameterError, match="objective"):
        train("squared", rounds=3, xgb_model=first, **given)
