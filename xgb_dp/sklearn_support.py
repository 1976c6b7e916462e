"""What the scikit-learn interface of XGBoost asks for when its tree method is private.

The patched ``xgboost/sklearn.py`` calls these through :mod:`xgb_dp.hook`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .errors import PrivacyParameterError
from .parse import parse_classes
from .rows import check_class_labels

__all__ = ["declared_classes", "default_rounds"]

DEFAULT_ROUNDS = 50


def default_rounds() -> int:
    """Boosting rounds of a private estimator whose ``n_estimators`` is unset.

    Returns:
        50, the setting of the design; public, constant in the data.
    """
    return DEFAULT_ROUNDS


def declared_classes(estimator: Any, y: Any) -> np.ndarray:
    """Classes of a private classifier: those declared, never those seen in `y`.

    Args:
        estimator: Its parameter ``dp_classes`` is an int K or the list 0..K-1.
        y: Labels. Each must be one of the declared classes; none needs to occur.

    Returns:
        0..K-1. Public.

    Raises:
        PrivacyParameterError: ``dp_classes`` is missing or not 0..K-1.
        RowDomainError: A row has an undeclared label. The message shows neither label nor row.
    """
    declared = estimator.get_xgb_params().get("dp_classes")
    if declared is None:
        raise PrivacyParameterError(
            "`dp_classes` is missing: a private classifier takes its classes from you and never "
            "from the training labels, which would tell which classes occur. Declare them, e.g. "
            "XGBClassifier(..., dp_classes=[0, 1])."
        )
    k = parse_classes(declared)
    check_class_labels(np.asarray(y), k)
    return np.arange(k)
