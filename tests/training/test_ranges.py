"""Settings at the ends of their ranges: the plan of every training that is allowed holds them."""

from typing import Any

import numpy as np
import pytest
import xgboost as xgb

from xgb_dp.errors import PrivacyParameterError

from ..models import trees
from .test_losses import USUAL, train


def squared(prediction: Any, label: Any, weight: Any) -> tuple[Any, Any]:
    """The squared error."""
    return prediction - label, 1.0


WIDE: list[dict[str, Any]] = [
    *({"objective": o, "dp_target_bounds": b} for o in ("count:poisson", "reg:gamma", "reg:tweedie")
      for b in ((0.0, 1e-15), (0.0, 1e30), (1.0, 1.00001))),
    *({"objective": "count:poisson", "dp_target_bounds": (0.0, 1.0), "base_score": b,
       "dp_base_margin": True} for b in (1e-30, 1e30)),
    *({"objective": "reg:tweedie", "dp_target_bounds": b, "dp_base_margin": True,
       "dp_exposure_bounds": e} for b in ((0.0, 1e-15), (0.0, 1e30))
      for e in ((1e-12, 2e-12), (1e-12, 1e12), (9e11, 1e12))),
    *({"objective": "survival:aft", "dp_target_bounds": b, "aft_loss_distribution_scale": s}
      for b in ((1.1e-30, 1e30), (1.0, 1.00001)) for s in (1e-3, 1.0, 1e3)),
    *({"objective": o, "dp_target_bounds": b, "dp_max_weight": w}
      for o in ("reg:absoluteerror", "reg:squarederror", "reg:pseudohubererror")
      for b in ((0.0, 1e-15), (-1e30, 1e30)) for w in (1e-5, 1e5)),
    *({"objective": "reg:pseudohubererror", "dp_target_bounds": (0.0, 2.0), "huber_slope": v}
      for v in (1.1e-5, 0.9e5)),
    *({"objective": "reg:squaredlogerror", "dp_target_bounds": b}
      for b in ((-0.999999, 1e30), (10.0, 10.2), (-0.999999, -0.99999))),
    *({"objective": "reg:logistic", "base_score": b} for b in (1e-37, 1 - 1e-7)),
    *({"objective": "reg:quantileerror", "dp_target_bounds": (0.0, 1e-15), "quantile_alpha": a}
      for a in (1e-12, [1e-9, 0.5, 1 - 1e-9])),
    *({"dp_objective": squared, "dp_target_bounds": (-b, b), "dp_gradient_bound": c}
      for b in (1e-15, 1e30) for c in (1e-6, 1e6)),
]  # fmt: skip
"""Settings at the ends of what is allowed."""


@pytest.mark.parametrize("given", WIDE, ids=range(len(WIDE)))
def test_what_is_allowed_is_trained(given):
    """Plans hold it, also with what is released before the first tree, and models are numbers."""
    rng = np.random.default_rng(2)
    low, high = given.get("dp_target_bounds", (0.0, 1.0))
    X, y = rng.normal(size=(60, 2)), np.clip(rng.uniform(size=60), low, high)
    for n in (60, 0):
        d = xgb.DMatrix(X[:n], y[:n])
        if given.get("objective") == "survival:aft":
            d = xgb.DMatrix(X[:n], label_lower_bound=y[:n], label_upper_bound=2 * y[:n])
        if "dp_base_margin" in given:
            d.set_base_margin(np.log(given.get("dp_exposure_bounds", (1.0,))[0]) * np.ones(n))
        model = xgb.train({**USUAL, **given}, d, 3)
        assert model.num_boosted_rounds() == 3
        assert np.isfinite(trees(model)[0]["split_conditions"]).all()


@pytest.mark.parametrize("name", ["min_child_weight", "lambda", "alpha", "eta", "huber_slope"])
def test_numbers_below_32_bit_floats(name):
    """XGBoost refuses their texts; for a slope they are no loss of this name."""
    if name == "huber_slope":
        with pytest.raises(PrivacyParameterError, match="between 1e-5 and 1e5"):
            train("pseudo_huber", **{name: 1e-300})
        return
    assert train("absolute", 2, **{name: 1e-300}).num_boosted_rounds() == 2
