"""Reports, evaluations and calibrations of estimators, and of pipelines that end in one."""

import pickle

import numpy as np
import pandas as pd
import pytest
import xgboost as xgb

pytest.importorskip("sklearn")
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

import xgb_dp
from xgb_dp import PrivacyParameterError, PrivacyRefusal

rng = np.random.default_rng(0)
X = pd.DataFrame(rng.normal(size=(2000, 3)), columns=["a", "b", "c"])
y = np.where(X["a"] + 0.5 * rng.normal(size=2000) > 0.8, "yes", "no")
SPEND = {"epsilon": 2.0, "delta": 1e-6}


def classifier() -> xgb_dp.DPXGBClassifier:
    return xgb_dp.DPXGBClassifier(**SPEND, classes=["no", "yes"], n_estimators=8, n_jobs=1)


@pytest.fixture(scope="module")
def estimator():
    return classifier().fit(X, y)


@pytest.fixture(scope="module")
def by_row():
    return make_pipeline(FunctionTransformer(np.exp), classifier()).fit(X, y)


@pytest.fixture(scope="module")
def scaled():
    with pytest.warns(xgb_dp.PrivacyWarning, match="scaler"):
        return make_pipeline(StandardScaler(), classifier()).fit(X, y)


@pytest.mark.parametrize("kind", ["estimator", "by_row"])
def test_what_is_calibrated_stays_what_it_is(kind, request, tmp_path):
    model = request.getfixturevalue(kind)
    before = model.predict_proba(X)
    judged = xgb_dp.evaluate(model, (X, y), **SPEND)
    calibrated = judged.calibrated(model)
    assert type(calibrated) is type(model) and (model.predict_proba(X) == before).all()
    odds = calibrated.predict_proba(X)
    assert not np.allclose(odds, before) and np.allclose(odds.sum(axis=1), 1.0)
    assert (calibrated.predict(X) == calibrated.classes_[odds.argmax(axis=1)]).all()
    assert (pickle.loads(pickle.dumps(calibrated)).predict_proba(X) == odds).all()
    last = calibrated if kind == "estimator" else calibrated[-1]
    booster = last.get_booster()
    margins = xgb_dp.privacy_report(calibrated)
    assert margins.record.releases[-1].name == "evaluation 1"
    assert margins.epsilon > xgb_dp.privacy_report(model).epsilon
    assert "an evaluation of the model on private rows" in xgb_dp.model_card(calibrated)
    assert xgb_dp.verify(calibrated).verdict == "passed"
    booster.save_model(tmp_path / "m.json")
    loaded = xgb_dp.DPXGBClassifier(classes=["no", "yes"])
    loaded.load_model(tmp_path / "m.json")
    seen = X if kind == "estimator" else np.exp(X)
    assert np.allclose(loaded.predict_proba(seen), odds)
    fresh = clone(calibrated)
    assert not hasattr(fresh if kind == "estimator" else fresh[-1], "_Booster")


def test_a_pipeline_is_judged_like_its_last_step(by_row):
    report = xgb_dp.privacy_report(by_row)
    assert report.epsilon == by_row[-1].privacy_report_.epsilon and report.steps == ()
    assert xgb_dp.privacy_report(make_pipeline(by_row)).epsilon == report.epsilon
    judged = xgb_dp.evaluate(by_row, (X, y), **SPEND, by={"a": [0.0]})
    alone = xgb_dp.evaluate(by_row[-1], (np.exp(X), y), **SPEND)
    assert float(judged.auc) == pytest.approx(float(alone.auc), abs=0.05)
    assert xgb_dp.verify(by_row).verdict == "passed"
    with pytest.raises(PrivacyParameterError, match="a pair"):
        xgb_dp.evaluate(by_row, xgb.DMatrix(X, y == "yes"), **SPEND)
    with pytest.raises(PrivacyParameterError, match="Pipelines cannot be compared"):
        xgb_dp.evaluate([by_row, by_row], (X, y), **SPEND)


def test_steps_that_were_fitted_are_not_covered(scaled):
    report = xgb_dp.privacy_report(scaled)
    assert report.steps == ("standardscaler (StandardScaler)",)
    assert report.statement().count("standardscaler") == 1
    with pytest.raises(PrivacyRefusal, match="trees need no scaling: remove it"):
        xgb_dp.evaluate(scaled, (X, y), **SPEND)
    checked = xgb_dp.verify(scaled)
    assert checked.verdict == "failed"
    assert "step standardscaler" in checked.checks[-1].detail


def test_steps_that_were_fitted_elsewhere_are_told(estimator):
    late = make_pipeline(StandardScaler().fit(X), estimator)
    assert "NOT COVERED" not in xgb_dp.privacy_report(estimator).statement()
    assert "NOT COVERED" in xgb_dp.privacy_report(late).statement()
    assert "NOT COVERED" in xgb_dp.model_card(late)
