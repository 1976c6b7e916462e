"""Plots show what the report says."""

from typing import Any

import matplotlib as mpl
import numpy as np
import pytest

import xgb_dp
from tests.evaluation.tasks import TARGET, rows, stock
from xgb_dp import plotting

mpl.use("Agg")


@pytest.fixture(scope="module")
def report() -> Any:
    X, y = rows(4000)
    return xgb_dp.evaluate(stock(X, y), (X, y), by={4: [0, 1, 2]}, **TARGET)


def test_curves(report):
    line = plotting.plot_roc(report).lines[0]
    np.testing.assert_allclose(line.get_xydata().T, report.roc()[:2])
    assert len(plotting.plot_calibration(report).containers[0].lines[0].get_xdata()) == len(
        report.calibration_curve()
    )
    lift = plotting.plot_lift(report)
    assert np.nanmax(lift.lines[0].get_ydata()) > 1.5
    drawn(lift, report.lift)
    drawn(plotting.plot_precision_recall(report), report.precision_at)
    plotting.plot_roc(report.groups["1"])


def drawn(ax: Any, figure: Any) -> None:
    """The line has the values of a figure, and the band its intervals."""
    shares, values = ax.lines[0].get_xydata().T
    figures = [figure(share) for share in shares]
    np.testing.assert_allclose(values, list(map(float, figures)))
    band = ax.collections[0].get_paths()[0].vertices[:, 1]
    assert {f.low for f in figures} | {f.high for f in figures} <= set(band)


@pytest.mark.parametrize("objective", ["count:poisson", "reg:gamma", "reg:tweedie"])
def test_counts_and_amounts(objective):
    X, y = rows(4000)
    labels = 0.5 + y
    model = stock(X, labels, objective=objective)
    report = xgb_dp.evaluate(model, (X, labels), target_bounds=(0.1, 4), epsilon=4.0, delta=1e-6)
    drawn(plotting.plot_lift(report), report.lift)
    ax = plotting.plot_calibration(report)
    shown = ax.containers[0].lines[0].get_xydata()
    points = [(mean, float(label)) for mean, label, _ in report.calibration_curve()]
    np.testing.assert_allclose(shown, points)
    assert ax.get_ylabel() == "mean label" and len(points) > 3


def test_double_lift():
    X, y = rows(4000)
    labels = 0.5 + y
    models = [stock(X, labels, objective="reg:gamma", max_depth=depth) for depth in (1, 4)]
    report = xgb_dp.evaluate(models, (X, labels), target_bounds=(0.1, 4), epsilon=4.0, delta=1e-6)
    lines = plotting.plot_double_lift(report).lines
    points = report.double_lift()
    for place, line in enumerate(lines, 1):
        np.testing.assert_allclose(line.get_ydata(), [float(point[place]) for point in points])
    assert len(lines) == 3 and len(points) > 2


def test_groups(report):
    ax = plotting.plot_groups(report, "accuracy")
    assert [label.get_text() for label in ax.get_yticklabels()] == ["all", "0", "1", "2", "other"]
    assert ax.lines[1].get_xdata()[0] == pytest.approx(float(report.accuracy()))


def test_other_reports_are_refused(report):
    X, y = rows(500)
    plain = xgb_dp.evaluate(stock(X, y), (X, y), **TARGET)
    plot_groups, plot_roc = plotting.plot_groups, plotting.plot_roc
    numbers = stock(X, X[:, 0], objective="reg:squarederror")
    errors = xgb_dp.evaluate(numbers, (X, X[:, 0]), target_bounds=(-4, 4), **TARGET)
    for plot, *wrong in (
        (plot_groups, plain),
        (plot_groups, report, "nothing"),
        (plot_roc, 3),
        (plotting.plot_lift, errors),
        (plotting.plot_double_lift, errors),
        (plotting.plot_calibration, errors),
        (plotting.plot_precision_recall, errors),
    ):
        with pytest.raises(xgb_dp.PrivacyParameterError):
            plot(*wrong)
