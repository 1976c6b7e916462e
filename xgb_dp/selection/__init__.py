"""Private hyperparameter selection: trainings, scores and the cost of the selection.

:func:`xgb_dp.select` trains a secret, random number of models, each with randomly drawn settings,
and keeps the model with the best noisy score on held-out rows. This costs little more than one
training (``docs/howto/selection.md``, proof in ``docs/proofs/selection.md``).

The names of the scores are defined here because the modules that compute them are slow to import.
"""

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
"""Kinds of predictions that each score supports, by the name of the score."""
SCORES = tuple(KINDS)
"""Names of all scores."""
