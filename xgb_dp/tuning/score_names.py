"""Names of scores. Apart from what computes them, whose packages take long to load."""

KINDS = {
    "log_loss": ("binary", "multiclass"),
    "brier": ("binary", "multiclass"),
    "accuracy": ("binary", "multiclass"),
    "auc": ("binary",),
    "squared_error": ("regression", "quantile"),
    "absolute_error": ("regression", "quantile"),
    "pinball_loss": ("quantile", "quantiles"),
    "time_log_loss": ("times",),
}
"""What is predicted where a score judges models, by the name of the score."""
SCORES = tuple(KINDS)
"""Names of all scores."""
