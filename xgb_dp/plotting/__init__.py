"""Plots of private models and their privacy cost. Requires matplotlib (the extra ``plot``).

Plots of a model are free post-processing, because its contents are noisy or public. Data that you
supply, such as scores or rows to explain, is not protected.
"""

from ..record.model_card import importance
from .explanations import (
    ShapeFunction,
    contributions,
    importance_noise,
    plot_contributions,
    plot_importance,
    plot_shapes,
    shape_functions,
)
from .reports import (
    plot_budget,
    plot_calibration,
    plot_epsilon,
    plot_groups,
    plot_lift,
    plot_roc,
    plot_scores,
)

__all__ = [
    "ShapeFunction",
    "contributions",
    "importance",
    "importance_noise",
    "plot_budget",
    "plot_calibration",
    "plot_contributions",
    "plot_epsilon",
    "plot_groups",
    "plot_importance",
    "plot_lift",
    "plot_roc",
    "plot_scores",
    "plot_shapes",
    "shape_functions",
]
