"""Plots of private models and of what they cost; they need matplotlib (the extra ``plot``).

Everything drawn from a model is post-processing of what it holds, which is noisy or public, and
costs nothing. What you bring along, such as scores or rows to explain, is not covered by that.
"""

from ..record.importance import importance
from .evaluation import plot_calibration, plot_groups, plot_lift, plot_roc
from .explain import contributions, plot_contributions, plot_importance
from .noise_level import importance_noise
from .privacy import plot_budget, plot_epsilon, plot_scores
from .shapes import ShapeFunction, plot_shapes, shape_functions

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
