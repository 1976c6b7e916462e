"""binary:logitraw and multi:softmax: the trees of their siblings, other predictions."""

from itertools import product
from typing import Any

import numpy as np
import pytest
import xgboost as xgb

import xgb_dp
from tests.conftest import arrays
from xgb_dp.engine.saved_model import probabilities
from xgb_dp.errors import PrivacyParameterError
from xgb_dp.testing import fixed_noise

SIBLING = {"binary:logitraw": "binary:logistic", "multi:softmax": "multi:softprob"}
KIND = {"binary:logitraw": "binary", "multi:softmax": "multiclass"}


def trained(params: dict[str, Any], rounds: int = 4, **kwargs: Any) -> xgb.Booster:
    """A training on the data of its kind with a fixed noise tape."""
    kind = "multiclass" if params["objective"].startswith("multi") else "binary"
    d = xgb.DMatrix(*arrays(kind))
    if params.get("dp_base_margin"):
        shape = (300, 3) if kind == "multiclass" else (300,)
        d.set_base_margin(np.random.default_rng(5).normal(size=shape))
    with fixed_noise(11):
        return xgb.train(params, d, rounds, **kwargs)


CHANGES = [
    {},
    {"dp_public_num_rows": 300},
    {"dp_epsilon": float("inf")},
    {"subsample": 0.5},
    {"dp_base_margin": True},
]
OF_BINARY = [
    {"scale_pos_weight": 3.0, "dp_max_weight": 3.0},
    {"dp_preset": "dp_xgb", "dp_feature_bounds": dict.fromkeys(range(4), (-3, 3))},
]


@pytest.mark.filterwarnings("ignore:`dp_epsilon` is infinite")
@pytest.mark.parametrize(
    ("objective", "changes"),
    [*product(SIBLING, CHANGES), *product(["binary:logitraw"], OF_BINARY)],
    ids=str,
)
def test_margins_are_those_of_the_sibling(objective, changes, params):
    kind = KIND[objective]
    d = xgb.DMatrix(*arrays(kind))
    if "dp_base_margin" in changes:
        d.set_base_margin(np.ones((300, 3) if kind == "multiclass" else 300))
    model, other = (
        trained(params(kind, objective=o, **changes)) for o in (objective, SIBLING[objective])
    )
    np.testing.assert_array_equal(
        model.predict(d, output_margin=True), other.predict(d, output_margin=True)
    )
    np.testing.assert_allclose(probabilities(model, d), probabilities(other, d), rtol=1e-5)
    report, expected = xgb_dp.privacy_report(model), xgb_dp.privacy_report(other)
    assert report.epsilon == expected.epsilon
    assert f'"objective": "{objective}"' in (model.attr("dp_ledger") or "").replace('":"', '": "')


def test_predictions_have_the_shapes_of_xgboost(params):
    raw = trained(params(objective="binary:logitraw"))
    d = xgb.DMatrix(*arrays())
    np.testing.assert_array_equal(raw.predict(d), raw.predict(d, output_margin=True))
    top = trained(params("multiclass", objective="multi:softmax"))
    d = xgb.DMatrix(*arrays("multiclass"))
    assert top.predict(d).shape == (300,)
    np.testing.assert_array_equal(top.predict(d), top.predict(d, output_margin=True).argmax(axis=1))


def test_base_score_of_logitraw_is_a_margin(params):
    d = xgb.DMatrix(*arrays())
    model = trained(params(objective="binary:logitraw", base_score=0.0))
    other = trained(params(objective="binary:logistic", base_score=0.5))
    np.testing.assert_array_equal(model.predict(d), other.predict(d, output_margin=True))
    shifted = trained(params(objective="binary:logitraw", base_score=-7.0))
    assert shifted.predict(d).max() < 0.0
    with pytest.raises(PrivacyParameterError, match="base_score"):
        trained(params(objective="binary:logistic", base_score=-7.0))


@pytest.mark.parametrize("objective", SIBLING)
def test_continued_training(objective, params):
    parameters = params(KIND[objective], objective=objective)
    d = xgb.DMatrix(*arrays(KIND[objective]))
    first = xgb.train(parameters, d, 4)
    second = xgb.train(parameters, d, 4, xgb_model=first)
    assert second.num_boosted_rounds() == 8
    report = xgb_dp.privacy_report(second)
    assert report.epsilon > xgb_dp.privacy_report(first).epsilon
    other = {**parameters, "objective": SIBLING[objective]}
    with pytest.raises(PrivacyParameterError, match=f"`objective` is {SIBLING[objective]}"):
        xgb.train(other, d, 4, xgb_model=first)


@pytest.mark.parametrize("objective", SIBLING)
def test_metrics_of_public_rows(objective, params):
    kind = KIND[objective]
    metric = {"binary": "error@0", "multiclass": "merror"}[kind]
    d = xgb.DMatrix(*arrays(kind))
    scores: dict[str, Any] = {}
    booster = trained(
        params(kind, objective=objective, dp_public_evals=True, eval_metric=metric),
        evals=[(d, "public")],
        evals_result=scores,
        verbose_eval=False,
    )
    margin = booster.predict(d, output_margin=True)
    top = margin > 0 if kind == "binary" else margin.argmax(axis=1)
    assert scores["public"][metric][-1] == pytest.approx((top != arrays(kind)[1]).mean())


@pytest.mark.parametrize("objective", SIBLING)
@pytest.mark.filterwarnings("ignore:Epsilon is above 10")
def test_selection_judges_probabilities(objective, params):
    """With this much budget the score shows whether it was computed from probabilities."""
    kind = KIND[objective]
    parameters = params(kind, objective=objective, dp_epsilon=None, dp_delta=None)
    result = xgb_dp.select(
        parameters, xgb.DMatrix(*arrays(kind)), {"max_depth": [2]}, epsilon=1e4, delta=1e-6,
        num_boost_round=20, score="accuracy",
    )  # fmt: skip
    assert result.score > 0.6


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("objective", ["multi:softmax", "multi:softprob"])
@pytest.mark.filterwarnings("ignore:Epsilon is above 10")
def test_classifier(objective, classes):
    X, y = arrays("multiclass" if classes == 3 else "binary")
    names = np.array(["a", "b", "c"])[:classes]
    model = xgb_dp.DPXGBClassifier(
        epsilon=100.0, delta=1e-6, classes=list(names), objective=objective, n_estimators=10
    )
    odds = model.fit(X, names[y.astype(int)]).predict_proba(X)
    assert odds.shape == (len(X), classes)
    np.testing.assert_allclose(odds.sum(axis=1), 1.0, rtol=1e-5)
    np.testing.assert_array_equal(model.predict(X), names[odds.argmax(axis=1)])


@pytest.mark.parametrize("entry", ["fit", "fit_select", "stock"])
def test_classifiers_refuse_margins(entry):
    X, y = arrays()
    given: dict[str, Any] = {"objective": "binary:logitraw", "n_estimators": 2}
    private = xgb_dp.DPXGBClassifier(epsilon=1.0, delta=1e-6, classes=2, **given)
    stock = xgb.XGBClassifier(
        tree_method="dp_hist", dp_epsilon=1.0, dp_delta=1e-6, dp_classes=2, **given
    )
    fits = {
        "fit": lambda: private.fit(X, y),
        "fit_select": lambda: private.fit_select(X, y, {"max_depth": [2]}),
        "stock": lambda: stock.fit(X, y),
    }
    with pytest.raises(PrivacyParameterError, match="predict\\(X, output_margin=True\\)"):
        fits[entry]()
