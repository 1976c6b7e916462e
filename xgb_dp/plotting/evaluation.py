"""Plots of a private evaluation: ROC, calibration, lift and groups."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import PrivacyParameterError
from .privacy import labelled, new_axes


def _curve(report: Any, name: str) -> Any:
    curve = getattr(report, name, None)
    if curve is None:
        raise PrivacyParameterError(
            f"`report` has no {name.replace('_', ' ')}: it must be the report of an evaluation of "
            "a model of two classes, or one of its groups."
        )
    return curve()


def plot_roc(report: Any, ax: Any = None) -> Any:
    """Draw the ROC curve of an evaluation.

    Privacy: free post-processing.

    Args:
        report: Result of :func:`xgb_dp.evaluate` for two classes, or one of its groups.
        ax: matplotlib axes; new ones by default.

    Returns:
        matplotlib.axes.Axes: With the area and its interval in the legend.

    Raises:
        PrivacyParameterError: Another report.

    Examples:
        >>> ax = xgb_dp.plotting.plot_roc(judged)
        >>> ax.get_xlabel()
        'rate of false positives'
    """
    false, true, _ = _curve(report, "roc")
    ax = new_axes(ax, 4.4, 4.2)
    ax.plot(false, true, color="C0", linewidth=1.8, label=f"AUC {report.auc}")
    ax.plot([0, 1], [0, 1], color="0.7", linewidth=0.8, label="guessing")
    ax.legend(loc="lower right", frameon=False)
    return labelled(ax, "ROC curve", "rate of false positives", "rate of true positives")


def plot_calibration(report: Any, ax: Any = None) -> Any:
    """Draw the share of positive rows against the predicted probability, with intervals.

    Privacy: free post-processing.

    Args:
        report: Result of :func:`xgb_dp.evaluate` for two classes, or one of its groups.
        ax: matplotlib axes; new ones by default.

    Returns:
        matplotlib.axes.Axes

    Raises:
        PrivacyParameterError: Another report.

    Examples:
        >>> ax = xgb_dp.plotting.plot_calibration(judged)
        >>> ax.get_xlabel()
        'predicted probability'
    """
    points = _curve(report, "calibration_curve")
    ax = new_axes(ax, 4.4, 4.2)
    means = [mean for mean, _, _ in points]
    rates = [rate for _, rate, _ in points]
    below = [float(rate) - rate.low for rate in rates]
    above = [rate.high - float(rate) for rate in rates]
    ax.plot([0, 1], [0, 1], color="0.7", linewidth=0.8, label="perfectly calibrated")
    ax.errorbar(
        means,
        [float(rate) for rate in rates],
        [below, above],
        fmt="o-",
        color="C0",
        linewidth=1.4,
        markersize=4,
        label="the model, with 95% intervals",
    )
    ax.legend(loc="upper left", frameon=False, fontsize=9)
    title = f"Calibration, error {report.calibration_error}"
    return labelled(ax, title, "predicted probability", "share of positive rows")


def plot_lift(report: Any, ax: Any = None) -> Any:
    """Draw how many times the base rate the rows with the highest scores have.

    Privacy: free post-processing.

    Args:
        report: Result of :func:`xgb_dp.evaluate` for two classes, or one of its groups.
        ax: matplotlib axes; new ones by default.

    Returns:
        matplotlib.axes.Axes

    Raises:
        PrivacyParameterError: Another report.

    Examples:
        >>> ax = xgb_dp.plotting.plot_lift(judged)
        >>> ax.get_xlabel()
        'share of rows with the highest scores'
    """
    chosen, lift = _curve(report, "lift")
    ax = new_axes(ax)
    known = np.isfinite(lift) & (chosen > 0.01)  # of fewer rows noise is all there is
    ax.plot(chosen[known], lift[known], color="C0", linewidth=1.8, label="the model")
    ax.axhline(1.0, color="0.7", linewidth=0.8, label="a random choice of rows")
    ax.legend(loc="upper right", frameon=False, fontsize=9)
    return labelled(ax, "Lift", "share of rows with the highest scores", "lift")


def plot_groups(report: Any, figure: str = "auc", ax: Any = None) -> Any:
    """Draw a figure of each group with its interval, beside that of all rows.

    Privacy: free post-processing.

    Args:
        report: Result of :func:`xgb_dp.evaluate` with groups.
        figure: Name of the figure, as in ``report.figures()``.
        ax: matplotlib axes; new ones by default.

    Returns:
        matplotlib.axes.Axes

    Raises:
        PrivacyParameterError: There are no groups, or no such figure.

    Examples:
        >>> region = np.arange(2000) % 2
        >>> rows = xgb.DMatrix(np.c_[table[:, :2], region], label, feature_names=data.feature_names)
        >>> report = xgb_dp.evaluate(model, rows, epsilon=0.5, delta=1e-6, by={"days": [0, 1]})
        >>> ax = xgb_dp.plotting.plot_groups(report, "accuracy")
        >>> ax.get_xlabel()
        'accuracy'
    """
    groups = getattr(report, "groups", None)
    if not groups:
        raise PrivacyParameterError("`report` has no groups: evaluate(..., by=...) gives them.")
    shown = {name: view.figures() for name, view in {"all": report, **groups}.items()}
    if figure not in shown["all"]:
        raise PrivacyParameterError(
            f"`figure` must be one of {', '.join(map(repr, shown['all']))}."
        )
    ax = new_axes(ax)
    for place, (name, figures) in enumerate(shown.items()):
        value, color = figures[figure], "C1" if name == "all" else "C0"
        ax.plot([value.low, value.high], [place, place], color=color)
        ax.plot([float(value)], [place], "o", color=color)
    ax.set_yticks(range(len(shown)), list(shown))
    ax.invert_yaxis()
    label = figure.replace("_", " ").replace("auc", "AUC")
    return labelled(ax, f"{label} of each group, with 95% intervals", label)
