"""Private selection among settings: the trainings, their scores, and what the selection costs.

:func:`xgb_dp.select` trains a secret, random number of models, each with settings drawn at random,
and keeps the one with the best noisy score on rows that no training saw. That costs little more
than one training (``docs/howto/selection.md``, proof in ``docs/proofs/selection.md``).

The names of scores are here because the packages that compute them take long to load.
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
"""What is predicted where a score judges models, by the name of the score."""
SCORES = tuple(KINDS)
"""Names of all scores."""
