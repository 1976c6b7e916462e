"""Recalibrated models: what they predict, everywhere alike, and what their ledgers say."""

import json
from typing import Any

import numpy as np
import pytest
import xgboost as xgb
from sklearn import metrics

import xgb_dp
from tests.evaluation.tasks import PRIVATE, TARGET, rows, stock


@pytest.mark.parametrize("objective", ["binary:logistic", "binary:logitraw"])
def test_margins_are_moved_and_nothing_else(objective, tmp_path):
    X, y = rows(4000)
    model = xgb.train({**PRIVATE, "objective": objective}, xgb.DMatrix(X, y), 5)
    report = xgb_dp.evaluate(model, (X, y), **TARGET)
    calibrated = report.calibrated(model)
    before = model.predict(xgb.DMatrix(X), output_margin=True)
    after = calibrated.predict(xgb.DMatrix(X), output_margin=True)
    slope, offset = np.polyfit(before, after, 1)
    np.testing.assert_allclose(after, offset + slope * before, atol=1e-4)
    path = tmp_path / "model.json"
    calibrated.save_model(path)
    np.testing.assert_array_equal(
        xgb.Booster(model_file=path).predict(xgb.DMatrix(X), output_margin=True), after
    )
    report_of_file = xgb_dp.privacy_report(path)
    trained = xgb_dp.privacy_report(model)
    labels = [event.label for event in report_of_file.record.events]
    assert labels[:-2] == [event.label for event in trained.record.events]
    assert labels[-2:] == ["evaluation"] * 2 and report_of_file.epsilon > trained.epsilon
    assert report_of_file.epsilon < trained.epsilon + 1.0  # what both cost together
    (shown,) = report_of_file.ledger["trainings"][-1]["public"]["evaluations"]
    assert shown["slope"] == pytest.approx(slope, rel=1e-3) and shown["parallel"] is False
    assert "an evaluation of the model" in report_of_file.statement()
    assert xgb_dp.privacy_report(model).epsilon == trained.epsilon  # a copy


def test_a_biased_model_is_recalibrated():
    X, y = rows(30_000)
    model = stock(X[:3000], y[:3000], scale_pos_weight=6.0, max_depth=6)
    report = xgb_dp.evaluate(model, (X[3000:], y[3000:]), epsilon=0.5, delta=1e-6)
    p = report.calibrated(model).predict(xgb.DMatrix(X[3000:]))
    was = model.predict(xgb.DMatrix(X[3000:]))
    assert abs(was.mean() - y[3000:].mean()) > 0.08
    assert abs(p.mean() - y[3000:].mean()) < 0.01


def test_another_model_or_kind_is_refused():
    X, y = rows(2000)
    model: Any = stock(X, y)
    report = xgb_dp.evaluate(model, (X, y), **TARGET)
    with pytest.raises(xgb_dp.PrivacyParameterError, match="not the model"):
        report.calibrated(stock(X, y, max_depth=2))
    values = stock(X, X[:, 0], objective="reg:squarederror")
    other = xgb_dp.evaluate(values, (X, X[:, 0]), error_bound=1.0, **TARGET)
    with pytest.raises(xgb_dp.PrivacyParameterError, match="two classes"):
        other.calibrated(values)


def test_units_do_not_mix():
    X, y = rows(2000)
    model = xgb.train(PRIVATE, xgb.DMatrix(X, y), 3)
    report = xgb_dp.evaluate(model, (X, y), privacy_id=np.arange(2000) // 2, **TARGET)
    with pytest.raises(xgb_dp.PrivacyRefusal, match="unit"):
        report.calibrated(model)


def bent(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Labels whose log odds are no straight line of what a model of the first column says."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2)).astype(np.float32)
    p = np.where(X[:, 0] > 0.3, 0.8, np.where(X[:, 0] > -0.6, 0.5, 0.1))
    return X, (rng.random(n) < p).astype(int)


def test_a_rising_curve_beats_a_straight_line(tmp_path):
    X, _ = bent(3000, 0)
    soft = stock(X, (np.random.default_rng(3).random(3000) < 1 / (1 + np.exp(-2 * X[:, 0]))))
    X, y = bent(40_000, 1)
    report = xgb_dp.evaluate(soft, (X, y), epsilon=2.0, delta=1e-6)
    curved, straight = (report.calibrated(soft, method=m) for m in ("isotonic", "platt"))
    assert isinstance(curved, xgb_dp.CalibratedModel) and isinstance(straight, xgb.Booster)
    X, y = bent(40_000, 2)
    data = xgb.DMatrix(X)
    p = curved.predict(data)
    assert metrics.log_loss(y, p) < metrics.log_loss(y, straight.predict(data)) - 0.01
    margins = soft.predict(data, output_margin=True)
    order = np.argsort(margins, kind="stable")
    assert (np.diff(p[order]) >= 0).all() and 0 < p.min() < p.max() < 1
    # What is saved is a model of XGBoost, whose margins the curve is for.
    for ending in ("json", "ubj"):
        path = tmp_path / f"model.{ending}"
        curved.save_model(path)
        np.testing.assert_array_equal(xgb_dp.CalibratedModel(path).predict(data), p)
        stored = xgb.Booster(model_file=path)
        np.testing.assert_array_equal(stored.predict(data, output_margin=True), margins)
        shown = json.loads(stored.attr("dp_calibration"))
        interpolated = np.interp(margins.astype(float), shown["margins"], shown["probabilities"])
        np.testing.assert_array_equal(interpolated, p)


def test_a_curve_is_in_the_ledger_and_verified(tmp_path):
    X, y = rows(4000)
    model = xgb.train(PRIVATE, xgb.DMatrix(X, y), 3)
    report = xgb_dp.evaluate(model, (X, y), **TARGET)
    calibrated = report.calibrated(model, method="isotonic")
    path = tmp_path / "model.json"
    calibrated.save_model(path)
    report_of_file = xgb_dp.privacy_report(path)
    assert report_of_file.epsilon > xgb_dp.privacy_report(model).epsilon
    assert report_of_file.ledger["trainings"][-1]["public"]["evaluations"] == [
        {"method": "isotonic", "parallel": False, "events": len(report.cost.events)}
    ]
    assert xgb_dp.verify(path).verdict == "passed"
    # Its own figures are those of the curve.
    again = xgb_dp.evaluate(path, (X, y), **TARGET)
    assert float(again.mean_prediction) == pytest.approx(
        calibrated.predict(xgb.DMatrix(X)).mean(), abs=0.05
    )
    other = xgb.Booster(model_file=path)
    other.set_attr(dp_calibration="[1, 2, 3]")
    other.save_model(path)
    assert xgb_dp.verify(path).verdict == "failed"
    with pytest.raises(xgb_dp.LedgerError, match="damaged"):
        xgb_dp.CalibratedModel(path)


def test_a_curve_is_for_one_model():
    X, y = rows(3000)
    model = stock(X, y)
    report = xgb_dp.evaluate(model, (X, y), **TARGET)
    calibrated = report.calibrated(model, method="isotonic")
    with pytest.raises(xgb_dp.PrivacyParameterError, match="already has a calibration curve"):
        report.calibrated(calibrated.booster)
    with pytest.raises(xgb_dp.PrivacyParameterError, match="has no calibration curve"):
        xgb_dp.CalibratedModel(model)
    with pytest.raises(xgb_dp.PrivacyParameterError, match="`method`"):
        report.calibrated(model, method="spline")
    longer = xgb.train({"nthread": 1}, xgb.DMatrix(X, y), 1, xgb_model=calibrated.booster)
    with pytest.raises(xgb_dp.LedgerError, match="after 15 rounds, but the model now has 16"):
        xgb_dp.CalibratedModel(longer)
