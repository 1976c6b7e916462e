"""Plans of trained models, and models made from a plan without the road of `xgboost.train`."""

import json

import xgboost as xgb

from xgb_dp.engine.native import open_claim
from xgb_dp.mechanisms.column_sums import PRESENT
from xgb_dp.testing import claim_plan

from ..stated import claim_of

PLACES = {"scale": "row_bound", "weight_unit": "row_bound", "alpha": "leaf", "rows": "correction"}


def strings_of(booster: xgb.Booster) -> tuple[str, str]:
    """The plan and the state of a trained model."""
    updater = json.loads(booster.save_config())["learner"]["gradient_booster"]["updater"][0]
    return updater["dp_train_param"]["dp_plan"], updater["dp_train_param"]["dp_state"]


def plan_of(booster: xgb.Booster) -> dict:
    """The plan of a trained model with the values of its state, as one plan."""
    plan, state = map(json.loads, strings_of(booster))
    for name, value in state.items():
        if name in PLACES:
            plan[PLACES[name]][name] = value
        else:
            plan[name] = value
    if "offered" in plan:
        private = [i for i, f in enumerate(plan["features"]) if f["kind"] == "private"]
        private.sort(key=lambda i: i not in plan["offered"])
        for i in private[len(plan["offered"]) :]:
            plan["features"][i] = {"kind": "cuts", "cuts": [PRESENT]}
    return plan


def from_plan(plan: dict, dtrain: xgb.DMatrix, **extra: object) -> xgb.Booster:
    """A booster as `xgboost.train` makes it: with a plan, and a ledger that claims the plan."""
    params = {
        "tree_method": "dp_hist",
        "objective": "binary:logistic",
        "base_score": 0.5,
        "dp_plan": (text := json.dumps(plan)),
        **extra,
    }
    booster = xgb.Booster(params, [dtrain])
    if plan.get("noise_free") is True:
        claim_plan(booster, text, dtrain)
        return booster
    try:
        claim = claim_of(text)
    except (LookupError, TypeError, ValueError):
        claim = {"trainings": []}  # not a plan
    booster.set_attr(dp_ledger=json.dumps(claim))
    open_claim(dtrain, json.dumps(claim))
    return booster
