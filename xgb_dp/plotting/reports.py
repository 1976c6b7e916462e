"""Plots of reports: epsilon, privacy budget, and evaluation curves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from ..accounting import Unit
from ..errors import PrivacyParameterError, PrivacyRefusal
from ..evaluation.figures import Figure
from ..record.privacy_report import PrivacyReport, privacy_report


def new_axes(ax: Any, width: float = 6.4, height: float = 4.2) -> Any:
    """Return `ax`, or new matplotlib axes of this size in inches."""
    if ax is None:
        import matplotlib.pyplot as plt

        _, ax = plt.subplots(figsize=(width, height), layout="constrained")
    ax.spines[["top", "right"]].set_visible(False)
    return ax


def labelled(ax: Any, title: str, x: str, y: str = "") -> Any:
    """Set a left-aligned title and axis labels; return the axes."""
    ax.set_title(title, loc="left", fontsize=11)
    ax.set(xlabel=x, ylabel=y)
    return ax


def _report(model: Any) -> PrivacyReport:
    report = model if isinstance(model, PrivacyReport) else privacy_report(model)
    if not report.private:
        raise PrivacyRefusal(
            "This model is not differentially private, so there is no budget or finite epsilon to "
            "draw. Train with a finite dp_epsilon."
        )
    return report


def plot_epsilon(
    model: Any, deltas: Sequence[float] | None = None, group_size: int | None = None, ax: Any = None
) -> Any:
    """Plot epsilon as a function of delta; the model satisfies every point of the curve.

    Privacy: free post-processing.

    Args:
        model: A private model, in any form that :func:`xgb_dp.privacy_report` accepts, or its
            report.
        deltas: Failure probabilities. Default: 1e-3 to 1e-12.
        group_size: Number of rows (or persons) added or removed together. Default: the group size
            that the model was calibrated for.
        ax: matplotlib axes. Default: new axes.

    Returns:
        matplotlib.axes.Axes: The curve, with the target delta marked by a dot.

    Raises:
        PrivacyRefusal: The model is not private.
        LedgerError: The model has no ledger.

    Examples:
        >>> ax = xgb_dp.plotting.plot_epsilon(model, group_size=1)
        >>> ax.get_xlabel(), ax.get_ylabel()
        ('delta', 'epsilon')
    """
    report = _report(model)
    unit = report.unit if group_size is None else replace(report.unit, group_size=group_size)
    used = [d for d, _ in report.epsilon_curve(deltas)]
    values = [report.get_epsilon(d, unit.group_size) for d in used]
    ax = new_axes(ax)
    ax.plot(used, values, color="C0", linewidth=1.8, label="guaranteed for every delta")
    if report.delta > 0:
        epsilon = report.get_epsilon(report.delta, unit.group_size)
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
    return labelled(ax, "Privacy guarantee of the model", "delta", shown)


def plot_budget(model: Any, ax: Any = None) -> Any:
    """Plot how the budget was divided: the share of mu^2 spent on each kind of release.

    Privacy: free post-processing.

    Args:
        model: A private model, in any form that :func:`xgb_dp.privacy_report` accepts, or its
            report.
        ax: matplotlib axes. Default: new axes.

    Returns:
        matplotlib.axes.Axes: One bar per kind of release, labelled with the epsilon that this kind
        would cost alone.

    Raises:
        PrivacyRefusal: The model is not private.
        LedgerError: The model has no ledger.

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
    return labelled(ax, "Budget by kind of release", share)


def _curve(report: Any, name: str) -> Any:
    curve = getattr(report, name, None)
    if curve is None:
        raise PrivacyParameterError(
            f"`report` has no {name.replace('_', ' ')}. Pass the evaluation report of a model that "
            "has one, or a group in it."
        )
    return curve


def _intervals(
    ax: Any, x: Sequence[float], figures: Sequence[Figure], label: str, color: str = "C0"
) -> None:
    """Draw figures as a line with a band of intervals."""
    ax.plot(x, list(map(float, figures)), color=color, linewidth=1.8, label=label)
    low, high = ([getattr(f, end) for f in figures] for end in ("low", "high"))
    ax.fill_between(x, low, high, color=color, alpha=0.2, linewidth=0)


_SHARES = [k / 20 for k in range(1, 21)]


def plot_roc(report: Any, ax: Any = None) -> Any:
    """Plot the ROC curve of an evaluation.

    Privacy: free post-processing.

    Args:
        report: Result of :func:`xgb_dp.evaluate` for a binary classifier, or one of its groups.
        ax: matplotlib axes. Default: new axes.

    Returns:
        matplotlib.axes.Axes: The curve, with the AUC and its interval in the legend.

    Raises:
        PrivacyParameterError: `report` is not about a binary classifier.

    Examples:
        >>> ax = xgb_dp.plotting.plot_roc(evaluation)
        >>> ax.get_xlabel()
        'false positive rate'
    """
    false, true, _ = _curve(report, "roc")()
    ax = new_axes(ax, 4.4, 4.2)
    ax.plot(false, true, color="C0", linewidth=1.8, label=f"AUC {report.auc}")
    ax.plot([0, 1], [0, 1], color="0.7", linewidth=0.8, label="guessing")
    ax.legend(loc="lower right", frameon=False)
    return labelled(ax, "ROC curve", "false positive rate", "true positive rate")


def plot_precision_recall(report: Any, ax: Any = None) -> Any:
    """Plot precision against recall, with intervals.

    Privacy: free post-processing.

    Args:
        report: Result of :func:`xgb_dp.evaluate` for a binary classifier, or one of its groups.
        ax: matplotlib axes. Default: new axes.

    Returns:
        matplotlib.axes.Axes: The curve, with the average precision in the legend.

    Raises:
        PrivacyParameterError: `report` is not about a binary classifier.

    Examples:
        >>> ax = xgb_dp.plotting.plot_precision_recall(evaluation)
        >>> ax.get_xlabel()
        'recall'
    """
    precision = list(map(_curve(report, "precision_at"), _SHARES))
    ax = new_axes(ax, 4.4, 4.2)
    _intervals(ax, _SHARES, precision, f"average precision {report.average_precision}")
    ax.axhline(float(report.base_rate), color="0.7", linewidth=0.8, label="guessing")
    ax.legend(loc="lower left", frameon=False, fontsize=9)
    title = f"Precision and recall, with {100 * report.level:g}% intervals"
    return labelled(ax, title, "recall", "precision")


def plot_calibration(report: Any, ax: Any = None) -> Any:
    """Plot the share of positive rows, or the mean label, against the prediction, with intervals.

    Privacy: free post-processing.

    Args:
        report: Result of :func:`xgb_dp.evaluate` for a binary classifier or a model of counts or
            amounts, or a group in it.
        ax: matplotlib axes. Default: new axes.

    Returns:
        matplotlib.axes.Axes

    Raises:
        PrivacyParameterError: `report` is about another kind of model.

    Examples:
        >>> ax = xgb_dp.plotting.plot_calibration(evaluation)
        >>> ax.get_xlabel()
        'predicted probability'
    """
    points = _curve(report, "calibration_curve")()
    binary = hasattr(report, "calibration_error")
    ax = new_axes(ax, 4.4, 4.2)
    means = [mean for mean, _, _ in points]
    rates = [rate for _, rate, _ in points]
    below = [float(rate) - rate.low for rate in rates]
    above = [rate.high - float(rate) for rate in rates]
    ends = [0, 1] if binary else [0, max(means, default=1.0)]
    ax.plot(ends, ends, color="0.7", linewidth=0.8, label="perfectly calibrated")
    ax.errorbar(
        means,
        [float(rate) for rate in rates],
        [below, above],
        fmt="o-",
        color="C0",
        linewidth=1.4,
        markersize=4,
        label=f"the model, with {100 * report.level:g}% intervals",
    )
    ax.legend(loc="upper left", frameon=False, fontsize=9)
    if not binary:
        title = f"Calibration, mean prediction / mean label {report.mean_ratio}"
        return labelled(ax, title, "mean prediction", "mean label")
    title = f"Calibration, error {report.calibration_error}"
    return labelled(ax, title, "predicted probability", "share of positive rows")


def plot_lift(report: Any, ax: Any = None) -> Any:
    """Plot the lift: mean label of the rows with the highest predictions over the overall mean.

    Privacy: free post-processing.

    Args:
        report: Result of :func:`xgb_dp.evaluate` for a binary classifier or a model of counts or
            amounts, or a group in it.
        ax: matplotlib axes. Default: new axes.

    Returns:
        matplotlib.axes.Axes: The curve, with intervals.

    Raises:
        PrivacyParameterError: `report` is about another kind of model.

    Examples:
        >>> ax = xgb_dp.plotting.plot_lift(evaluation)
        >>> ax.get_xlabel()
        'share of rows with the highest predictions'
    """
    lift = list(map(_curve(report, "lift"), _SHARES))
    ax = new_axes(ax)
    _intervals(ax, _SHARES, lift, f"the model, with {100 * report.level:g}% intervals")
    ax.axhline(1.0, color="0.7", linewidth=0.8, label="a random choice of rows")
    ax.legend(loc="upper right", frameon=False, fontsize=9)
    return labelled(ax, "Lift", "share of rows with the highest predictions", "lift")


def plot_double_lift(report: Any, ax: Any = None) -> Any:
    """Plot mean label and mean predictions of two models, by the ratio of their predictions.

    The better model is closer to the labels where the two disagree, at either end.

    Privacy: free post-processing.

    Args:
        report: Result of :func:`xgb_dp.evaluate` for two models of counts or amounts.
        ax: matplotlib axes. Default: new axes.

    Returns:
        matplotlib.axes.Axes: The curves, with intervals.

    Raises:
        PrivacyParameterError: `report` is not about two such models.

    Examples:
        >>> amounts = xgb.DMatrix(table, 10 * table[:, 0])
        >>> gamma = {**params, "objective": "reg:gamma", "dp_target_bounds": (0.01, 10)}
        >>> pair = [xgb.train({**gamma, "max_depth": depth}, amounts, 5) for depth in (2, 4)]
        >>> report = xgb_dp.evaluate(pair, amounts, epsilon=2.0, delta=1e-6)
        >>> ax = xgb_dp.plotting.plot_double_lift(report)
        >>> ax.get_ylabel()
        'mean'
    """
    points = _curve(report, "double_lift")()
    ax, x = new_axes(ax), range(1, len(points) + 1)
    for place, name in enumerate(("labels", "first model", "second model")):
        _intervals(ax, x, [point[place + 1] for point in points], name, f"C{place}")
    ax.legend(loc="best", frameon=False, fontsize=9)
    title = f"Double lift, with {100 * report.level:g}% intervals"
    return labelled(ax, title, "group of rows by first / second prediction", "mean")


def plot_groups(report: Any, figure: str = "auc", ax: Any = None) -> Any:
    """Plot one figure for all rows and for each group, with intervals.

    Privacy: free post-processing.

    Args:
        report: Result of :func:`xgb_dp.evaluate` with groups.
        figure: Name of the figure, as in ``report.figures()``.
        ax: matplotlib axes. Default: new axes.

    Returns:
        matplotlib.axes.Axes

    Raises:
        PrivacyParameterError: The report has no groups, or no figure of this name.

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
        raise PrivacyParameterError(
            "`report` has no groups. Pass the report of an evaluation with groups: "
            "evaluate(..., by=...)."
        )
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
    return labelled(ax, f"{label} by group, with {100 * report.level:g}% intervals", label)
