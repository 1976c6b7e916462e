"""What tests read off a trained model."""

import json
import math
from decimal import Decimal
from typing import Any

import xgboost as xgb

import xgb_dp


def learner(model: xgb.Booster) -> Any:
    return json.loads(model.save_raw("json"))["learner"]


def trees(model: xgb.Booster) -> list[dict[str, Any]]:
    """As XGBoost saves them; `tests.reference.comparison.trees_of` has them as the oracle does."""
    return list(learner(model)["gradient_booster"]["model"]["trees"])


def starts(model: xgb.Booster) -> list[float]:
    """The intercept of each output."""
    config = json.loads(model.save_config())["learner"]["learner_model_param"]
    return [float(v) for v in config["base_score"].strip("[]").split(",")]


def training(model: Any) -> dict[str, Any]:
    """The ledger's record of the only training of a booster, or of an estimator."""
    [record] = xgb_dp.privacy_report(model).ledger["trainings"]
    return dict(record)


def events(model: Any) -> list[dict[str, Any]]:
    """Those of the only training."""
    return list(training(model)["events"])


def event(model: Any, release: str) -> dict[str, Any]:
    """The only event of a release."""
    [single] = [e for e in events(model) if e["release"] == release]
    return single


def as_xgboost_writes(value: Any) -> str:
    """A model, or a part of one, in the form of XGBoost's JSON."""
    if isinstance(value, dict):
        members = (
            f"{as_xgboost_writes(k)}:{as_xgboost_writes(v)}" for k, v in sorted(value.items())
        )
        return "{" + ",".join(members) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(as_xgboost_writes, value)) + "]"
    if isinstance(value, float) and math.isfinite(value):
        sign, digits, exponent = Decimal(repr(value)).normalize().as_tuple()
        first, *rest = map(str, digits)
        point = "." if rest else ""
        power = int(exponent) + len(digits) - 1
        return f"{'-' * sign}{first}{point}{''.join(rest)}E{power if value else 0}"
    return json.dumps(value, ensure_ascii=False)
