"""Parameters, callbacks and updaters with which stock training would leak, in Python and in C++."""

import re
from functools import cache
from typing import Any

import numpy as np
import pytest
import xgboost as xgb
from xgboost.core import XGBoostError

from tests.training.plans import from_plan, plan_of
from tests.training.test_guard import Meddle
from xgb_dp.errors import LedgerError, PrivacyRefusal
from xgb_dp.request.objectives import OBJECTIVES
from xgb_dp.testing import fixed_noise

from ..models import trees
from .scan import COMMON, DATA, KINDS, OBJECTIVE, matrix, small

OTHER_OBJECTIVES = re.findall(r"\S+", """
reg:expectileerror binary:hinge survival:cox rank:ndcg rank:map rank:pairwise
""")  # fmt: skip


@pytest.mark.parametrize("objective", OTHER_OBJECTIVES)
def test_other_objectives(objective):
    """Row-coupling losses, adaptive leaves, position bias: Python and C++ both refuse."""
    d = small()
    with pytest.raises(PrivacyRefusal, match="objective"):
        xgb.train(COMMON | {"objective": objective}, d, 1)
    plan = plan_of(xgb.train(COMMON | OBJECTIVE["binary"], d, 1))
    with pytest.raises(XGBoostError, match="objective"):
        from_plan(plan | {"objective": objective}, d).update(d, 0)
    with pytest.raises(XGBoostError, match="objective"):
        from_plan(plan, d, objective=objective).update(d, 0)


OWN_LOSSES = sorted(name for name, known in OBJECTIVES.items() if known.loss is not None)


@pytest.mark.parametrize("objective", OWN_LOSSES)
def test_objectives_with_losses_of_the_plugins_own(objective):
    """The C++ takes none of them with the gradients of XGBoost, nor with the loss of another."""
    d = small()
    plan = plan_of(xgb.train(COMMON | OBJECTIVE["binary"], d, 1))
    for changes in ({}, {"loss": {"name": "logistic" if objective != "reg:logistic" else "power"}}):
        with pytest.raises(XGBoostError, match=r"objective|not that of"):
            from_plan(plan | {"objective": objective} | changes, d).update(d, 0)
    with pytest.raises(XGBoostError, match="objective"):
        from_plan(plan, d, objective=objective).update(d, 0)


@pytest.mark.parametrize("objective", ["binary:logitraw", "multi:softmax"])
def test_objective_of_another_plan(objective):
    d = small()
    plan = plan_of(xgb.train(COMMON | OBJECTIVE["binary"], d, 1))
    classes = {"num_class": 3} if objective == "multi:softmax" else {}
    with pytest.raises(XGBoostError, match="calibrated for another objective"):
        from_plan(plan, d, objective=objective, **classes).update(d, 0)


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"subsample": 0.5}, "subsample"),
        ({"colsample_bytree": 0.5}, "colsample_bytree"),
        ({"colsample_bylevel": 0.5}, "colsample_bylevel"),
        ({"colsample_bynode": 0.5}, "colsample_bynode"),
        ({"grow_policy": "lossguide"}, "lossguide"),
        ({"max_leaves": 3}, "max_leaves"),
        ({"alpha": 1.0}, "alpha"),
        ({"monotone_constraints": "(1,0,0)"}, "(?i)monotone"),
        ({"interaction_constraints": "[[0,1]]"}, "(?i)interaction"),
        ({"num_parallel_tree": 2}, "num_parallel_tree"),
        ({"multi_strategy": "multi_output_tree"}, "hist tree method"),
        ({"updater": "prune"}, "updater"),
        ({"updater": "refresh", "process_type": "update"}, r"updater|process_type"),
        ({"booster": "dart"}, "gbtree"),
        ({"booster": "gblinear"}, "gbtree"),
    ],
    ids=str,
)
def test_the_cpp_refuses_by_itself(change, named):
    """What Python refuses, the trainer refuses too: parameters can reach it past Python."""
    d = small()
    plan = plan_of(xgb.train(COMMON | OBJECTIVE["binary"], d, 1))
    with pytest.raises(XGBoostError, match=named):
        from_plan(plan, d, **change).update(d, 0)


def test_the_cpp_refuses_other_labels_by_itself():
    """The number of classes and weights of positives that the plan does not know."""
    d = small()
    plan = plan_of(xgb.train(COMMON | OBJECTIVE["binary"], d, 1))
    with pytest.raises(XGBoostError, match="scale_pos_weight"):
        from_plan(plan, d, scale_pos_weight=2).update(d, 0)
    softmax = plan | {"objective": "multi:softprob", "num_class": 3}
    softmax["row_bound"] |= {"mode": "row_weight"}
    with pytest.raises(XGBoostError, match="number of classes"):
        from_plan(softmax, d, objective="multi:softprob", num_class=4).update(d, 0)
    with pytest.raises(XGBoostError, match="scale_pos_weight"):
        from_plan(softmax, d, objective="multi:softprob", num_class=3, scale_pos_weight=2).update(
            d, 0
        )


def test_the_cpp_refuses_matrices_by_itself():
    X, y = (v[:400] for v in DATA["binary"])
    plan = plan_of(xgb.train(COMMON | OBJECTIVE["binary"], small(), 1))
    for d, named in (
        (xgb.QuantileDMatrix(X, y), "QuantileDMatrix"),
        (xgb.DMatrix(X, y, base_margin=np.ones(400)), "base_margin"),
        (xgb.DMatrix(X[:, :2], y), "features"),
        (xgb.DMatrix(X, y, qid=np.arange(400) // 2), "Query groups"),
        (xgb.DMatrix(np.abs(X // 1), y, feature_types=["c", "q", "q"]), "categorical"),
        (xgb.DMatrix(X, y, feature_types=["q", "q", "int"]), None),
    ):
        booster = from_plan(plan, d)
        if named is None:
            booster.update(d, 0)
            continue
        with pytest.raises(XGBoostError, match=named):
            booster.update(d, 0)


@pytest.mark.parametrize(
    "change",
    [
        {"gamma": 1e9},
        {"min_child_weight": 1e9},
        {"sampling_method": "gradient_based"},
        {"max_depth": 1},
        {"refresh_leaf": True},
        {"max_cat_to_onehot": 1},
        {"max_bin": 2},
    ],
    ids=str,
)
def test_stock_thresholds_do_nothing(change):
    """Only the plan counts: no exact sum is compared with a threshold of stock training."""
    d = small()
    with fixed_noise(4):
        plan = plan_of(xgb.train(COMMON | OBJECTIVE["binary"], d, 1))

    def dump(**extra: Any) -> list[str]:
        booster = from_plan(plan, d, nthread=1, verbosity=0, **extra)
        booster.update(d, 0)
        return booster.get_dump(with_stats=True)

    assert dump(**change) == dump()


@cache
def first_trees(kind: str, **changes: Any) -> list[dict[str, Any]]:
    with fixed_noise(6):
        grown = trees(xgb.train(COMMON | OBJECTIVE[kind] | changes, matrix(kind), 2))
    return grown[: len(grown) // 2]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "change",
    [
        {"min_child_weight": 5e4},
        {"max_delta_step": 0.01},
        {"lambda": 900.0},
        {"eta": 0.01},
        {"dp_eta_warmup": 0.1},
    ],
    ids=str,
)
def test_leaf_parameters_act_on_released_values_only(kind, change):
    """They change no split of the first tree, whose gradients they cannot have touched."""

    for one, other in zip(first_trees(kind, **change), first_trees(kind), strict=True):
        inner = [i for i, left in enumerate(one["left_children"]) if left != -1]
        assert one["left_children"] == other["left_children"]
        for field in ("split_indices", "split_conditions", "default_left"):
            assert [one[field][i] for i in inner] == [other[field][i] for i in inner]
        assert one["split_conditions"] != other["split_conditions"]
        if "min_child_weight" in change:  # which is more than the Hessian of all rows
            ends = [np.abs(np.array(t["split_conditions"])[-4:]).max() for t in (one, other)]
            assert ends[0] < 0.5 * ends[1]


def test_gamma_without_no_split_is_refused_and_with_it_is_a_candidate():
    """The tree may only stop where the mechanism chose so: with noise, not by a threshold."""
    params = COMMON | OBJECTIVE["binary"] | {"dp_tree_shape": "per_node"}
    with pytest.raises(PrivacyRefusal, match="dp_no_split"):
        xgb.train(params | {"gamma": 3.0}, small(), 1)
    # Utilities of a few rows, a weak mechanism: where to stop is nearly uniform, not a threshold.
    sizes = set()
    for key in range(12):
        with fixed_noise(key):
            model = xgb.train(params | {"dp_no_split": True, "gamma": 40.0}, small(n=20), 1)
        sizes.add(len(trees(model)[0]["left_children"]))
    assert len(sizes) > 1


@pytest.mark.parametrize("when", [-1, 0], ids=["before", "in the middle"])
@pytest.mark.parametrize(
    "change",
    [
        {"objective": "survival:cox"},
        {"objective": "rank:pairwise"},
        {"objective": "reg:absoluteerror"},
        {"objective": "reg:squarederror", "scale_pos_weight": 50},
        {"num_class": 2},
        {"num_class": 5},
        {"eta": 0.1},
        {"tree_method": "hist"},
        {"booster": "dart"},
        {"booster": "gblinear"},
        {"rate_drop": 0.5},
        {"one_drop": True},
        {"skip_drop": 0.5},
        {"dp_other": 1},
        {"updater": "grow_histmaker"},
        {"process_type": "update"},
        {"subsample": 0.5},
        {"num_parallel_tree": 2},
        {"monotone_constraints": "(1,0,0)"},
        {"dp_epsilon": 100.0},
        {"dp_plan": "{}"},
    ],
    ids=str,
)
def test_callbacks_cannot_change_a_training(change, when):
    kind = "multiclass" if "num_class" in change else "binary"
    X, y = (v[:300] for v in DATA[kind])
    d = xgb.DMatrix(X, np.minimum(y, 1))  # labels that fit any number of classes
    meddle = Meddle(lambda model: model.set_param(change), when)
    with pytest.raises((XGBoostError, LedgerError)):
        xgb.train(COMMON | OBJECTIVE[kind], d, 3, callbacks=[meddle])


@pytest.mark.parametrize("name", ["gblinear", "dart"])
def test_boosters_on_a_private_model(name):
    model = xgb.train(COMMON | OBJECTIVE["binary"], small(), 2)
    with pytest.raises(PrivacyRefusal, match="gbtree"):
        xgb.train({"objective": "binary:logistic", "booster": name}, small(), 1, xgb_model=model)
    model.set_param({"booster": name})
    with pytest.raises(XGBoostError, match="gbtree"):
        model.update(small(), 2)


@pytest.mark.parametrize("updater", ["prune", "refresh", "sync", "grow_colmaker"])
@pytest.mark.parametrize("loaded", [False, True])
def test_updaters_on_a_private_model(updater, loaded):
    """No updater that recomputes exact statistics runs on a model with a ledger."""
    model = xgb.train(COMMON | OBJECTIVE["binary"], small(), 2)
    if loaded:
        model = xgb.Booster(model_file=bytearray(model.save_raw("ubj")))
    model.set_param({"process_type": "update", "updater": updater, "gamma": 1e9})
    with pytest.raises(XGBoostError, match=r"ledger|updater|process_type"):
        model.update(small(), 0)


def test_evaluation_needs_public_sets_and_shows_no_metric_of_the_training_data():
    d, public = small(), xgb.DMatrix(*(v[500:600] for v in DATA["binary"]))
    params = COMMON | OBJECTIVE["binary"]
    for allowed in (False, True):
        with pytest.raises(PrivacyRefusal, match="evals"):
            xgb.train(params | {"dp_public_evals": allowed}, d, 1, evals=[(d, "train")])
    result: dict[str, Any] = {}
    model = xgb.train(
        params | {"dp_public_evals": True},
        d,
        6,
        evals=[(public, "public")],
        evals_result=result,
        early_stopping_rounds=2,
        verbose_eval=False,
    )
    assert set(result) == {"public"}
    assert {"best_iteration", "best_score"} <= set(model.attributes())
