"""Recalibrated models: what they predict, everywhere alike, and what their ledgers say."""

from typing import Any

import numpy as np
import pytest
import xgboost as xgb

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
