"""Plots of reports: epsilon, the budget of a training, scores, and the curves of an evaluation."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ..accounting import Unit
from ..errors import PrivacyParameterError, PrivacyRefusal
from ..record.privacy_report import PrivacyReport, privacy_report


def new_axes(ax: Any, width: float = 6.4, height: float = 4.2) -> Any:
    """The given matplotlib axes, or new ones of this size in inches."""
    if ax is None:
        import matplotlib.pyplot as plt

        _, ax = plt.subplots(figsize=(width, height), layout="constrained")
    ax.spines[["top", "right"]].set_visible(False)
    return ax


def labelled(ax: Any, title: str, x: str, y: str = "") -> Any:
    """The axes with a title, at the left above them, and with labels."""
    ax.set_title(title, loc="left", fontsize=11)
    ax.set(xlabel=x, ylabel=y)
    return ax


def _report(model: Any) -> PrivacyReport:
    report = model if isinstance(model, PrivacyReport) else privacy_report(model)
    if not report.private:
        raise PrivacyRefusal(
            "This model is not differentially private, so it has no budget and no finite epsilon "
            "to draw. Train with a finite dp_epsilon."
        )
    return report


def plot_epsilon(
    model: Any, deltas: Sequence[float] | None = None, group: int | None = None, ax: Any = None
) -> Any:
    """Draw epsilon(delta), every point of which the model guarantees.

    Privacy: free post-processing.

    Args:
        model: A private model as :func:`xgb_dp.privacy_report` takes it, or its report.
        deltas: Failure probabilities; by default 1e-3 to 1e-12.
        group: Rows, or persons, added or removed together; by default so many as the model was
            calibrated for.
        ax: matplotlib axes; new ones by default.

    Returns:
        matplotlib.axes.Axes: With the target delta as a dot.

    Raises:
        PrivacyRefusal: The model is not private.
        LedgerError: The model carries no ledger.

    Examples:
        >>> ax = xgb_dp.plotting.plot_epsilon(model, group=1)
        >>> ax.get_xlabel(), ax.get_ylabel()
        ('delta', 'epsilon')
    """
    report = _report(model)
    unit = report.unit if group is None else replace(report.unit, group=group)
    used = [d for d, _ in report.epsilon_curve(deltas)]
    values = [report.get_epsilon(d, unit.group) for d in used]
    ax = new_axes(ax)
    ax.plot(used, values, color="C0", linewidth=1.8, label="guaranteed for every delta")
    if report.delta > 0:
        epsilon = report.get_epsilon(report.delta, unit.group)
        ax.plot([report.delta], [epsilon], "o", color="C1", label="the delta of the report")
        ax.annotate(
            f"({epsilon:.3g}, {report.delta:g})",
            (report.delta, epsilon),
            (8, 4),
            textcoords="offset points",
        )
    ax.set_xscale("log")
    ax.set_ylim(bottom=0)
    ax.legend(loc="upper right", frameon=False, fontsize=9)
    shown = "epsilon" if unit == Unit() else f"epsilon for {unit.label}"
    return labelled(ax, "What the model guarantees", "delta", shown)


def plot_budget(model: Any, ax: Any = None) -> Any:
    """Draw how the budget is divided: the part of mu^2 that each kind of release has spent.

    Privacy: free post-processing.

    Args:
        model: A private model as :func:`xgb_dp.privacy_report` takes it, or its report.
        ax: matplotlib axes; new ones by default.

    Returns:
        matplotlib.axes.Axes: One bar for each kind of release, with the epsilon that it alone
        would cost.

    Raises:
        PrivacyRefusal: The model is not private.
        LedgerError: The model carries no ledger.

    Examples:
        >>> ax = xgb_dp.plotting.plot_budget(model)
        >>> ax.get_xlabel()
        'share of the budget in % (epsilon alone at delta = 1e-06)'
    """
    report = _report(model)
    spent = report.spending()
    ax = new_axes(ax, height=0.7 + 0.55 * len(spent))
    names = [f"{s.release} ({s.count}x)" for s in spent]
    bars = ax.barh(names, [100 * s.share for s in spent], color="C0")
    ax.bar_label(bars, [f"{100 * s.share:.1f}%, alone {s.epsilon:.3g}" for s in spent], padding=4)
    ax.margins(x=0.35)
    ax.invert_yaxis()
    share = f"share of the budget in % (epsilon alone at delta = {report.delta:g})"
    return labelled(ax, "What the budget was spent on", share)


def plot_scores(
    scores: Mapping[float, Sequence[float]],
    *,
    baseline: float | None = None,
    metric: str = "test AUC",
    delta: float | None = None,
    ax: Any = None,
) -> Any:
    """Draw scores of models against their epsilon: each run as a dot, means as a line.

    Privacy: the scores are yours. An exact score of private rows is a release of its own, which no
    report covers; each model spends its own epsilon.

    Args:
        scores: Epsilon of one model -> scores of models with that epsilon.
        baseline: Score of a model that is not private, drawn as a dashed line.
        metric: Name of the score.
        delta: For the label of the axis.
        ax: matplotlib axes; new ones by default.

    Returns:
        matplotlib.axes.Axes: Epsilon on a logarithmic scale.

    Raises:
        PrivacyParameterError: Nothing to draw, or an epsilon that is not positive and finite.

    Examples:
        >>> ax = xgb_dp.plotting.plot_scores({0.5: [0.71, 0.73], 1.0: [0.78, 0.79]}, baseline=0.83)
        >>> ax.get_ylabel()
        'test AUC'
    """
    runs = {e: np.atleast_1d(np.asarray(scores[e], dtype=float)) for e in sorted(scores)}
    if not runs or any(not 0 < e < math.inf or not len(run) for e, run in runs.items()):
        raise PrivacyParameterError(
            "`scores` must map each positive, finite epsilon to at least one score."
        )
    ax = new_axes(ax)
    if baseline is not None:
        ax.axhline(baseline, color="0.35", linestyle="--", linewidth=1.2)
        ax.annotate(
            f"not private: {baseline:.3f}",
            (0.01, baseline),
            xycoords=("axes fraction", "data"),
            xytext=(0, 4),
            textcoords="offset points",
            color="0.35",
        )
    _draw_runs(ax, runs)
    known = "" if delta is None else f" (delta = {delta:g})"
    budget = f"epsilon, the privacy budget of one model{known}"
    return labelled(ax, f"What privacy costs: {metric} against epsilon", budget, metric)


def _draw_runs(ax: Any, runs: Mapping[float, np.ndarray]) -> None:
    means = {epsilon: float(np.mean(scores)) for epsilon, scores in runs.items()}
    line = {"marker": "o", "color": "C0", "linewidth": 1.8, "label": "mean of the models"}
    ax.plot(list(means), list(means.values()), **line)
    label: str | None = "one model"
    for epsilon, scores in runs.items():
        ax.plot([epsilon] * len(scores), scores, ".", color="C0", alpha=0.45, label=label)
        label = None
        mean = means[epsilon]
        ax.annotate(f"{mean:.3f}", (epsilon, mean), (8, -12), textcoords="offset points")
    ax.set_xscale("log")
    ax.set_xticks(list(runs), [f"{epsilon:g}" for epsilon in runs])
    ax.minorticks_off()
    ax.margins(x=0.12, y=0.18)
    ax.legend(loc="lower right", frameon=False, fontsize=9)


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
