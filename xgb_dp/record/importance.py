"""Importance of features, from the noisy statistics that a private model holds.

The gains and covers in the nodes of a private model come from noisy sums (``docs/leaks.md``), so
whatever XGBoost computes from them is post-processing. That is not so for a stock model.
"""

from __future__ import annotations

from typing import Any

from ..errors import PrivacyParameterError, PrivacyRefusal
from .report import as_booster, privacy_report

_KINDS = ("gain", "total_gain", "cover", "total_cover", "weight")


def private_booster(model: Any) -> Any:
    """The booster of a model that is private, so that its statistics may be shown."""
    booster = as_booster(model)
    if not privacy_report(booster).private:
        raise PrivacyRefusal(
            "This model is not differentially private, so its statistics are exact ones of the "
            "training rows. For debugging, use XGBoost's own get_score and pred_contribs."
        )
    return booster


def column_names(booster: Any) -> list[str]:
    """Names of the columns of a model, f0, f1, ... where it has none."""
    return list(booster.feature_names or [f"f{i}" for i in range(booster.num_features())])


def importance(model: Any, kind: str = "total_gain") -> dict[str, float]:
    """Importance of each feature, from the noisy statistics that the model holds.

    Every split of a private tree is forced: where no feature helps, the mechanism picks one at
    random. The number of a feature's splits and its gain per split therefore say little, and the
    gain of a feature that is split rarely, and by luck, can be the largest. The total gain weighs
    both, and is what XGBoost's own functions give for private models too where no kind is named.

    Gains and covers are shrunk for their noise, but not to 0: a feature without any signal still
    has some where the mechanism chose it. :func:`importance_noise` says how much.

    Privacy: free post-processing.

    Args:
        model: xgboost.Booster, or a fitted scikit-learn estimator of xgboost; private.
        kind: "total_gain" or "total_cover" (sums over a feature's splits), "gain" or "cover"
            (means over them), or "weight" (their number).

    Returns:
        dict: Every feature, the most important first; 0 for those that no split uses.

    Raises:
        PrivacyParameterError: Unknown kind.
        PrivacyRefusal: The model is not private.
        LedgerError: The model carries no ledger.

    Examples:
        >>> shares = xgb_dp.plotting.importance(model)
        >>> set(shares) <= set(data.feature_names)
        True
    """
    if kind not in _KINDS:
        raise PrivacyParameterError(f"`kind` must be one of {', '.join(_KINDS)}.")
    booster = private_booster(model)
    scores = booster.get_score(importance_type=kind)
    every = {name: float(scores.get(name, 0.0)) for name in column_names(booster)}
    return dict(sorted(every.items(), key=lambda item: -item[1]))
