"""Exact integers read off the C++: sums of leaves of trainings without noise."""

import json
from typing import Any

import numpy as np
import numpy.typing as npt
import xgboost as xgb

from tests.reference.comparison import BINARY, MULTICLASS, SQUARED, make_plan
from tests.reference.trainer import RowBound as Bound
from xgb_dp.testing import claim_plan

from ..models import trees
from .strategies import text_of

IN_THE_CLEAR = {"unit": "row", "plan_id": "", "masking": {"workers": 0, "colluders": 0}}
GRID = {"grid_bits": 10, "rounds": 1, "depth": 1}
NO_CLIP = {"sigma2": 0, "max_delta_step": "0.0", "lambda": "1.0", "shrinkage": False}


def past(objective: str, left: float, right: float) -> bytearray:
    """A saved model of one round whose leaves are given: it puts rows at extreme margins."""
    plan = make_plan(objective, True, [{"kind": "cuts", "cuts": []}], **GRID)
    d = xgb.DMatrix(np.zeros((1, 1)), np.zeros(1))
    model = json.loads(xgb_train(plan, d).save_raw("json"))
    for k, tree in enumerate(model["learner"]["gradient_booster"]["model"]["trees"]):
        # one class each way, so that softmax becomes extreme too
        tree["split_conditions"][1:] = [left, right] if k % 2 == 0 else [right, left]
    return bytearray(json.dumps(model).encode())


def xgb_train(plan: dict[str, Any], d: xgb.DMatrix, start: bytearray | None = None) -> xgb.Booster:
    """One round of a hand-made plan, on top of an earlier model."""
    classes = {"num_class": plan["num_class"]} if plan["num_class"] > 1 else {"base_score": 0.5}
    params = {
        "tree_method": "dp_hist",
        "objective": plan["objective"],
        "dp_plan": (text := text_of(plan)),
        "nthread": 1,
        "num_parallel_tree": plan["parallel_trees"],
        **({} if start else classes),
    }
    if plan["num_class"] > 1 and not start:
        params["base_score"] = [0.0] * plan["num_class"]
    if plan["objective"] in BINARY:
        params["scale_pos_weight"] = plan["row_bound"]["positive_weight"]
    booster = xgb.Booster(params, [d], model_file=start)
    claim_plan(booster, text, d)
    booster.update(d, 0)
    return booster


def cpp_leaf_sums(plan: dict[str, Any], d: xgb.DMatrix, start: bytearray) -> npt.NDArray[np.int64]:
    """Exact integers (G, H) of all leaves of the last round's trees, read off the statistics."""
    bound, lam = Bound.of(plan), float(plan["leaf"]["lambda"])
    out = []
    for tree in trees(xgb_train(plan, d, start))[-plan["num_class"] :]:
        for node in np.flatnonzero(np.array(tree["left_children"]) == -1):
            h, w = tree["sum_hessian"][node], tree["base_weights"][node] / bound.scale
            out += [-w * (h + lam) / bound.g_unit, h / bound.h_unit]
    assert np.abs(out - np.rint(out)).max() < 0.25  # statistics are 32-bit floats
    return np.rint(out).astype(np.int64)


PAST = {
    (o, m): past(o, *m)
    for o in (*BINARY, SQUARED, *MULTICLASS)
    for m in ((0.0, 0.0), (30.0, -100.0), (1e30, -1e30))
}
