"""Public preferences with each objective that has a loss of its own: they hold, and are free."""

import math
from typing import Any

import numpy as np
import pytest
import xgboost as xgb

import xgb_dp
from xgb_dp.errors import PrivacyParameterError

from ..models import events, trees
from .test_losses import tanh_loss

NAMES = ["age", "dose", "site"]
CASES: dict[str, dict[str, Any]] = {
    **{o: {"objective": o} for o in ("reg:absoluteerror", "reg:pseudohubererror",
                                     "reg:squaredlogerror", "reg:logistic", "count:poisson",
                                     "reg:gamma", "reg:tweedie", "survival:aft")},
    "quantiles": {"objective": "reg:quantileerror", "quantile_alpha": [0.2, 0.8]},
    "own": {"dp_objective": tanh_loss},
}  # fmt: skip
KNOWN = {"monotone_constraints": {"age": 1, "dose": -1},
         "interaction_constraints": [["age", "dose"], ["site"]]}  # fmt: skip


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
def test_constraints_hold_and_are_free(case):
    """At an epsilon at which the noise alone would break them."""
    model, free = train(case, **KNOWN), train(case)
    for column, direction in ((0, 1), (1, -1)):
        for at in (-1.0, 1.0):
            grid = np.full((80, 3), at, dtype=np.float32)
            grid[:, column] = np.linspace(-3, 3, 80)
            d = xgb.DMatrix(grid, feature_names=NAMES)
            margins = model.predict(d, output_margin=True).reshape(80, -1)
            assert (direction * np.diff(margins, axis=0) >= -1e-6).all()
    together = [set(np.array(t["split_indices"])[np.array(t["left_children"]) != -1].tolist())
                for t in trees(model)]  # fmt: skip
    assert all(columns <= {0, 1} or columns <= {2} for columns in together)
    assert events(model) == events(free)


@pytest.mark.filterwarnings("ignore:.*NOT private")
@pytest.mark.parametrize("case", CASES)
def test_heavier_rows_count_more(case):
    """Rows with large labels, of one half of a column, against the others."""
    d = matrix(case)
    times = case == "survival:aft"
    y = d.get_float_info("label_lower_bound") if times else d.get_label()
    means = []
    for heavy in (y > np.median(y), y <= np.median(y)):
        weight = np.where(heavy, 1.0, 0.05)
        model = train(case, weight=weight, dp_epsilon=math.inf, dp_mean_correction=False)
        means.append(model.predict(matrix(case)).mean())
    assert means[0] > means[1] + 0.03


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
