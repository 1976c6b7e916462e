"""Recalibrated models: what they predict, everywhere alike, and what their ledgers say."""

from typing import Any

import numpy as np
import pytest
import xgboost as xgb

import xgb_dp
from tests.evaluation.tasks import PRIVATE, TARGET, refused, rows, stock


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
    for objective in ("reg:absoluteerror", "reg:quantileerror"):
        values = stock(X, X[:, 0], objective=objective, quantile_alpha=0.5)
        other = xgb_dp.evaluate(values, (X, X[:, 0]), error_bound=1.0, **TARGET)
        with pytest.raises(xgb_dp.PrivacyParameterError, match="two classes"):
            other.calibrated(values)


MEANS = {
    "reg:squarederror": (-10.0, 10.0),
    "reg:pseudohubererror": (-10.0, 10.0),
    "count:poisson": (0.0, 8.0),
    "reg:gamma": (0.01, 8.0),
    "reg:tweedie": (0.0, 8.0),
}


@pytest.mark.parametrize("objective", MEANS)
def test_means_are_corrected(objective, tmp_path):
    """Labels of the evaluated rows are higher than those of the training."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(24_000, 2)).astype(np.float32)
    y = np.clip(2.0 + X[:, 0] + rng.normal(size=len(X)), 0.1, 6.0).round(1)
    params = {"tree_method": "dp_hist", "dp_epsilon": 2.0, "dp_delta": 1e-6, "nthread": 1,
              "dp_feature_bounds": dict.fromkeys(range(2), (-4.0, 4.0)),
              "objective": objective, "dp_target_bounds": MEANS[objective]}  # fmt: skip
    model = xgb.train(params, xgb.DMatrix(X, np.maximum(0.7 * y, 0.05)), 8)
    report = xgb_dp.evaluate(model, (X, y), epsilon=4.0, delta=1e-6)
    calibrated = report.calibrated(model)
    moved = (
        np.subtract if objective in ("reg:squarederror", "reg:pseudohubererror") else np.divide
    )(calibrated.predict(xgb.DMatrix(X)), model.predict(xgb.DMatrix(X)))
    np.testing.assert_allclose(moved, moved[0], rtol=1e-3)
    before, after = (m.predict(xgb.DMatrix(X)).mean() for m in (model, calibrated))
    assert before < 0.85 * y.mean() and after == pytest.approx(y.mean(), rel=0.03)
    path = tmp_path / "model.ubj"
    calibrated.save_model(path)
    loaded = xgb.Booster(model_file=path)
    np.testing.assert_array_equal(
        loaded.predict(xgb.DMatrix(X)), calibrated.predict(xgb.DMatrix(X))
    )
    assert xgb_dp.verify(path).verdict == "passed"
    whole = xgb_dp.privacy_report(path)
    (shown,) = whole.ledger["trainings"][-1]["public"]["evaluations"]
    assert shown["method"] == "mean" and shown["slope"] == 1.0
    events = [event.label for event in whole.record.events]
    assert events[-1] == "evaluation" and whole.epsilon > xgb_dp.privacy_report(model).epsilon
    again = xgb_dp.evaluate(calibrated, (X, y), epsilon=4.0, delta=1e-6)
    assert abs(float(again.bias)) < 4.0 * again.bias.noise + 0.05


def test_rows_with_exposures_are_corrected():
    """Their base margin replaces the intercept."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(16_000, 2)).astype(np.float32)
    exposure = rng.uniform(0.2, 1.0, len(X))
    y = np.minimum(rng.poisson(exposure * np.exp(0.5 * X[:, 0])), 8).astype(float)
    params = {"tree_method": "dp_hist", "dp_epsilon": 2.0, "dp_delta": 1e-6, "nthread": 1,
              "objective": "count:poisson", "dp_target_bounds": (0, 8),
              "dp_base_margin": True, "dp_exposure_bounds": (0.2, 1.0)}  # fmt: skip
    fewer = xgb.DMatrix(X, np.floor(0.6 * y), base_margin=np.log(exposure))
    model, data = xgb.train(params, fewer, 8), xgb.DMatrix(X, y, base_margin=np.log(exposure))
    calibrated = xgb_dp.evaluate(model, data, epsilon=4.0, delta=1e-6).calibrated(model)
    assert model.predict(data).mean() < 0.8 * y.mean()
    assert calibrated.predict(data).mean() == pytest.approx(y.mean(), rel=0.05)


@pytest.mark.parametrize("log", [False, True])
def test_noise_alone_does_not_move_predictions(log):
    rng = np.random.default_rng(0)
    labels, X = rng.poisson(1.0, 400).astype(float), rng.normal(size=(400, 2))
    model = stock(X, labels, objective="count:poisson" if log else "reg:squarederror")
    moves = []
    for _ in range(12):
        report = xgb_dp.evaluate(model, (X, labels), epsilon=0.3, delta=1e-6, target_bounds=(0, 9))
        figure = report.mean_ratio if log else report.bias
        moves.append(report.mean_offset(log=log))
        value = np.log(max(float(figure), 1e-9)) if log else float(figure)
        noise = figure.noise / max(float(figure), 1e-9) if log else figure.noise
        assert abs(moves[-1]) <= abs(value) and moves[-1] * value <= 0.0
        assert (moves[-1] == 0.0) == (abs(value) <= noise)
    assert 0.0 in moves


def test_a_model_of_persons_is_calibrated_for_their_rows():
    """Persons with many rows have more positives, which a model per person hardly counts."""
    rng = np.random.default_rng(0)
    count = rng.choice([1, 8], size=6000, p=[0.8, 0.2])
    ids = np.repeat(np.arange(6000), count)
    X = rng.normal(size=(len(ids), 3)).astype(np.float32)
    y = (rng.random(len(ids)) < np.where(count[ids] > 1, 0.5, 0.1)).astype(int)
    bounds = dict.fromkeys(range(3), (-4.0, 4.0))
    params = {**PRIVATE, "dp_feature_bounds": bounds, "dp_privacy_id": ids}
    model = xgb.train(params, xgb.DMatrix(X, y), 3)
    given = {"privacy_id": ids, "max_rows_per_person": 8, "epsilon": 2.0, "delta": 1e-6}
    report = xgb_dp.evaluate(model, (X, y), **given)
    assert abs(float(report.base_rate) - y.mean()) < 4 * report.base_rate.noise
    assert abs(float(report.rows) - len(y)) < 4 * report.rows.noise + 8
    assert sum(map(float, report.confusion().values())) == pytest.approx(len(y), rel=0.05)
    assert "Figures are per row" in report.statement() and "All rows" in report.summary()
    calibrated = report.calibrated(model)
    before, after = (m.predict(xgb.DMatrix(X)).mean() for m in (model, calibrated))
    assert before < y.mean() - 0.1 and abs(after - y.mean()) < 0.03
    whole = xgb_dp.privacy_report(calibrated)
    assert {event.unit for event in whole.record.events} == {"person"}
    assert xgb_dp.verify(calibrated).verdict == "passed"
    trained = xgb_dp.privacy_report(model).epsilon
    assert trained < whole.epsilon < trained + 2.0


def test_rows_per_person_need_ids():
    X, y = rows(200)
    refused(xgb_dp.PrivacyParameterError, "requires ids", stock(X, y), (X, y),
            max_rows_per_person=3)  # fmt: skip
    for wrong in (0, 257, 1.5, "many"):
        refused(xgb_dp.PrivacyParameterError, "max_rows_per_person", stock(X, y), (X, y),
                privacy_id=np.arange(200), max_rows_per_person=wrong)  # fmt: skip


def test_units_do_not_mix():
    X, y = rows(2000)
    model = xgb.train(PRIVATE, xgb.DMatrix(X, y), 3)
    report = xgb_dp.evaluate(model, (X, y), privacy_id=np.arange(2000) // 2, **TARGET)
    with pytest.raises(xgb_dp.PrivacyRefusal, match="unit"):
        report.calibrated(model)
