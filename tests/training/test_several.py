"""What several targets of a row, and several labels of 0 and 1, have in common."""

import math
from typing import Any

import numpy as np
import pytest
import xgboost as xgb

import xgb_dp
from tests.stated import describe_plan
from xgb_dp.errors import PrivacyParameterError
from xgb_dp.mechanisms.splits import Splits
from xgb_dp.planning import dump, with_noise
from xgb_dp.request.schema import read_schema
from xgb_dp.training.hook import prepare

from ..models import starts
from .several import BOUNDS, CUTS, KINDS, matrix, rows, train, usual

CHOICES: list[dict[str, Any]] = [
    {"dp_class_trees": "per_class"},
    {"dp_class_trees": "per_class", "dp_score": "newton"},
    {"dp_split": "random"},
    {"dp_split": "histogram"},
    {"dp_leaf": "gradient"},
    {"dp_leaf_noise": "laplace"},
    {"tree_method": "dp_approx"},
    {"subsample": 0.5},
    {"dp_ensemble": 2},
    {"dp_public_num_rows": 2000},
    {"monotone_constraints": [1, 0, 0, 0]},
]
OF_KIND: dict[str, list[dict[str, Any]]] = {
    "labels": [
        {"objective": "binary:logitraw"},
        {"dp_max_weight": 2.0},
        {"dp_classes": 2},
        {"dp_gradient_bound": 0.3},
        {"base_score": [0.5, 0.1, 0.7]},
        {"base_score": 0.4},
    ],
    "targets": [
        {"dp_feature_cuts": CUTS},
        {"dp_accountant": "rdp"},
        {"dp_gradient_bound": 0.8},
        {"dp_gradient_bound": 1700.0, "dp_hessian_weight": 1e-12},
        {"base_score": [0.0, 50.0, 0.0]},
        {"base_score": 1.0},
        {"multi_strategy": "one_output_per_tree"},
    ],
}


@pytest.mark.parametrize(
    ("kind", "changes"), [(k, c) for k in KINDS for c in (*CHOICES, *OF_KIND[k])], ids=str
)
def test_choices_train(kind, changes):
    model = train(kind, 4, dp_epsilon=8.0, **changes)
    assert np.isfinite(model.predict(matrix(kind, 50))).all()
    if "base_score" in changes:
        assert starts(model) == pytest.approx(list(np.broadcast_to(changes["base_score"], 3)))
    assert 0 < xgb_dp.privacy_report(model).epsilon <= 8.0


@pytest.mark.parametrize(
    ("kind", "changes"),
    [("labels", {}), ("targets", {}), ("targets", {"dp_target_bounds": (-60.0, 160.0)})],
)
def test_no_rows_train_as_any(kind, changes):
    """Labels without rows say how many there are of a row."""
    model = train(kind, 2, xgb.DMatrix(np.empty((0, 4)), np.empty((0, 3))), **changes)
    assert model.predict(matrix(kind, 5)).shape == (5, 3)
    assert model.num_boosted_rounds() == 2


@pytest.mark.filterwarnings("ignore:`dp_epsilon` is infinite")
@pytest.mark.parametrize(
    ("kind", "rounds", "changes"),
    [
        # Where all predictions are even, the factor of a row is that of a single label.
        ("labels", 1, {"base_score": 0.5, "max_depth": 4}),
        ("targets", 8, {"dp_mean_correction": False}),
    ],
)
def test_without_noise_each_is_what_a_single_training_makes_of_it(kind, rounds, changes):
    """With trees of their own, the same clip and the same steps; the grid is coarser."""
    X, Y = rows(kind)
    given = {"dp_epsilon": math.inf, "dp_feature_cuts": CUTS, "dp_split_levels": 1} | changes
    together = train(kind, rounds, dp_class_trees="per_class", **given).predict(xgb.DMatrix(X))
    for k, (low, high) in enumerate(BOUNDS):
        d = xgb.DMatrix(X, Y[:, k])
        of_one = {"dp_target_bounds": (low, high), "dp_target_unit": "declared"}
        single = given | (of_one if kind == "targets" else {})
        width = high - low if kind == "targets" else 1.0
        alone = train(kind, rounds, d, **single).predict(d)
        assert np.abs(together[:, k] - alone).max() < 1e-4 * width


@pytest.mark.parametrize(("kind", "metric"), [("labels", "logloss"), ("targets", "rmse")])
def test_sets_and_continued_trainings(kind, metric):
    scores: dict[str, Any] = {}
    model = train(kind, 4, evals=[(matrix(kind, 300), "public")], evals_result=scores,
                  dp_public_evals=True, verbose_eval=False)  # fmt: skip
    assert len(scores["public"][metric]) == 4
    more = train(kind, 3, xgb_model=model)
    assert more.num_boosted_rounds() == 7
    assert starts(more) == starts(model)
    assert len(xgb_dp.privacy_report(more).ledger["trainings"]) == 2
    X, Y = rows(kind)
    for columns in (slice(2), 0):
        bounds = {"dp_target_bounds": BOUNDS[columns]} if kind == "targets" else {}
        with pytest.raises(PrivacyParameterError, match="has 3 targets"):
            train(kind, 2, xgb.DMatrix(X, Y[:, columns]), xgb_model=model, **bounds)
    with pytest.raises(PrivacyParameterError, match="as many labels per row"):
        train(kind, 2, evals=[(xgb.DMatrix(X, Y[:, 0]), "public")], dp_public_evals=True)


@pytest.mark.parametrize("kind", KINDS)
def test_the_events_are_those_of_one_row_in_all_trees(kind):
    """K + 1 sums before the first tree; leaves of K trees with the bound of one row."""
    each, joint = (
        prepare(usual(kind, dp_class_trees=trees), read_schema(matrix(kind, 10)), 5)
        for trees in ("per_class", "joint")
    )
    s, plan = each.settings, with_noise(each.draft, each.noise)
    described, bits = describe_plan(dump(plan)), plan["grid_bits"]
    assert described["leaf_sensitivity2"] == 1 << 2 * bits
    if kind == "labels":
        assert described["score_range"] == 2 * math.ceil((1 << bits) / math.sqrt(1.5))
    by_name = {e.release: e for e in each.events}
    assert by_name["intercept"].coordinates == 4
    assert by_name["leaves"].coordinates == 6
    of_each, of_joint = (prepared.mechanisms.find(Splits).selections for prepared in (each, joint))
    assert by_name["splits"].count == 5 * of_each
    assert of_each == 3 * of_joint == 3 * math.ceil(s["max_depth"] / s["dp_split_levels"])


@pytest.mark.parametrize("kind", KINDS)
def test_persons_and_public_models(kind):
    model = train(kind, 3, dp_privacy_id=np.arange(2000) // 3)
    assert xgb_dp.privacy_report(model).unit.name == "person"
    plain = {"objective": usual(kind).get("objective", "reg:squarederror"), "max_depth": 2}
    start = xgb.train(plain, matrix(kind, 400), 3)
    assert train(kind, 3, xgb_model=start, dp_public_model=True).num_boosted_rounds() == 6


@pytest.mark.parametrize("kind", KINDS)
def test_a_selection_and_an_evaluation_refuse_several(kind):
    params, d = usual(kind, dp_epsilon=None, dp_delta=None), matrix(kind, 200)
    with pytest.raises(PrivacyParameterError, match="does not support several targets"):
        xgb_dp.select(params, d, [{"eta": 0.3}, {"eta": 0.5}], epsilon=1.0, delta=1e-5)
    with pytest.raises(PrivacyParameterError, match="several targets"):
        xgb_dp.evaluate(train(kind, 2), d, epsilon=1.0, delta=1e-5)
