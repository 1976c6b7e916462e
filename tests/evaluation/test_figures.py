"""Figures against scikit-learn without noise, and against the truth with it."""

from typing import Any

import numpy as np
import pytest
import xgboost as xgb
from sklearn import metrics

import xgb_dp
from tests.evaluation.tasks import TARGET, rows, stock


def expected_error(p: np.ndarray, y: np.ndarray) -> float:
    bins = np.minimum((p * 10).astype(int), 9)
    return sum(abs((y - p)[bins == b].sum()) for b in range(10)) / len(p)


@pytest.fixture(scope="module")
def task() -> tuple[Any, np.ndarray, np.ndarray, np.ndarray]:
    X, y = rows(26_000)
    model = stock(X[:6000], y[:6000])
    test = slice(6000, None)
    return model, X[test], y[test], model.predict(xgb.DMatrix(X[test]))


@pytest.fixture
def report(task: Any, quiet: None) -> Any:
    model, X, y, _ = task
    return xgb_dp.evaluate(model, xgb.DMatrix(X, y), epsilon=10.0, delta=1e-3)


def test_without_noise_figures_are_the_exact_ones(task, report):
    _, _, y, p = task
    up, alert = p >= 0.5, p >= report.at
    exact = {
        "rows": len(y),
        "base_rate": y.mean(),
        "mean_prediction": p.mean(),
        "auc": metrics.roc_auc_score(y, p),
        "average_precision": metrics.average_precision_score(y, p),
        "log_loss": metrics.log_loss(y, p),
        "brier": metrics.brier_score_loss(y, p),
        "ks": max(np.subtract(*metrics.roc_curve(y, p)[1::-1])),
        "accuracy": metrics.accuracy_score(y, up),
        "precision": metrics.precision_score(y, alert),
        "recall": metrics.recall_score(y, alert),
        "f1": metrics.f1_score(y, alert),
        "selection_rate": alert.mean(),
        "calibration_error": expected_error(p, y),
    }
    figures = report.figures()
    assert set(figures) == set(exact)
    for name, value in exact.items():
        slack = {"rows": 1.0, "ks": 3e-3, "calibration_error": 4e-3, "average_precision": 3e-3}.get(
            name, 1.5e-3
        )
        assert float(figures[name]) == pytest.approx(value, abs=slack), name
    for threshold in (0.1, 0.3, 0.73):
        (tn, fp), (fn, tp) = metrics.confusion_matrix(y, p >= threshold)
        confusion = report.confusion(threshold)
        for name, value in (("tn", tn), ("fp", fp), ("fn", fn), ("tp", tp)):
            assert float(confusion[name]) == pytest.approx(value, abs=0.002 * len(y)), name
        for name in ("precision", "recall", "f1"):
            value = getattr(metrics, f"{name}_score")(y, p >= threshold)
            assert float(getattr(report, name)(threshold)) == pytest.approx(value, abs=3e-3), name
        rate = float(np.mean(p >= threshold))
        assert float(report.selection_rate(threshold)) == pytest.approx(rate, abs=2e-3)


def test_curves_without_noise(task, report):
    _, _, y, p = task
    wrong, right, thresholds = report.roc()
    exact = metrics.roc_curve(y, p)
    np.testing.assert_allclose(right, np.interp(wrong, *exact[:2]), atol=0.015)
    assert np.all(np.diff(thresholds) > 0) and np.all(np.diff(wrong) <= 0)
    assert (wrong[0], right[0], wrong[-1], right[-1]) == (1.0, 1.0, 0.0, 0.0)
    area = float(np.trapezoid(right[::-1], wrong[::-1]))
    assert area == pytest.approx(float(report.auc), abs=1e-3)
    for mean, rate, count in report.calibration_curve():
        inside = np.abs(p - np.floor(mean * 10) / 10 - 0.05) <= 0.05
        assert count == pytest.approx(inside.sum(), rel=0.03)
        assert mean == pytest.approx(p[inside].mean(), abs=3e-3)
        assert float(rate) == pytest.approx(y[inside].mean(), abs=8e-3)
    exact_precision, exact_recall, _ = metrics.precision_recall_curve(y, p)
    for share in (0.2, 0.5, 0.9):
        value = float(np.interp(share, exact_recall[::-1], exact_precision[::-1]))
        assert float(report.precision_at(share)) == pytest.approx(value, abs=6e-3)
        value = y[np.argsort(-p)[: int(share * len(y))]].mean() / y.mean()
        assert float(report.lift(share)) == pytest.approx(value, abs=6e-3)
    assert float(report.lift(1.0)) == pytest.approx(1.0)
    assert float(report.precision_at(1.0)) == pytest.approx(y.mean(), abs=1e-3)
    for wrong in (0.0, 1.5, np.nan, "all"):
        for curve in (report.lift, report.precision_at):
            with pytest.raises(xgb_dp.PrivacyParameterError):
                curve(wrong)


def test_released_thresholds(task, report):
    """The default selects as many rows as are positive; others have the selection rate given."""
    _, _, y, p = task
    for at, rate in (
        (report.at, y.mean()),
        *((report.threshold(selection_rate=rate), rate) for rate in (0.01, 0.2, 0.7, 1.0)),
    ):
        selected = np.mean(p >= at)
        assert float(report.selection_rate(at)) == pytest.approx(selected, abs=2e-3)
        nearest = min(report.roc()[2][:-1], key=lambda t, r=rate: abs(np.mean(p >= t) - r))
        assert abs(selected - rate) <= abs(np.mean(p >= nearest) - rate) + 4e-3
    assert report.f1() == report.f1(report.at) == report.figures()["f1"]
    assert f"at the threshold {report.at:.4g}" in report.statement()
    for wrong in ({}, {"selection_rate": 0.0}, {"selection_rate": 0.5, "cost": (1, 1)}):
        with pytest.raises(xgb_dp.PrivacyParameterError, match="selection_rate"):
            report.threshold(**wrong)


@pytest.mark.usefixtures("known")
def test_rare_positives_have_a_recall(task):
    """At 0.5 hardly any of them is found."""
    _, X, y, _ = task
    kept = (y == 0) | (np.arange(len(y)) % 12 == 0)
    model = stock(X[kept], y[kept])
    report = xgb_dp.evaluate(model, (X[kept], y[kept]), by={4: [0, 1]}, **TARGET)
    assert float(report.recall(0.5)) < 0.1 < 0.25 < report.recall().low
    assert {view.at for view in report.groups.values()} == {report.at}


def test_the_threshold_with_the_least_cost(task, report):
    _, _, y, p = task
    chosen = report.threshold({"fp": 1.0, "fn": 5.0})

    def cost(threshold: float) -> float:
        up = p >= threshold
        return float(np.mean(up * (1 - y) + 5.0 * ~up * y))

    best = min(cost(t) for t in np.linspace(0.01, 0.99, 99))
    assert cost(chosen) <= best + 2e-3
    threshold, figure = report.best_threshold(1.0, 5.0)
    assert threshold == chosen and float(figure) == pytest.approx(cost(chosen), abs=2e-3)


@pytest.mark.usefixtures("quiet")
def test_groups_are_those_of_the_column(task):
    model, X, y, p = task
    report = xgb_dp.evaluate(model, (X, y), epsilon=10.0, delta=1e-3, by={4: [0, 1]})
    assert list(report.groups) == ["0", "1", "other"]
    for name, inside in (("0", X[:, 4] == 0), ("1", X[:, 4] == 1), ("other", X[:, 4] == 2)):
        view = report.groups[name]
        assert float(view.auc) == pytest.approx(
            metrics.roc_auc_score(y[inside], p[inside]), abs=2e-3
        )
        assert float(view.rows) == pytest.approx(inside.sum(), rel=1e-2)
    assert float(report.auc) == pytest.approx(metrics.roc_auc_score(y, p), abs=1.5e-3)


@pytest.mark.usefixtures("known")
def test_with_noise_intervals_hold_the_figures(task):
    model, X, y, p = task
    exact = metrics.roc_auc_score(y, p), metrics.log_loss(y, p), expected_error(p, y)
    errors = []
    for seed in range(6):
        inside = np.random.default_rng(seed).choice(len(y), 10_000, replace=False)
        report = xgb_dp.evaluate(model, (X[inside], y[inside]), epsilon=0.5, delta=1e-6)
        figures = report.auc, report.log_loss, report.calibration_error
        for figure, truth in zip(figures, exact, strict=True):
            assert figure.low <= float(figure) <= figure.high
            errors.append(figure.low <= truth <= figure.high)
        # Four deviations of the noise, which the report itself says.
        assert (
            abs(float(report.auc) - metrics.roc_auc_score(y[inside], p[inside]))
            < 4 * report.auc.noise
        )
        assert report.auc.noise < 0.005
    assert np.mean(errors) > 0.7


@pytest.mark.usefixtures("known")
@pytest.mark.parametrize("n", [0, 1, 30])
def test_hardly_any_rows_say_so(n):
    X, y = rows(3000)
    model = stock(X, y)
    report = xgb_dp.evaluate(model, (X[:n], y[:n]), **TARGET)
    assert report.auc.high - report.auc.low > 0.2
    for figure in report.figures().values():
        assert np.isfinite([figure.value, figure.low, figure.high]).all()
    assert "rows" in report.summary()


def test_views_of_a_report():
    X, y = rows(3000)
    report = xgb_dp.evaluate(stock(X, y), (X, y), by={4: [0, 1, 2]}, **TARGET)
    frame = report.to_frame()
    assert frame.loc[("all", "auc"), "value"] == float(report.auc)
    assert set(frame.index.get_level_values(0)) == {"all", "0", "1", "2", "other"}
    assert '"auc"' in report.to_json()
    assert repr(report) == report.summary()
    assert report.summary().count("  auc") == 4
    assert "Group other\n  too few rows to distinguish from noise" in report.summary()
    assert "1e-06)-differentially private for adding or removing any one row" in report.statement()
    with pytest.raises(AttributeError):
        _ = report.nothing_of_that_name
    for cost in (None, (1,), {"fp": 1}, (-1, 2), (0, 0), ("a", 1)):
        with pytest.raises(xgb_dp.PrivacyParameterError, match="cost"):
            report.threshold(cost)
