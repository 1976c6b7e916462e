"""Several labels of a row, 0 or 1 each, from xgboost.train and the estimators to the model."""

from __future__ import annotations

import math
import pickle
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import xgboost as xgb

import xgb_dp
from xgb_dp.engine import native
from xgb_dp.errors import PrivacyParameterError, PrivacyRefusal, RowDomainError
from xgb_dp.releases.columns import Columns
from xgb_dp.releases.intercept import Intercept
from xgb_dp.releases.splits import Splits
from xgb_dp.request.features import read_schema
from xgb_dp.testing import fixed_noise
from xgb_dp.training.first_release import base_score_from_sums
from xgb_dp.training.plan import build_plan, dump_plan
from xgb_dp.training.prepare import prepare

from ..models import starts
from .several import check_choice

Floats = npt.NDArray[np.float64]
USUAL: dict[str, Any] = {
    "tree_method": "dp_hist", "objective": "binary:logistic", "dp_epsilon": 4.0, "dp_delta": 1e-5,
    "nthread": 1,
}  # fmt: skip


def rows(n: int = 2000, seed: int = 8) -> tuple[Floats, Floats, Floats]:
    """Columns, labels, and their probabilities; the second label is rare."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    logits = np.stack([2 * X[:, 0], X[:, 1] - 2.5, 1 + X[:, 2] - X[:, 0]], axis=1)
    p = 1 / (1 + np.exp(-logits))
    return X, (rng.random(p.shape) < p).astype(float), p


def matrix(n: int = 2000) -> xgb.DMatrix:
    return xgb.DMatrix(*rows(n)[:2])


def train(rounds: int | None = 10, data: Any = None, **changes: Any) -> xgb.Booster:
    names = ("xgb_model", "evals", "evals_result", "verbose_eval")
    more = {k: changes.pop(k) for k in names if k in changes}
    return xgb.train({**USUAL, **changes}, matrix() if data is None else data, rounds, **more)


def test_probabilities_of_all_labels_are_learnt_without_bias() -> None:
    """Also those of a rare label: no label enters the factor of a row."""
    X, Y, _ = rows(20_000)
    with fixed_noise(3):
        model = train(None, xgb.DMatrix(X, Y))
    X, _, p = rows(4000, seed=9)
    found = model.predict(xgb.DMatrix(X))
    assert found.shape == (4000, 3)
    assert (np.abs(found - p).mean(axis=0) < 0.06).all()
    np.testing.assert_allclose(found.mean(axis=0), p.mean(axis=0), rtol=0.08)
    np.testing.assert_allclose(starts(model), Y.mean(axis=0), atol=0.03)
    report = xgb_dp.privacy_report(train())
    assert 3.8 < report.epsilon <= 4.0
    stock = xgb.Booster(model_file=bytearray(model.save_raw("json")))
    np.testing.assert_array_equal(stock.predict(xgb.DMatrix(X)), found)


@pytest.mark.filterwarnings("ignore:`dp_epsilon` is infinite")
def test_without_noise_labels_are_what_single_trainings_make_of_them() -> None:
    """Where all predictions are even, the factor of a row is that of a single label."""
    X, Y, _ = rows()
    given = {"dp_epsilon": math.inf, "dp_feature_cuts": {i: [-1.0, 0.0, 1.1] for i in range(4)},
             "dp_split_levels": 1, "base_score": 0.5, "max_depth": 4}  # fmt: skip
    found = train(1, xgb.DMatrix(X, Y), dp_class_trees="per_class", **given).predict(xgb.DMatrix(X))
    for k in range(3):
        d = xgb.DMatrix(X, Y[:, k])
        assert np.abs(found[:, k] - train(1, d, **given).predict(d)).max() < 1e-4


@pytest.mark.parametrize(
    "changes",
    [
        {"objective": "binary:logitraw"},
        {"dp_class_trees": "per_class"},
        {"dp_class_trees": "per_class", "dp_score": "newton"},
        {"dp_split": "random"},
        {"dp_split": "histogram"},
        {"dp_split": "additive"},
        {"dp_leaf": "gradient"},
        {"dp_leaf_noise": "laplace"},
        {"tree_method": "dp_approx"},
        {"subsample": 0.5},
        {"dp_ensemble": 2},
        {"dp_n_public": 2000},
        {"dp_max_weight": 2.0},
        {"dp_classes": 2},
        {"dp_gradient_bound": 0.3},
        {"base_score": [0.5, 0.1, 0.7]},
        {"base_score": 0.4},
        {"monotone_constraints": [1, 0, 0, 0]},
    ],
    ids=str,
)
def test_choices_train(changes: dict[str, Any]) -> None:
    model = train(4, dp_epsilon=8.0, **changes)
    check_choice(model, matrix(50), changes.get("base_score"), 8.0)


def test_no_rows_train_as_any() -> None:
    model = train(2, xgb.DMatrix(np.empty((0, 4)), np.empty((0, 3))))
    assert model.predict(matrix(5)).shape == (5, 3)


def test_wide_tables_release_no_cells_by_class() -> None:
    """A label has classes, and several have no single one."""
    data = xgb.DMatrix(np.zeros((10, 600)), np.zeros((10, 2)))
    asked = prepare(USUAL, read_schema(data), None).asked
    assert not asked.find(Intercept).presence
    assert asked.find(Columns) is None
    assert train(2, data).predict(data).shape == (10, 2)


def test_the_events_are_those_of_one_row_in_all_trees() -> None:
    """K + 1 sums before the first tree; leaves of K trees with the bound of one row."""
    prepared = prepare({**USUAL, "dp_class_trees": "per_class"}, read_schema(matrix(10)), 5)
    plan = build_plan(prepared.settings, prepared.noise)
    told = native.describe_plan(dump_plan(plan))
    b = 1 << plan["grid_bits"]
    assert told["leaf_sensitivity2"] == b * b
    assert told["score_range"] == 2 * math.ceil(b / math.sqrt(1.5))
    by_name = {e.release: e for e in prepared.events}
    assert by_name["intercept"].coordinates == 4
    assert by_name["leaves"].coordinates == 6
    assert by_name["splits"].count == 5 * prepared.asked.find(Splits).selections


@pytest.mark.parametrize("objective", ["binary:logistic", "binary:logitraw"])
def test_an_intercept_of_each_label(objective: str) -> None:
    """From sums of labels in {-1, 1} and the number of rows."""
    prepared = prepare({**USUAL, "objective": objective}, read_schema(matrix(10)), 5)
    unit = 1 << prepared.noise["intercept"].shift
    sums = [int(v * unit) for v in (0, -600_000, 1_200_000, 1_000_000)]
    found = base_score_from_sums(prepared.settings, prepared.noise, sums)
    p = np.array([0.5, 0.2, 0.999])
    wanted = p if objective == "binary:logistic" else np.log(p / (1 - p))
    np.testing.assert_allclose(found, wanted, atol=1e-4)


def test_persons_sets_and_continued_trainings() -> None:
    told: dict[str, Any] = {}
    model = train(3, evals=[(matrix(300), "public")], evals_result=told, dp_public_evals=True,
                  verbose_eval=False, dp_privacy_id=np.arange(2000) // 3)  # fmt: skip
    assert len(told["public"]["logloss"]) == 3
    assert xgb_dp.privacy_report(model).unit.name == "person"
    first = train(3)
    more = train(2, xgb_model=first)
    assert more.num_boosted_rounds() == 5
    assert starts(more) == starts(first)
    X, Y, _ = rows()
    with pytest.raises(PrivacyParameterError, match="3 targets"):
        train(2, xgb.DMatrix(X, Y[:, 0]), xgb_model=first)
    start = xgb.train({"objective": "binary:logistic", "max_depth": 2}, matrix(400), 3)
    assert train(3, xgb_model=start, dp_public_model=True).num_boosted_rounds() == 6


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"scale_pos_weight": 3.0}, "one label of a row"),
        ({"dp_gradient_clip": "row_weight"}, "several quantiles or targets"),
        ({"dp_target_bounds": [(0, 1)] * 3}, "dp_target_bounds"),
        ({"objective": "multi:softprob", "num_class": 2}, "Several targets are refused"),
        ({"objective": "reg:logistic"}, "Several targets are refused"),
        ({"dp_classes": 3}, "more than two classes"),
        ({"base_score": [0.5, 0.1]}, "targets: or one"),
        ({"base_score": [0.5, 0.1, 1.5]}, "above 0 and below 1"),
        ({"dp_mean_correction": True}, "of one target"),
        ({"dp_leaf_noise": "output", "dp_leaf": "gradient"}, "dp_leaf_noise"),
        ({"dp_candidate_weight": "hessian"}, "dp_candidate_weight"),
    ],
)
def test_what_does_not_go_together(changes: dict[str, Any], message: str) -> None:
    with pytest.raises((PrivacyParameterError, PrivacyRefusal), match=message):
        train(2, matrix(40), **changes)


def test_a_label_outside_its_classes() -> None:
    X, Y, _ = rows(40)
    Y[7, 2] = 0.5
    with pytest.raises(RowDomainError, match="outside the declared classes"):
        train(2, xgb.DMatrix(X, Y))


def test_a_selection_and_an_evaluation_refuse_several_labels() -> None:
    params = {k: v for k, v in USUAL.items() if k not in ("dp_epsilon", "dp_delta")}
    with pytest.raises(PrivacyParameterError, match="Settings of several targets"):
        xgb_dp.select(params, matrix(200), [{"eta": 0.3}, {"eta": 0.5}], epsilon=1.0, delta=1e-5)
    with pytest.raises(PrivacyParameterError, match="several targets"):
        xgb_dp.evaluate(train(2), matrix(200), epsilon=1.0, delta=1e-5)


def test_the_estimator_takes_several_labels() -> None:
    X, Y, p = rows(6000)
    usual = {"epsilon": 4.0, "delta": 1e-5, "n_estimators": 10, "n_jobs": 1}
    with fixed_noise(5):
        model = xgb_dp.DPXGBClassifier(classes=2, **usual).fit(X, Y.astype(int))
    found = pickle.loads(pickle.dumps(model)).predict_proba(X)
    assert found.shape == Y.shape
    assert (np.abs(found - p).mean(axis=0) < 0.1).all()
    np.testing.assert_array_equal(model.predict(X), (found > 0.5).astype(int))
    words = np.where(Y == 1, "yes", "no")
    with fixed_noise(5):
        named = xgb_dp.DPXGBClassifier(classes=["no", "yes"], **usual).fit(X, words)
    np.testing.assert_array_equal(named.predict(X) == "yes", model.predict(X) == 1)
    with pytest.raises(PrivacyParameterError, match="several columns of labels of two classes"):
        xgb_dp.DPXGBClassifier(classes=3, **usual).fit(X, Y.astype(int))
    with pytest.raises(RowDomainError):
        xgb_dp.DPXGBClassifier(classes=2, **usual).fit(X, 2 * Y.astype(int))
