"""The parameter table, the private defaults and the plan that follows from them."""

import json
import math

import numpy as np
import pytest

from xgb_dp import planning
from xgb_dp.calibrate import Calibration
from xgb_dp.errors import PrivacyParameterError, PrivacyRefusal
from xgb_dp.mechanisms.mechanism import Noise
from xgb_dp.parameters import parameter, parse
from xgb_dp.request import names
from xgb_dp.request import params as table
from xgb_dp.request import schema as columns
from xgb_dp.request.schema import Schema
from xgb_dp.training import hook
from xgb_dp.training.start import base_score_from_sums

NOISE = Calibration(
    18,
    noise={
        "splits": Noise(eps_num=5),
        "leaves": Noise(sigma2=1 << 22),
        "candidates": Noise(sigma2=1 << 21, shift=7),
        "intercept": Noise(sigma2=1 << 24, shift=10),
        "correction": Noise(sigma2=1 << 30),
    },
)


def schema(n=4, **kwargs):
    given = {
        "names": [f"f{i}" for i in range(n)],
        "named": True,
        "categorical": frozenset(),
        "dictionaries": {},
    }
    return Schema(**(given | kwargs))


def resolve(p, rounds=10, continues=False, **kwargs):
    request = names.Request.parse(p, rounds, continues=continues)
    return hook.checked(request, schema(**kwargs), None)


def built_of(s, key=None):
    return planning.with_noise(planning.draft(s), NOISE, key)


def test_table_is_complete():
    for name, p in table.PARAMETERS.items():
        assert p.meaning, name
        assert p.domain and "object at" not in p.domain and "function" not in p.domain, name
        assert p.unset and "function" not in p.unset, name
        assert p.effect in (parameter.PUBLIC, parameter.SPENDS, parameter.FREE)
    assert not set(names.REFUSED) & set(table.PARAMETERS)
    assert not set(names.ALIASES) & set(table.PARAMETERS)


C = 0.3 * math.sqrt(25.0 / 5.0)  # ten rounds with a step of 0.5
ROW_BOUNDS = {
    "binary": {"mode": "prediction", "gradient_bound": 0.5, "hessian_weight": 0.25,
               "max_weight": 0.0},
    "multiclass": {"mode": "prediction", "gradient_bound": 1.0, "hessian_weight": 0.25,
                   "max_weight": 1.0},
    "regression": {"mode": "clip", "gradient_bound": C, "hessian_weight": (0.25 * C) ** 2,
                   "hessian_bound": 1.0},
}  # fmt: skip


@pytest.mark.parametrize("kind", ROW_BOUNDS)
def test_private_defaults(params, kind):
    s = resolve(params(kind, max_depth=None, dp_epsilon=0.5))
    usual = {"max_depth": 4, "eta": 0.5, "lambda": 1.0, "max_delta_step": 2.0, "max_bin": 64}
    usual |= {"min_child_weight": 0.0, "dp_score": "l1", "dp_tree_shape": "alternate"}
    assert {name: s[name] for name in usual} == usual
    assert (s.prior_max, s.scale) == ((0.25, 3.0) if kind == "regression" else (1.0, 1.0))
    for name, value in ROW_BOUNDS[kind].items():
        assert getattr(s.row_bound, name) == pytest.approx(value), name


def test_aliases_and_lists_of_pairs(params):
    metrics = [("eval_metric", "auc"), ("eval_metric", "error")]
    p = [*params().items(), ("learning_rate", 0.1), *metrics]
    flat = names.flatten(p)
    assert flat["eta"] == 0.1
    assert flat["eval_metric"] == ["auc", "error"]
    with pytest.raises(PrivacyParameterError, match="given twice"):
        names.flatten([*p, ("eta", 0.2)])


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("subsample", 1), ("subsample", 1.0), ("subsample", None), ("colsample_bytree", "1"),
        ("num_parallel_tree", 1), ("grow_policy", "depthwise"), ("booster", "gbtree"),
        ("device", "cpu"), ("reg_alpha", 0.0), ("monotone_constraints", ()), ("max_leaves", 0),
    ],
)  # fmt: skip
def test_neutral_values_pass(params, name, value):
    resolve(params() | {name: value})


def test_every_refused_parameter_is_refused_by_name(params):
    for name in names.REFUSED:
        with pytest.raises(PrivacyRefusal, match=f"`{name}`"):
            names.check_names(params() | {name: "other"})


def test_feature_grids():
    even = columns.grid_edges("`x`", (0, 8), 4)
    assert even == (0.0, 2.0, 4.0, 6.0, 8.0)
    log = columns.grid_edges("`x`", (1, 10000, "log"), 4)
    assert log == pytest.approx((1, 10, 100, 1000, 10000))
    assert columns.public_cuts("`x`", [3, 1, 1, -0.0, 1e-42]) == (0.0, 1.0, 3.0)
    assert math.copysign(1, columns.public_cuts("`x`", [-0.0])[0]) == 1
    for bad in ((1, 1), (2, 1), (0, np.inf), (0,), "ab", (0, 1, "sqrt"), (0, 5, "log")):
        with pytest.raises(PrivacyParameterError):
            columns.grid_edges("`x`", bad, 4)


def test_features_by_name_and_index(params):
    s = resolve(
        params(
            dp_feature_bounds={"f1": (0, 4, "even"), 2: (1, 9)},
            dp_feature_cuts={3: [1.5, 0.5]},
            max_bin=4,
        )
    )
    assert [f.kind for f in s.features] == ["private", "cuts", "private", "cuts"]
    assert [f.grid for f in s.features] == [(), (), (1.0, 9.0), ()]  # cuts lie between them
    assert s.features[1].cuts == (1.0, 2.0, 3.0)
    assert s.features[3].cuts == (0.5, 1.5)
    assert s.private_features == 2


def test_shares(params):
    def shares_of(kind="binary", given=None, **changes):
        return resolve(params(kind, dp_budget_shares=given, **changes))["dp_budget_shares"]

    def check(expected, *kind, **changes):
        names = ("candidates", "base_score", "correction", "splits", "leaves")
        assert shares_of(*kind, **changes) == pytest.approx(dict(zip(names, expected, strict=True)))

    check((0.1, 0.009, 0, 0.2673, 0.6237))
    assert shares_of("regression", dp_mean_correction=False)["base_score"] == 0.027
    public = {"dp_feature_cuts": {i: [0.0] for i in range(4)}}
    check((0, 0, 0, 0.3, 0.7), **public, base_score=0.5)
    declared = {**public, "dp_target_unit": "declared"}
    check((0, 0.009, 0.05, 0.2823, 0.6587), "regression", **declared, dp_mean_correction=True)
    assert shares_of("regression", **public)["range"] == 0.015
    assert shares_of(given={"leaves": 0.5})["splits"] == pytest.approx(0.391)
    assert sum(shares_of(given={"leaves": 0.5}).values()) == pytest.approx(1)
    little = {"candidates": 0.5, "base_score": 0.1, "splits": 0.1, "leaves": 0.1}
    for bad in ({"leaf": 0.5}, {"splits": -0.1}, {"splits": 0.95}, 0.5, little):
        with pytest.raises(PrivacyParameterError, match="dp_budget_shares"):
            shares_of(given=bad)


def test_plan_is_json_with_exact_numbers(params):
    s = resolve(params("regression", dp_feature_cuts={0: [0.1, 0.3]}, dp_public_num_rows=1000))
    built = json.loads(planning.dump(built_of(s)))
    assert built["noise_free"] is False
    assert "test_key" not in built
    assert built["public_num_rows"] == 1000
    assert built["features"][0]["cuts"] == [0.1, 0.3]
    assert np.float32(0.1) == np.float32(built["features"][0]["cuts"][0])
    assert float(built["row_bound"]["hessian_weight"]) == s["dp_hessian_weight"]
    assert built["row_bound"]["target_lower"] == "-3.0"
    assert built["num_class"] == 1
    assert built["leaf"]["sigma2"] == 1 << 22


def test_plan_with_known_noise(params):
    key = "ab" * 32
    built = built_of(resolve(params()), key)
    assert built["test_key"] == key
    built = built_of(resolve(params(dp_epsilon=math.inf)))
    assert built["noise_free"] is True


def test_base_score_is_post_processing(params):
    unit = 1 << NOISE["intercept"].shift
    s = resolve(params())
    assert base_score_from_sums(s, NOISE, [50 * unit, 100 * unit]) == pytest.approx(0.75)
    # A useless count must not blow the intercept up: less is to be expected than an end says.
    assert 0.75 < base_score_from_sums(s, NOISE, [50 * unit, -7 * unit]) < 0.9
    s = resolve(params("regression"))
    assert base_score_from_sums(s, NOISE, [-50 * unit, 100 * unit]) == pytest.approx(-1.5)
    s = resolve(params("multiclass"))
    scores = base_score_from_sums(s, NOISE, [100 * unit, 100 * unit, -unit])
    assert isinstance(scores, list)
    assert sum(map(math.exp, scores)) == pytest.approx(1)


def test_bound_of_row_weights(params):
    # The clip bounds every row, whatever its weight.
    kept = {"dp_weight_unit": "declared"}
    assert resolve(params()).row_bound.max_weight == 0
    assert resolve(params("regression", dp_max_weight=2, **kept)).row_bound.hessian_bound == 2
    assert resolve(params("multiclass", dp_max_weight=2, **kept)).row_bound.max_weight == 2
    assert resolve(params("multiclass", dp_max_weight=2)).row_bound.max_weight == 1  # in their unit
    for kind in ("regression", "multiclass"):
        assert resolve(params(kind)).row_bound.max_weight == 1


def test_continued_training_takes_no_second_intercept(params):
    s = resolve(params(), continues=True)
    assert s.intercept == "model"
    assert s["dp_budget_shares"]["base_score"] == 0
    with pytest.raises(PrivacyParameterError, match="base_score"):
        resolve(params(base_score=0.5), continues=True)


def test_a_new_scalar_is_a_row(params, monkeypatch):
    """A row of the table is read and checked, and travels to the plan and the public record."""
    row = parameter.Parameter(
        "dp_leaf_wisdom", "how wise a leaf is", parse.Number(0, 2), lambda s: s["eta"] / 2,
        parameter.PUBLIC, "leaves", plan="leaf.wisdom",
    )  # fmt: skip
    monkeypatch.setitem(table.PARAMETERS, row.name, row)
    for given, expected in (({}, 0.25), ({"dp_leaf_wisdom": "1.5"}, 1.5)):
        s = resolve(params(**given))
        assert s["dp_leaf_wisdom"] == expected
        assert built_of(s)["leaf"]["wisdom"] == repr(expected)
        assert planning.public_inputs(s)["hyperparameters"]["leaf_wisdom"] == expected
    for wrong, message in (
        ({"dp_leaf_wisdom": 3}, "`dp_leaf_wisdom` must be a number from 0 to 2; got 3"),
        ({"dp_leaf_wisdon": 1}, "Did you mean `dp_leaf_wisdom`"),
    ):
        with pytest.raises(PrivacyParameterError, match=message):
            resolve(params(**wrong))


def test_subsample_is_what_the_coins_are_told(params):
    """Out of 2^32, rounded to the nearest; all rows by default."""
    for given, assignments in ((1.0, 1 << 32), (0.5, 1 << 31), (0.3, 1288490189), (1e-12, 1)):
        s = resolve(params(subsample=given))
        assert s["subsample"] == assignments / 2**32
        assert built_of(s)["sampling_num"] == assignments
