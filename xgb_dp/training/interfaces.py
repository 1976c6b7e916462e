"""What the scikit-learn interface of XGBoost asks for when its tree method is private.

The patched ``xgboost/sklearn.py`` calls these through :mod:`xgb_dp.training.hook`.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

import numpy as np

from ..data.cells import plain
from ..data.rows import check_class_labels
from ..errors import PrivacyParameterError, PrivacyRefusal
from ..request.params import DEFAULT_ROUNDS
from ..request.parse import parse_classes

__all__ = ["declared_classes", "default_rounds", "refuse_margins", "refuse_search"]


def default_rounds() -> int:
    """Boosting rounds of a private training where neither caller nor estimator says.

    Returns:
        :data:`xgb_dp.request.params.DEFAULT_ROUNDS`; public, constant in the data.
    """
    return DEFAULT_ROUNDS


def declared_classes(estimator: Any, y: Any = None) -> np.ndarray:
    """Classes of a private classifier: those declared, never those seen in `y`.

    Args:
        estimator: Its parameter ``dp_classes`` is an int K or the list 0..K-1. Spark has but the
            parameters, as a dictionary.
        y: Labels. Each must be one of the declared classes; none needs to occur. None where the
            workers of a cluster will check their own.

    Returns:
        0..K-1. Public.

    Raises:
        PrivacyParameterError: ``dp_classes`` is missing or not 0..K-1.
        RowDomainError: A row has an undeclared label. The message shows neither label nor row.
    """
    params = estimator if isinstance(estimator, dict) else estimator.get_xgb_params()
    refuse_margins(params)
    declared = params.get("dp_classes")
    if declared is None:
        raise PrivacyParameterError(
            "`dp_classes` is missing: a private classifier takes its classes from you and never "
            "from the training labels, which would tell which classes occur. Declare them, e.g. "
            "XGBClassifier(..., dp_classes=[0, 1])."
        )
    k = parse_classes(declared)
    if y is not None:
        check_class_labels(plain(y, "label"), k)
    return np.arange(k)


def refuse_margins(params: Mapping[str, Any]) -> None:
    """Refuse an objective whose predictions a classifier would take for probabilities.

    Raises:
        PrivacyParameterError: ``objective`` is binary:logitraw.
    """
    objective = params.get("objective")
    if isinstance(objective, str) and objective == "binary:logitraw":
        raise PrivacyParameterError(
            "`objective`='binary:logitraw' predicts margins, which a classifier would take for "
            "probabilities. Use 'binary:logistic', whose margins are the same: "
            "predict(X, output_margin=True)."
        )


_REFUSED_CALLERS = {
    "sklearn.model_selection": "scores settings exactly on the rows that were held out, and trains "
    "several models on the same rows",
    "sklearn.calibration": "fits exact calibrations on the rows that were held out",
    "sklearn.feature_selection._rfe._rfe_single_fit": "scores columns exactly on the rows that "
    "were held out",
    "sklearn.ensemble._weight_boosting": "weights the rows by exact errors",
    "sklearn.ensemble._bagging": "repeats rows, so that one row counts several times",
}


def refuse_search() -> None:
    """Refuse a training that a search of scikit-learn has called.

    What such a search publishes is computed from exact scores of private rows, and it is recognised
    by its frames on the call stack: an estimator is not told who fits it.

    Raises:
        PrivacyRefusal: With the reason, and what to use instead.
    """
    frame = inspect.currentframe()
    while frame is not None:
        caller = f"{frame.f_globals.get('__name__', '')}.{frame.f_code.co_name}"
        for name, reason in _REFUSED_CALLERS.items():
            if caller == name or caller.startswith(name + "."):
                raise PrivacyRefusal(
                    f"Private training is refused inside {caller}: it {reason}, which no epsilon "
                    "covers. Use xgb_dp.select, which chooses among settings privately and "
                    "accounts for it. `dp_public_evals` does not change this: it speaks of `evals` "
                    "and not of the training rows. To search on public rows, train without privacy."
                )
        frame = frame.f_back
