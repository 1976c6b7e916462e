"""Several targets of a row, from xgboost.train and the estimators to the saved model."""

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
from xgb_dp.releases.splits import Splits
from xgb_dp.request.features import read_schema
from xgb_dp.testing import fixed_noise
from xgb_dp.training.plan import build_plan, dump_plan
from xgb_dp.training.prepare import prepare

from ..models import event, events, starts
from .several import check_choice

Floats = npt.NDArray[np.float64]
BOUNDS = [(-4.0, 4.0), (-60.0, 160.0), (-6.0, 6.0)]
USUAL: dict[str, Any] = {
    "tree_method": "dp_hist", "dp_epsilon": 4.0, "dp_delta": 1e-5, "nthread": 1,
    "dp_target_bounds": BOUNDS,
}  # fmt: skip


def rows(n: int = 2000, seed: int = 8) -> tuple[Floats, Floats]:
    """Columns, and targets of three units."""
    rng = np.random.default_rng(seed)
    X, noise = rng.normal(size=(n, 4)), rng.normal(size=(n, 3))
    signal = [X[:, 0], 60 * (X[:, 1] > 0) + 10 * X[:, 0] + 20, X[:, 2] + X[:, 0]]
    return X, np.stack(signal, axis=1) + noise * [0.3, 10.0, 0.5]


def matrix(n: int = 2000, **given: Any) -> xgb.DMatrix:
    return xgb.DMatrix(*rows(n), **given)


def train(rounds: int | None = 10, data: Any = None, **changes: Any) -> xgb.Booster:
    names = ("xgb_model", "evals", "evals_result", "verbose_eval")
    more = {k: changes.pop(k) for k in names if k in changes}
    d = matrix() if data is None else data
    return xgb.train({**USUAL, **changes}, d, rounds, **more)


def explained(found: Floats, wanted: Floats) -> Floats:
    """R^2 of each target."""
    return np.asarray(1 - ((found - wanted) ** 2).mean(axis=0) / wanted.var(axis=0))


def test_all_targets_are_learnt_on_one_budget() -> None:
    X, Y = rows(6000)
    with fixed_noise(3):
        model = train(None, xgb.DMatrix(X, Y))
    X, Y = rows(1000, seed=9)
    found = model.predict(xgb.DMatrix(X))
    assert found.shape == (1000, 3)
    assert (explained(found, Y) > [0.8, 0.8, 0.75]).all()
    assert starts(model) == pytest.approx(list(Y.mean(axis=0)), abs=4.0)
    report = xgb_dp.privacy_report(train())
    assert 3.8 < report.epsilon <= 4.0
    assert report.ledger["trainings"][0]["public"]["target_bounds"] == [list(b) for b in BOUNDS]


def test_one_range_is_that_of_all_targets() -> None:
    wide = (-60.0, 160.0)
    with fixed_noise(3):
        one = train(dp_target_bounds=wide)
    for given in ([wide] * 3, np.array([wide] * 3)):
        with fixed_noise(3):
            other = train(dp_target_bounds=given)
        assert one.get_dump() == other.get_dump()


def test_a_list_of_one_range_is_that_of_one_target() -> None:
    X, Y = rows()
    d = xgb.DMatrix(X, Y[:, 0])
    with fixed_noise(3):
        one = train(data=d, dp_target_bounds=BOUNDS[:1])
    with fixed_noise(3):
        other = train(data=d, dp_target_bounds=BOUNDS[0])
    assert one.get_dump() == other.get_dump()


@pytest.mark.parametrize("bounds", [BOUNDS, (-60.0, 160.0)])
def test_no_rows_train_as_any(bounds: Any) -> None:
    """Labels without rows say how many targets there are."""
    model = train(2, xgb.DMatrix(np.empty((0, 4)), np.empty((0, 3))), dp_target_bounds=bounds)
    assert model.predict(matrix(5)).shape == (5, 3)
    assert model.num_boosted_rounds() == 2
    with pytest.raises(PrivacyParameterError, match=r"np.empty\(\(0, 3\)\)"):
        train(2, xgb.DMatrix(np.empty((0, 4))))


@pytest.mark.filterwarnings("ignore:`dp_epsilon` is infinite")
def test_without_noise_targets_are_what_single_trainings_make_of_them() -> None:
    """With trees of their own, the same clip and the same steps; the grid is coarser."""
    X, Y = rows()
    given = {"dp_epsilon": math.inf, "dp_mean_correction": False, "dp_feature_cuts": CUTS,
             "dp_split_levels": 1}  # fmt: skip
    joint = train(8, dp_class_trees="per_class", **given)
    found = joint.predict(xgb.DMatrix(X))
    for k, bounds in enumerate(BOUNDS):
        d = xgb.DMatrix(X, Y[:, k])
        alone = train(8, d, dp_target_bounds=bounds, **given).predict(d)
        width = bounds[1] - bounds[0]
        assert np.abs(found[:, k] - alone).max() < 1e-4 * width


CUTS = {i: [-1.0, -0.4, 0.0, 0.5, 1.1] for i in range(4)}


@pytest.mark.parametrize(
    "changes",
    [
        {"dp_class_trees": "per_class"},
        {"dp_split": "random"},
        {"dp_split": "histogram"},
        {"dp_split": "additive"},
        {"dp_leaf": "gradient"},
        {"dp_leaf_noise": "laplace"},
        {"dp_score": "newton", "dp_class_trees": "per_class"},
        {"tree_method": "dp_approx"},
        {"subsample": 0.5},
        {"dp_ensemble": 2},
        {"dp_n_public": 2000},
        {"dp_feature_cuts": CUTS},
        {"dp_accountant": "rdp"},
        {"dp_gradient_bound": 0.8},
        {"dp_gradient_bound": 1700.0, "dp_hessian_weight": 1e-12},
        {"monotone_constraints": [1, 0, 0, 0]},
        {"base_score": [0.0, 50.0, 0.0]},
        {"base_score": 1.0},
    ],
    ids=str,
)
def test_choices_train(changes: dict[str, Any]) -> None:
    model = train(4, dp_epsilon=8.0, **changes)
    check_choice(model, matrix(50), changes.get("base_score"), 8.0)


def test_pure_noise() -> None:
    model = train(
        3, dp_accountant="pure", dp_delta=0.0, dp_leaf_noise="laplace", base_score=0.0,
        dp_feature_cuts=CUTS,
    )  # fmt: skip
    report = xgb_dp.privacy_report(model)
    assert report.get_epsilon(0.0) <= 4.0 + 1e-9


def test_persons_weights_and_margins() -> None:
    X, Y = rows()
    margin = np.stack([X[:, 0], np.full(len(X), 50.0), X[:, 2]], axis=1)
    d = xgb.DMatrix(X, Y, weight=np.linspace(0, 1, len(X)))
    d.set_base_margin(margin)
    who = np.arange(len(X)) // 3
    model = train(6, d, dp_privacy_id=who, dp_base_margin=True)
    assert xgb_dp.privacy_report(model).unit.name == "person"
    d.set_info(label=None)
    assert model.predict(d).shape == Y.shape
    released = {e["release"] for e in events(model)}
    assert "intercept" not in released
    with_intercept = train(6, dp_privacy_id=who)
    assert event(with_intercept, "intercept")["coordinates"] == 4
    with pytest.raises(RowDomainError, match="base_margin"):
        train(2, base_margin=None, data=margin_of_one(X, Y), dp_base_margin=True)


def margin_of_one(X: Floats, Y: Floats) -> xgb.DMatrix:
    """Rows with one margin each."""
    d = xgb.DMatrix(X, Y)
    d.set_base_margin(X[:, 0])
    return d


def test_the_events_are_those_of_one_row_in_all_trees() -> None:
    """K + 1 sums before the first tree; leaves of K trees with the bound of one row."""
    params = {**USUAL, "dp_class_trees": "per_class"}
    prepared = prepare(params, read_schema(matrix(10)), 5)
    s, plan = prepared.settings, build_plan(prepared.settings, prepared.noise)
    told = native.describe_plan(dump_plan(plan))
    assert told["leaf_sensitivity2"] == 1 << 2 * plan["grid_bits"]
    by_name = {e.release: e for e in prepared.events}
    assert by_name["intercept"].coordinates == 4
    assert by_name["leaves"].coordinates == 6
    selections = prepared.asked.find(Splits).selections
    assert by_name["splits"].count == 5 * selections
    assert selections == 3 * math.ceil(s["max_depth"] / s["dp_split_levels"])
    joint = prepare(USUAL, read_schema(matrix(10)), 5)
    assert 3 * joint.asked.find(Splits).selections == selections


def test_a_clip_is_what_the_bound_leaves_to_a_target() -> None:
    schema = read_schema(matrix(10))
    for changes, clip in (({}, 0.3), ({"dp_max_weight": 2.0}, 0.3), ({"dp_gradient_bound": 1.0},
                          1 / math.sqrt(3 * (1 + 1 / 16)))):  # fmt: skip
        prepared = prepare({**USUAL, **changes}, schema, 5)
        loss = build_plan(prepared.settings, prepared.noise)["loss"]
        assert float(loss["clip"]) == pytest.approx(clip)
        assert [float(v) for v in loss["upper"]] == [high for _, high in BOUNDS]


def test_open_rounds_follow_the_rows_that_a_target_is_worth() -> None:
    """K targets share a bound, so that a row is worth less by the root of K."""
    one = prepare({**USUAL, "dp_target_bounds": (0, 1)}, read_schema(xgb.DMatrix(*one_target())),
                  None)  # fmt: skip
    several = prepare(USUAL, read_schema(matrix(10)), None)
    assert one.family is not None
    assert several.family is not None
    ratio = np.divide(several.family.limits[:-1], one.family.limits[:-1])
    np.testing.assert_allclose(ratio, math.sqrt(3))


def one_target() -> tuple[Floats, Floats]:
    X, Y = rows(10)
    return X, Y[:, 0]


def test_sets_and_continued_trainings() -> None:
    told: dict[str, Any] = {}
    public = matrix(300)
    model = train(4, evals=[(public, "public")], evals_result=told, dp_public_evals=True,
                  verbose_eval=False)  # fmt: skip
    assert len(told["public"]["rmse"]) == 4
    more = train(3, xgb_model=model)
    assert more.num_boosted_rounds() == 7
    assert starts(more) == starts(model)
    assert len(xgb_dp.privacy_report(more).ledger["trainings"]) == 2
    X, Y = rows()
    for fewer, bounds in ((Y[:, :2], BOUNDS[:2]), (Y[:, 0], BOUNDS[0])):
        with pytest.raises(PrivacyParameterError, match="trained for 3 targets"):
            train(2, xgb.DMatrix(X, fewer), xgb_model=model, dp_target_bounds=bounds)
    with pytest.raises(PrivacyParameterError, match="as many as the training data"):
        train(2, evals=[(xgb.DMatrix(X, Y[:, 0]), "public")], dp_public_evals=True)


def test_public_models_and_public_rows() -> None:
    public = matrix(400)
    start = xgb.train({"objective": "reg:squarederror", "max_depth": 2}, public, 3)
    model = train(3, xgb_model=start, dp_public_model=True)
    assert model.num_boosted_rounds() == 6
    with pytest.raises(PrivacyParameterError, match="predicts 3 targets, the training 1"):
        train(2, xgb.DMatrix(*one_target()), xgb_model=start, dp_public_model=True,
              dp_target_bounds=(0, 1))  # fmt: skip
    for split in ("exponential", "public"):
        model = train(3, dp_public_data=public, dp_split=split)
        assert (explained(model.predict(matrix()), rows()[1]) > 0.1).all()


def own(prediction: Any, label: Any, weight: Any) -> tuple[Any, Any]:
    """The squared error."""
    return prediction - label, 1.0


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"objective": "reg:quantileerror"}, "Several targets are refused"),
        ({"objective": "count:poisson", "dp_target_bounds": (0, 9)}, "Several targets are refused"),
        ({"objective": "reg:pseudohubererror"}, "Several targets are refused"),
        ({"dp_objective": own}, "Several targets are refused"),
        ({"objective": "reg:logistic", "dp_target_bounds": None}, "Several targets are refused"),
        ({"objective": "multi:softprob", "num_class": 3, "dp_target_bounds": None},
         "Several targets are refused"),
        ({"dp_target_bounds": BOUNDS[:2]}, "2 expected"),
        ({"dp_target_bounds": [*BOUNDS, (0, 1)]}, "4 expected"),
        ({"dp_target_bounds": [(0, 1), (2, 1), (0, 1)]}, r"dp_target_bounds\[1\]"),
        ({"dp_target_bounds": [(0, 1)] * 1025}, "more than 1024 targets"),
        ({"dp_target_bounds": []}, "dp_target_bounds"),
        ({"dp_mean_correction": True}, "of one target"),
        ({"dp_gradient_clip": "clip"}, "several quantiles or targets"),
        ({"dp_gradient_bound": 1e4}, "above 1000 half widths"),
        ({"dp_gradient_bound": 1e-6, "dp_max_weight": 1e6}, "below 1e-9"),
        ({"dp_score": "gain"}, "dp_score"),
        ({"dp_leaf_noise": "output", "dp_leaf": "gradient"}, "dp_leaf_noise"),
        ({"multi_strategy": "multi_output_tree"}, "a tree each in every round"),
        ({"base_score": [0.0, 1.0]}, "targets: or one"),
        ({"dp_candidate_weight": "hessian"}, "dp_candidate_weight"),
    ],
)  # fmt: skip
def test_what_does_not_go_together(changes: dict[str, Any], message: str) -> None:
    kept = {k: v for k, v in {**USUAL, **changes}.items() if v is not None}
    with pytest.raises((PrivacyParameterError, PrivacyRefusal), match=message):
        xgb.train(kept, matrix(40), 2)


def test_one_strategy_of_trees_is_accepted_by_name() -> None:
    assert train(2, multi_strategy="one_output_per_tree").predict(matrix(3)).shape == (3, 3)


def test_a_selection_and_an_evaluation_refuse_several_targets() -> None:
    params = {k: v for k, v in USUAL.items() if k not in ("dp_epsilon", "dp_delta")}
    with pytest.raises(PrivacyParameterError, match="Settings of several targets"):
        xgb_dp.select(params, matrix(200), [{"eta": 0.3}, {"eta": 0.5}], epsilon=1.0, delta=1e-5)
    with pytest.raises(PrivacyParameterError, match="several targets"):
        xgb_dp.evaluate(train(2), matrix(200), epsilon=1.0, delta=1e-5)


def test_a_label_of_a_row_that_is_no_number() -> None:
    X, Y = rows(40)
    Y[7, 2] = 1e39  # infinite in 32 bits
    d = xgb.DMatrix(X)
    d.set_info(label=np.zeros_like(Y))
    train(2, d)
    for wrong in (np.nan, np.inf):
        Y[7, 2] = wrong
        with pytest.raises((xgb.core.XGBoostError, RowDomainError)):
            train(2, xgb.DMatrix(X, Y))


def test_the_estimator_takes_several_targets() -> None:
    X, Y = rows(4000)
    usual = {"epsilon": 4.0, "delta": 1e-5, "n_estimators": 15, "n_jobs": 1}
    with fixed_noise(5):
        model = xgb_dp.DPXGBRegressor(target_bounds=BOUNDS, **usual).fit(X, Y)
    found = model.predict(X)
    assert found.shape == Y.shape
    assert (explained(found, Y) > 0.5).all()
    assert model.__sklearn_tags__().target_tags.multi_output
    narrow = xgb_dp.DPXGBRegressor(target_bounds=[(-0.1, 0.1), (40, 60), (0, 1)], **usual)
    found = pickle.loads(pickle.dumps(narrow.fit(X, Y))).predict(X)
    assert (found.min(axis=0) >= np.float32([-0.1, 40, 0])).all()
    assert (found.max(axis=0) <= np.float32([0.1, 60, 1])).all()
    loaded = xgb.XGBRegressor()
    loaded._Booster = model.get_booster()
    assert loaded.predict(X).shape == Y.shape
    with pytest.raises(PrivacyParameterError, match="targets of DPXGBRegressor"):
        xgb_dp.DPXGBClassifier(classes=3, **usual).fit(X, (Y > 0).astype(int))
