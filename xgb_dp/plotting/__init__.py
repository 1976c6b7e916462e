"""Plots of private models and of their cost. They need matplotlib (the extra ``plot``).

Everything drawn from a model is post-processing of its contents, which are noisy or public, and
costs nothing. That does not cover what you supply, such as scores or rows to explain.
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
