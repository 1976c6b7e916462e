"""Plans of trained models, and models made from a plan without the road of `xgboost.train`."""

import json

import xgboost as xgb

from xgb_dp.engine.native import open_claim
from xgb_dp.testing import claim_plan

from ..stated import claim_of


def plan_of(booster: xgb.Booster) -> dict:
    updater = json.loads(booster.save_config())["learner"]["gradient_booster"]["updater"][0]
    return json.loads(updater["dp_train_param"]["dp_plan"])


def from_plan(plan: dict, dtrain: xgb.DMatrix, **extra: object) -> xgb.Booster:
    """A booster as `xgboost.train` makes it: with a plan, and a ledger that claims the plan."""
    params = {
        "tree_method": "dp_hist",
        "objective": "binary:logistic",
        "base_score": 0.5,
        "dp_plan": json.dumps(plan),
        **extra,
    }
    booster = xgb.Booster(params, [dtrain])
    if plan.get("noise_free") is True:
        claim_plan(booster, plan, dtrain)
        return booster
    try:
        claim = claim_of(plan)
    except (LookupError, TypeError, ValueError):
        claim = {"trainings": []}  # not a plan
    booster.set_attr(dp_ledger=json.dumps(claim))
    open_claim(dtrain, json.dumps(claim))
    return booster
