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
    assert np.nanmax(plotting.plot_lift(report).lines[0].get_ydata()) > 1.5
    plotting.plot_roc(report.groups["1"])


def test_groups(report):
    ax = plotting.plot_groups(report, "accuracy")
    assert [label.get_text() for label in ax.get_yticklabels()] == ["all", "0", "1", "2", "other"]
    assert ax.lines[1].get_xdata()[0] == pytest.approx(float(report.accuracy()))


def test_other_reports_are_refused(report):
    X, y = rows(500)
    plain = xgb_dp.evaluate(stock(X, y), (X, y), **TARGET)
    plot_groups, plot_roc = plotting.plot_groups, plotting.plot_roc
    for plot, *wrong in ((plot_groups, plain), (plot_groups, report, "nothing"), (plot_roc, 3)):
        with pytest.raises(xgb_dp.PrivacyParameterError):
            plot(*wrong)
