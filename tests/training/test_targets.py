"""Several targets of a row, from xgboost.train and the estimators to the saved model."""

import math
import pickle
from functools import partial

import numpy as np
import pytest
import xgboost as xgb

import xgb_dp
from xgb_dp.errors import PrivacyParameterError, RowDomainError
from xgb_dp.planning import with_noise
from xgb_dp.request.schema import read_schema
from xgb_dp.testing import fixed_noise
from xgb_dp.training.hook import prepare

from ..models import event, events, starts
from . import several
from .several import BOUNDS, Floats

rows, matrix, train = (partial(f, "targets") for f in (several.rows, several.matrix, several.train))
USUAL = several.usual("targets")


def explained(predicted: Floats, expected: Floats) -> Floats:
    """R^2 of each target."""
    return np.asarray(1 - ((predicted - expected) ** 2).mean(axis=0) / expected.var(axis=0))


def test_all_targets_are_learnt_on_one_budget():
    X, Y = rows(6000)
    with fixed_noise(3):
        model = train(None, xgb.DMatrix(X, Y))
    X, Y = rows(1000, seed=9)
    predicted = model.predict(xgb.DMatrix(X))
    assert predicted.shape == (1000, 3)
    assert (explained(predicted, Y) > [0.8, 0.8, 0.75]).all()
    assert starts(model) == pytest.approx(list(Y.mean(axis=0)), abs=4.0)
    report = xgb_dp.privacy_report(train())
    assert 3.8 < report.epsilon <= 4.0
    assert report.ledger["trainings"][0]["public"]["target_bounds"] == [list(b) for b in BOUNDS]


WIDE = (-60.0, 160.0)


@pytest.mark.parametrize(
    ("columns", "one", "others"),
    [(slice(3), WIDE, ([WIDE] * 3, np.array([WIDE] * 3))), (0, BOUNDS[0], (BOUNDS[:1],))],
)
def test_forms_of_ranges(columns, one, others):
    """One range is that of all targets, and a list of one that of a single target."""
    X, Y = rows()
    trees = []
    for given in (one, *others):
        with fixed_noise(3):
            model = train(data=xgb.DMatrix(X, Y[:, columns]), dp_target_bounds=given)
        trees.append(model.get_dump())
    assert all(other == trees[0] for other in trees)


def test_persons_weights_and_margins():
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
        train(2, xgb.DMatrix(X, Y, base_margin=X[:, 0]), dp_base_margin=True)


def test_labels_without_rows_say_how_many_targets_there_are():
    with pytest.raises(PrivacyParameterError, match=r"np.empty\(\(0, 3\)\)"):
        train(2, xgb.DMatrix(np.empty((0, 4))))


def test_a_clip_is_what_the_bound_leaves_to_a_target():
    schema = read_schema(matrix(10))
    for changes, clip in (({}, 0.3), ({"dp_max_weight": 2.0}, 0.3), ({"dp_gradient_bound": 1.0},
                          1 / math.sqrt(3 * (1 + 1 / 16)))):  # fmt: skip
        prepared = prepare({**USUAL, **changes}, schema, 50)
        loss = with_noise(prepared.draft, prepared.noise)["loss"]
        assert float(loss["clip"]) == pytest.approx(clip)
        assert [float(v) for v in loss["upper"]] == [high for _, high in BOUNDS]


def test_open_rounds_follow_the_rows_that_a_target_is_worth():
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


def test_public_models_and_public_rows():
    public = matrix(400)
    start = xgb.train({"objective": "reg:squarederror", "max_depth": 2}, public, 3)
    with pytest.raises(PrivacyParameterError, match="predicts 3 targets, but the training has 1"):
        train(2, xgb.DMatrix(*one_target()), xgb_model=start, dp_public_model=True,
              dp_target_bounds=(0, 1))  # fmt: skip
    model = train(3, dp_public_data=public)
    assert (explained(model.predict(matrix()), rows()[1]) > 0.1).all()


@pytest.mark.parametrize("bounds", [BOUNDS[:2], [*BOUNDS, (0, 1)]])
def test_a_range_for_each_target(bounds):
    with pytest.raises(PrivacyParameterError, match=f"must have {len(bounds)} label"):
        train(2, matrix(40), dp_target_bounds=bounds)


def test_a_label_of_a_row_that_is_no_number():
    X, Y = rows(40)
    Y[7, 2] = 1e39  # infinite in 32 bits
    d = xgb.DMatrix(X)
    d.set_info(label=np.zeros_like(Y))
    train(2, d)
    for wrong in (np.nan, np.inf):
        Y[7, 2] = wrong
        with pytest.raises((xgb.core.XGBoostError, RowDomainError)):
            train(2, xgb.DMatrix(X, Y))


def test_the_estimator_takes_several_targets():
    X, Y = rows(4000)
    usual = {"epsilon": 4.0, "delta": 1e-5, "n_estimators": 15, "n_jobs": 1}
    with fixed_noise(5):
        model = xgb_dp.DPXGBRegressor(target_bounds=BOUNDS, **usual).fit(X, Y)
    predicted = model.predict(X)
    assert predicted.shape == Y.shape
    assert (explained(predicted, Y) > 0.5).all()
    assert model.__sklearn_tags__().target_tags.multi_output
    narrow = xgb_dp.DPXGBRegressor(target_bounds=[(-0.1, 0.1), (40, 60), (0, 1)], **usual)
    predicted = pickle.loads(pickle.dumps(narrow.fit(X, Y))).predict(X)
    assert (predicted.min(axis=0) >= np.float32([-0.1, 40, 0])).all()
    assert (predicted.max(axis=0) <= np.float32([0.1, 60, 1])).all()
    loaded = xgb.XGBRegressor()
    loaded._Booster = model.get_booster()
    assert loaded.predict(X).shape == Y.shape
    with pytest.raises(PrivacyParameterError, match="several numeric targets, use DPXGBRegressor"):
        xgb_dp.DPXGBClassifier(classes=3, **usual).fit(X, (Y > 0).astype(int))
