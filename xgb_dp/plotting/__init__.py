"""Plots of private models and their privacy cost. Requires matplotlib (the extra ``plot``).

Plots of a model are free post-processing, because its contents are noisy or public.
"""

from ..record.model_card import importance
from .explanations import (
    ShapeFunction,
    importance_noise,
    plot_importance,
    plot_shapes,
    shape_functions,
)
from .reports import (
    plot_budget,
    plot_calibration,
    plot_double_lift,
    plot_epsilon,
    plot_groups,
    plot_lift,
    plot_precision_recall,
    plot_roc,
)

__all__ = [
    "ShapeFunction",
    "importance",
    "importance_noise",
    "plot_budget",
    "plot_calibration",
    "plot_double_lift",
    "plot_epsilon",
    "plot_groups",
    "plot_importance",
    "plot_lift",
    "plot_precision_recall",
    "plot_roc",
    "plot_shapes",
    "shape_functions",
]
