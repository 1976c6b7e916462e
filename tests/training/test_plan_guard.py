"""Plans and requests that the C++ side refuses, and bounds that a plan carries."""

import json
import warnings

import numpy as np
import pytest
import scipy.sparse
import xgboost as xgb
from xgboost.core import XGBoostError

import xgb_dp
from tests.mutations import at, places
from tests.reference.plans import base_plan
from tests.stated import describe_plan

from .plans import from_plan, plan_of
from .test_training import PARAMS, REGRESSION


@pytest.mark.parametrize("field", ["leaf", "selection", "row_bound", "features", "rounds", "depth"])
def test_plan_without_a_field(booster, dtrain, field):
    plan = plan_of(booster)
    del plan[field]
    with pytest.raises(XGBoostError, match=field):
        from_plan(plan, dtrain).update(dtrain, 0)


@pytest.mark.parametrize(
    "path, value, named",
    [
        (("version",), 2, "version"),
        (("leaf", "sigma2"), 0, "sigma2"),
        (("leaf", "sigma2"), -1, "sigma2"),
        (("leaf", "sigma2"), 2.5, "sigma2"),
        (("leaf", "eta"), 0.5, "eta"),
        (("leaf", "shrinkage"), "yes", "shrinkage"),
        (("leaf",), [], "object"),
        (("selection", "eps_num"), 0, "eps_num"),
        (("row_bound", "gradient_bound"), "nan", "gradient_bound"),
        (("row_bound", "gradient_bound"), "-1", "gradient_bound"),
        (("row_bound", "mode"), "none", "mode"),
        (("candidates", "levels"), 40, "levels"),
        (("noise_free",), True, "sigma2"),
        (("objective",), "count:poisson", "objective"),
        (("num_class",), 3, "outputs of the loss"),
        (("score",), "gain", "gain"),
        (("split",), "random", None),
        (("sampling_num",), 0, "sampling_num"),
        (("sampling_num",), 2**32 + 1, "sampling_num"),
        (("parallel_trees",), 0, "parallel_trees"),
        (("features_per_tree",), 10**6, "features_per_tree"),
        (("monotone",), [0], "monotone"),
        (("monotone",), "up", "monotone"),
        (("monotone", 0), 2, "monotone"),
        (("interactions",), [0], "interaction"),
        (("interactions",), [[10**6]], "interactions"),
        (("interactions",), {}, "interactions"),
        (("features",), {}, "features"),
        (("features", 0), {"kind": "cuts", "cuts": [1.0, 0.0]}, "strictly increasing"),
        (("features", 0), {"kind": "cuts", "cuts": [0.0, 1e39]}, "finite"),
        (("features", 0), {"kind": "cuts", "cuts": 0.0}, "cuts"),
        (("features", 0), {"kind": "other"}, "kind"),
    ],
    ids=str,
)
def test_plan_that_contradicts_itself(booster, dtrain, path, value, named):
    """Refused where it is read, before the ledger is looked at."""
    plan = plan_of(booster)
    at(plan, path[:-1])[path[-1]] = value
    if path == ("split",):
        plan["split_levels"], plan["no_split"], named = 1, True, "`no_split` requires"
    with pytest.raises(XGBoostError, match=named):
        from_plan(plan, dtrain).save_config()


@pytest.mark.parametrize("weight", [None, 3.0])
def test_another_weight_of_positive_rows(dtrain, booster, weight):
    plan = plan_of(booster)
    plan["row_bound"] |= {"positive_weight": "2.0"}
    given = {} if weight is None else {"scale_pos_weight": weight}
    with pytest.raises(XGBoostError, match="another `scale_pos_weight`"):
        from_plan(plan, dtrain, **given).save_config()


def test_categories_are_not_monotone(dtrain, booster):
    plan = plan_of(booster)
    plan["features"][0] = {"kind": "categorical", "size": 3}
    plan["monotone"][0] = 1
    with pytest.raises(XGBoostError, match="must be 0 for a categorical"):
        from_plan(plan, dtrain).save_config()


@pytest.mark.parametrize("clip", [0.01, 0.5, 2.9, 5.7, 8.0, 32.0, 32.95448535, 100.0, 1e5])
@pytest.mark.parametrize("params", [PARAMS, REGRESSION], ids=["binary", "regression"])
def test_range_never_wraps(clip, params, dtrain):
    """It is that of the clip at least, and fits the denominator of the mechanism."""
    params = {**params, "dp_score": "newton", "dp_score_clip": clip}
    if clip > 1000:
        with pytest.raises(xgb_dp.BudgetError, match="dp_score_clip"):
            xgb.train(params, dtrain, 1)
        return
    booster = xgb.train(params, dtrain, 1)
    described = describe_plan(json.dumps(plan_of(booster)))
    assert 4 * clip * 2 ** plan_of(booster)["grid_bits"] <= described["score_range"] < 2**23


def test_implicit_weights_are_bounded_too():
    """`dp_max_weight` below one shrinks rows of a matrix without weights, whose weight is one."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(300, 2)).astype(np.float32)
    y = rng.integers(0, 3, 300)
    params = {
        **PARAMS,
        "objective": "multi:softprob",
        "num_class": 3,
        "dp_max_weight": 0.25,
        "dp_epsilon": float("inf"),
        "base_score": [0.0, 0.0, 0.0],
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        plain = xgb.train(params, xgb.DMatrix(x, y), 2)
        weighted = xgb.train(params, xgb.DMatrix(x, y, weight=np.full(300, 0.25)), 2)
    np.testing.assert_allclose(
        plain.predict(xgb.DMatrix(x)), weighted.predict(xgb.DMatrix(x)), rtol=1e-3
    )


def test_a_claim_is_for_the_plan_to_the_letter(dtrain, booster):
    """It names the SHA-256 of the plan: another bound, noise or number is not paid for."""
    plan = plan_of(booster)
    claim, changed = from_plan(plan, dtrain).attr("dp_ledger"), 0
    for *inner, last in places(plan):
        node = at(plan, inner)
        value = node[last]
        if value is None or isinstance(value, list | dict) or last == "kind":
            continue
        node[last] = not value if isinstance(value, bool) else value * 2 or 1
        other = from_plan(plan, dtrain)
        other.set_attr(dp_ledger=claim)
        with pytest.raises(XGBoostError):
            other.update(dtrain, 0)
        node[last] = value
        changed += 1
    assert changed > 50
    from_plan(plan, dtrain).update(dtrain, 0)


def test_offered_columns_are_offered_to_rows(dtrain, booster):
    """As many as trees take: the counts of candidates are planned for these, of rows."""
    plan = plan_of(booster)
    for offered, named in (([], "offered"), ([0], "offered")):
        with pytest.raises(XGBoostError, match=named):
            from_plan({**plan, "offered": offered}, dtrain).update(dtrain, 0)
    with pytest.raises(XGBoostError, match="not proved for persons"):
        from_plan({**plan, "offered": [0, 1], "unit": "person"}, dtrain).update(dtrain, 0)


@pytest.mark.parametrize(
    "state",
    [
        {"grid_bits": 20}, {"leaf": {"sigma2": 1 << 20}}, {"scale": "0.0"}, {"scale": 1},
        {"loss": {"name": "logistic"}}, {"offered": [0]}, [],
    ],
)  # fmt: skip
def test_a_state_overrides_no_bound(state, dtrain, booster):
    plan = plan_of(booster)
    other = from_plan(plan, dtrain, dp_state=json.dumps(state))
    with pytest.raises(XGBoostError, match="state"):
        other.update(dtrain, 0)


def test_more_bins_than_are_numbered():
    """Of 2^16 columns with 2^16 categories each: refused before their bins take memory."""
    n = 1 << 16
    plan = base_plan([{"kind": "categorical", "size": n}] * n, id="many", selection={"range": 1})
    X = scipy.sparse.csr_matrix((2, n), dtype=np.float32)
    dtrain = xgb.DMatrix(X, [0, 1], feature_types=["c"] * n, enable_categorical=True)
    with pytest.raises(XGBoostError, match="too many bins"):
        from_plan(plan, dtrain).update(dtrain, 0)
